import type { DBSchema, IDBPTransaction, StoreNames } from "idb";
import { RunnerError } from "../../run/errors.js";
import type { DatabaseConnection } from "./database-connection.js";
import type { PayloadCodec } from "../codec.js";

/** Where a database has its keys: a store and a key, under which its schema has a KeyRecord. */
export type KeysAt<Schema extends DBSchema> = readonly [store: StoreNames<Schema>, key: string];

/** Whether the database is encrypted, or is to be. */
export const hasKeys = <Schema extends DBSchema>(
  connection: DatabaseConnection<Schema>,
  [store, key]: KeysAt<Schema>,
): Promise<boolean> =>
  connection.read([store], async (tx) => (await tx.objectStore(store).getKey(IDBKeyRange.only(key))) !== undefined);

/**
 * What is not encrypted (ids, statuses, times, what is still to be encrypted) is not shown without the key either. Errors:
 * RunnerError `locked`, `wrong-key`, or a storage code
 */
export async function refuseLocked<Schema extends DBSchema>(
  connection: DatabaseConnection<Schema>,
  codec: PayloadCodec,
  keysAt: KeysAt<Schema>,
): Promise<void> {
  await codec.ready?.();
  if (codec.isPlain === true && (await hasKeys(connection, keysAt))) throw new RunnerError("locked");
}

/**
 * A host without the key must write nothing into an encrypted database, and nothing may be written that was encrypted for a
 * database which was deleted since: nobody could read it, and no keys could be made any more. In the transaction of the
 * write: both may have happened just now.
 *
 * @param tx has the store of the keys in its scope
 * @param payloads what is written, and records with payloads in their fields
 * Errors: RunnerError `locked`; `storage-lost` for what was encrypted for another database
 */
export async function refuseEncrypted<Schema extends DBSchema>(
  tx: IDBPTransaction<Schema, StoreNames<Schema>[], "readwrite">,
  codec: PayloadCodec,
  [store, key]: KeysAt<Schema>,
  payloads: readonly unknown[] = [],
): Promise<void> {
  const [keys] = (await tx.objectStore(store).getAll(IDBKeyRange.only(key))) as unknown[];
  if (codec.isPlain === true && keys !== undefined) throw new RunnerError("locked");
  codec.refuseForeign?.(keys, payloads);
}
