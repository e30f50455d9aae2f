import { RunnerError } from "../../run/errors.js";
import {
  changedRecord,
  digestBy,
  keyOf,
  randomBytes,
  wrappingKey,
  type KeyRecord,
} from "../../storage/encryption/keys.js";
import type { DataKey } from "../../storage/encryption/sealed.js";
import { keyEntryIn, keyRecordOf, keyText, type KeyEntry } from "./key-entry.js";

/** The keys of a space, opened. */
export interface SpaceKeys {
  /** Encrypts entries, and what is told. */
  readonly data: DataKey;
  /** Makes the keys of threads, and the codes of key entries. */
  readonly digest: CryptoKey;
  /** The same for all who have these keys of this space; says nothing of them. */
  readonly id: string;
}

/** @param name that of the space. Errors: RunnerError `wrong-key` */
export async function openedKeys(by: CryptoKey, record: KeyRecord, name: string): Promise<SpaceKeys> {
  const wrapping = await wrappingKey(by, record);
  const { current: id } = record;
  const [key, digest] = await Promise.all([keyOf(wrapping, record, id), keyOf(wrapping, record, "digest")]);
  return { data: { id, key }, digest, id: await digestBy(digest, ["space", name]) };
}

/** The key of a thread's entries: nobody without the keys can tell the thread from it. */
export const threadKey = ({ digest }: SpaceKeys, threadId: string): Promise<string> =>
  digestBy(digest, ["thread", threadId]);

const macOf = ({ digest, id }: SpaceKeys, number: number, record: KeyRecord): Promise<string> =>
  digestBy(digest, ["keys", id, number, keyText(record)]);

export const keyEntryOf = async (keys: SpaceKeys, number: number, record: KeyRecord): Promise<KeyEntry> => ({
  number,
  record,
  mac: await macOf(keys, number, record),
});

/** Whether somebody who has these keys made the entry, for this space. */
export const isOfKeys = async (keys: SpaceKeys, { number, record, mac }: KeyEntry): Promise<boolean> =>
  (await macOf(keys, number, record)) === mac;

/** See {@link KeyEntry}. */
export const numberOf = (kept: Pick<KeptKeys, "entry">): number => keyEntryIn(kept.entry)?.number ?? 0;

/** What a device keeps, so that it has the keys without servers, and whatever becomes of the key that people give. */
export interface KeptKeys {
  /** See {@link SpaceKeys}. */
  readonly id: string;
  /** The log that they were seen in last, and there the seq of the last entry of keys. */
  readonly log: string;
  readonly last: number;
  /** The newest entry of keys that was seen, as JSON: a log that is made anew gets it again. */
  readonly entry: string;
  /** The key was changed here, and the space is still to be told. */
  readonly isBehind: boolean;
  /** That of the device's key when this was kept: another one, and the key was changed while nobody looked. */
  readonly mark?: string;
  /** Wraps the keys of `record`: 32 bytes, in Base64. */
  readonly key: string;
  readonly record: string;
}

const textOf = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

const importKey = (key: string): Promise<CryptoKey> =>
  crypto.subtle.importKey(
    "raw",
    Uint8Array.from(atob(key), (char) => char.charCodeAt(0)),
    "AES-GCM",
    false,
    ["wrapKey", "unwrapKey"],
  );

/** The keys of a record, as a device keeps them. @param by what wraps them there */
export async function toKeep(by: CryptoKey, record: KeyRecord): Promise<Pick<KeptKeys, "key" | "record">> {
  const key = textOf(randomBytes(32));
  return { key, record: keyText(await changedRecord(by, record, { key: await importKey(key) })) };
}

/** Errors: any, for what is not of {@link toKeep}. */
export const openedKept = async ({ key, record }: KeptKeys, name: string): Promise<SpaceKeys> =>
  openedKeys(await importKey(key), keyRecordOf(record), name);

/** The keys that are kept, wrapped by what people give. */
export const wrappedFor = async (key: CryptoKey, kept: KeptKeys): Promise<KeyRecord> =>
  changedRecord(await importKey(kept.key), keyRecordOf(kept.record), { key });

/** How many entries of keys a device tries: to try one with a passphrase takes tenths of a second, and anybody may add some. */
const TRIES = 8;

/**
 * The newest entry of keys that a key opens.
 *
 * @param entries the oldest first
 * @returns undefined where it opens none, or there is a newer one of the same keys: it was changed
 */
export async function openedEntry(
  key: CryptoKey,
  entries: readonly KeyEntry[],
  name: string,
): Promise<{ readonly keys: SpaceKeys; readonly entry: KeyEntry } | undefined> {
  for (const entry of entries.slice(-TRIES).toReversed()) {
    const keys = await openedKeys(key, entry.record, name).catch((error: unknown) => {
      if (!RunnerError.is(error)) throw error;
      return undefined;
    });
    // That of another space, or of nobody.
    if (keys === undefined || !(await isOfKeys(keys, entry))) continue;
    const newest = await newestOf(keys, entries);
    // Anybody may have added it once more.
    return newest?.number === entry.number ? { keys, entry } : undefined;
  }
  return undefined;
}

/** The entry that whoever changed the key last has made. */
export async function newestOf(keys: SpaceKeys, entries: readonly KeyEntry[]): Promise<KeyEntry | undefined> {
  let newest: KeyEntry | undefined;
  for (const entry of entries) {
    if (entry.number > (newest?.number ?? -1) && (await isOfKeys(keys, entry))) newest = entry;
  }
  return newest;
}
