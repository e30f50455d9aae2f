import type { DBSchema, StoreNames } from "idb";
import { isSameRecord, type KeyStore } from "../encryption/key-ring.js";
import type { DatabaseConnection } from "./database-connection.js";

/**
 * The keys of a database, in one of its stores, whose schema has the record under this key.
 *
 * @param content the stores that hold payloads
 */
export function storedKeys<Schema extends DBSchema>(
  connection: DatabaseConnection<Schema>,
  [store, key]: readonly [StoreNames<Schema>, string],
  content: readonly StoreNames<Schema>[],
): KeyStore {
  const at = IDBKeyRange.only(key);
  return {
    load: () => connection.read([store], async (tx) => (await tx.objectStore(store).getAll(at))[0] as unknown),
    replace: (from, to) =>
      connection.write([store], "strict", async (tx) => {
        const keys = tx.objectStore(store);
        const [now] = (await keys.getAll(at)) as unknown[];
        // This is a retry: the first try was committed.
        if (isSameRecord(now, to)) return true;
        if (!isSameRecord(now, from)) return false;
        await keys.put(to as never, key as never);
        return true;
      }),
    isEmpty: () =>
      connection.read([...content], async (tx) => {
        const counts = await Promise.all(content.map((name) => tx.objectStore(name).count()));
        return counts.every((count) => count === 0);
      }),
  };
}
