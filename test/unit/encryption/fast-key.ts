import { createEncryptionKey, type KeyRecord } from "../../../src/storage/encryption/keys.js";
import { keyIdOf } from "../../../src/storage/encryption/sealed.js";

/** A key without a passphrase, which nothing is derived from: tests that are not about that need not wait for it. */
export const fastKey = await createEncryptionKey();

/** The option of a store: each has an Encryption of its own. */
export const encryption = { key: fastKey };

type Ids = Pick<KeyRecord, "keys">;

/** Which one of a database's data keys this id names: 1 is the first. */
const numberIn = ({ keys }: Ids, id: number | undefined): number => 1 + keys.findIndex((key) => key.id === id);

/** Which data keys a record of keys names, and how far they are used. */
export const usesIn = (record: KeyRecord | undefined) =>
  record && {
    current: numberIn(record, record.current),
    caughtUp: numberIn(record, record.caughtUp),
    isWhole: record.isWhole,
    locks: record.locks,
  };

/** Which ones these payloads are encrypted with. */
export const keysUsed = (record: Ids, payloads: readonly unknown[]): Set<number> =>
  new Set(payloads.map((sealed) => numberIn(record, keyIdOf(sealed as Uint8Array))));
