import { openDB, type IDBPDatabase } from "idb";
import { onTestFinished } from "vitest";
import type { RuntimeSchema } from "../../../src/storage/indexeddb/schema.js";

/** A record with its key, which is its own where the store has no key path. */
export interface Stored {
  readonly key: IDBValidKey;
  readonly value: unknown;
}

/** All records of a database, by store, in the order of their keys. */
export type Dump = Readonly<Record<string, readonly Stored[]>>;

/** The database as it stands, for whoever looks below the store; closed when the test ends. */
export async function rawOf(dbName: string): Promise<IDBPDatabase<RuntimeSchema>> {
  const db = await openDB<RuntimeSchema>(dbName);
  onTestFinished(() => db.close());
  return db;
}

export async function dumpOf(db: IDBPDatabase<RuntimeSchema>): Promise<Dump> {
  const tx = db.transaction([...db.objectStoreNames]);
  const dump: Record<string, Stored[]> = {};
  for (const name of tx.objectStoreNames) {
    const store = tx.objectStore(name);
    const keys = await store.getAllKeys();
    const values: unknown[] = await store.getAll();
    dump[name] = keys.map((key, n) => ({ key, value: values[n] }));
  }
  return dump;
}

/** Writes records into the stores of a database. */
export async function restore(db: IDBPDatabase, dump: Dump): Promise<void> {
  const tx = db.transaction([...db.objectStoreNames], "readwrite");
  for (const [name, records] of Object.entries(dump)) {
    const store = tx.objectStore(name);
    for (const { key, value } of records) void store.put(value, store.keyPath === null ? key : undefined);
  }
  await tx.done;
}
