import type { DBSchema, IDBPTransaction, StoreNames } from "idb";
import { isSealed } from "../codec.js";
import { isSameRecord, type KeyStore } from "../encryption/key-ring.js";
import type { DatabaseConnection } from "./database-connection.js";
import type { KeysAt } from "./keyless.js";

/**
 * The keys of a database.
 *
 * @param content the stores that hold payloads, in the order in which they are encrypted anew
 */
export function storedKeys<Schema extends DBSchema>(
  connection: DatabaseConnection<Schema>,
  [store, key]: KeysAt<Schema>,
  content: readonly StoreNames<Schema>[],
): KeyStore {
  const at = IDBKeyRange.only(key);
  const isEmpty = async (tx: IDBPTransaction<Schema, StoreNames<Schema>[], IDBTransactionMode>): Promise<boolean> => {
    const keys = await Promise.all(content.map((name) => tx.objectStore(name).getAllKeys(undefined, 1)));
    return keys.every(({ length }) => length === 0);
  };
  return {
    dbName: connection.dbName,

    load: () => connection.read([store], async (tx) => (await tx.objectStore(store).getAll(at))[0] as unknown),

    replace: (from, to) => {
      const isFirst = from === undefined && to.isWhole;
      return connection.write(isFirst ? [store, ...content] : [store], "strict", async (tx) => {
        const keys = tx.objectStore(store);
        const [now] = (await keys.getAll(at)) as unknown[];
        // This is a retry: the first try was committed.
        if (isSameRecord(now, to)) return true;
        if (!isSameRecord(now, from) || (isFirst && !(await isEmpty(tx)))) return false;
        await keys.put(to as never, key as never);
        return true;
      });
    },

    // What is encrypted anew begins with the first record, and what is written later is often the last one.
    content: () =>
      connection.read([...content], async (tx) => {
        if (await isEmpty(tx)) return "nothing";
        for (const name of content) {
          for (const way of ["next", "prev"] as const) {
            const cursor = await tx.objectStore(name).openCursor(null, way);
            if (cursor !== null && hasSealed(cursor.value)) return "sealed";
          }
        }
        return "plain";
      }),
  };
}

const hasSealed = (record: unknown): boolean =>
  typeof record === "object" && record !== null && Object.values(record).some(isSealed);
