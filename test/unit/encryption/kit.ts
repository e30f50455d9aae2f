import { openDB, type IDBPDatabase } from "idb";
import { onTestFinished } from "vitest";
import { isSealed } from "../../../src/storage/codec.js";
import {
  indexedDBRunStore,
  type IndexedDBRunStoreOptions,
} from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { RuntimeSchema } from "../../../src/storage/indexeddb/schema.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { freshDb } from "../runner/kit.js";
import { cutOff, varied } from "../storage/corrupt-kit.js";
import { claimed, leaving, settlement } from "../storage/kit.js";
import { dumpOf, restore, type Dump, type Stored } from "../storage/raw.js";
import { waiting } from "../storage/waiting.suite.js";
import { encryption, keysUsed } from "./fast-key.js";

/** A thread that waits for the results of two tool calls, one of which has come, and in which a run waits that failed. */
export async function withCalls(store: RunStore, threadId: string): Promise<void> {
  const claim = await claimed(store, threadId, "r0", { title: `title of ${threadId}` });
  const made = ["call-1", "call-2"].map((toolCallId) => ({ toolCallId, name: "look" }));
  const left = { nextRunId: "next", made, unanswered: new Set<string>() };
  const derived = leaving("a", `said in ${threadId}`, { secret: threadId });
  await store.settle(claim, settlement(claim, 0, { derived, left }));
  const result = { id: "result-1", role: "tool", toolCallId: "call-1", content: `result in ${threadId}` } as const;
  await store.changeToolCall(
    threadId,
    "call-1",
    (call, encoded) => ({ is: "changed", call: { ...call, status: "answered", token: "t1", result: encoded } }),
    result,
  );
  await store.addWaiting(waiting("w1", { threadId, request: { says: `asked in ${threadId}` } }), 10);
  await store.updateWaiting(threadId, "w1", { error: { code: "host-failed", message: `failed in ${threadId}` } });
}

/** Threads with a payload of each kind. */
export const THREADS = ["a-cut", "b-varied", "c-varied", "d-calls", "e-calls"] as const;

export async function fill(store: RunStore): Promise<void> {
  await cutOff(store, "a-cut");
  await varied(store, "b-varied");
  await varied(store, "c-varied");
  await withCalls(store, "d-calls");
  await withCalls(store, "e-calls");
}

/** The records of an encrypted database, made once. */
export async function sealedDump(): Promise<Dump> {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName, encryption });
  await fill(store);
  await store.close();
  const db = await openDB<RuntimeSchema>(dbName);
  const dump = await dumpOf(db);
  db.close();
  return dump;
}

export interface Opened {
  readonly dbName: string;
  readonly store: RunStore;
  readonly db: IDBPDatabase;
  readonly close: () => Promise<void>;
}

/** A database of these records, and a store with the key, or with other options. */
export async function reopened(dump: Dump, options: IndexedDBRunStoreOptions = { encryption }): Promise<Opened> {
  const dbName = freshDb();
  const first = indexedDBRunStore({ dbName });
  await first.head("none");
  await first.close();
  const db = await openDB(dbName);
  await restore(db, dump);
  const store = indexedDBRunStore({ ...options, dbName });
  const close = async (): Promise<void> => {
    db.close();
    await store.close();
    indexedDB.deleteDatabase(dbName);
  };
  return { dbName, store, db, close };
}

/** The same, until the test ends. */
export async function restored(...of: Parameters<typeof reopened>): Promise<Opened> {
  const all = await reopened(...of);
  onTestFinished(all.close);
  return all;
}

/** A payload in a record. */
export interface Place {
  readonly store: string;
  readonly record: Stored;
  readonly path: readonly (string | number)[];
  readonly bytes: Uint8Array;
}

/** All encrypted payloads. */
export const payloadsIn = (dump: Dump): Place[] =>
  Object.entries(dump).flatMap(([store, records]) =>
    // What is random in the record of keys may begin as payloads do.
    (store === "meta" ? [] : records).flatMap((record) =>
      sealedIn(record.value).map(([path, bytes]): Place => ({ store, record, path, bytes })),
    ),
  );

function sealedIn(value: unknown): [(string | number)[], Uint8Array][] {
  if (isSealed(value)) return [[[], value]];
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    sealedIn(inner).map(([path, bytes]): [(string | number)[], Uint8Array] => [[key, ...path], bytes]),
  );
}

/** Which data keys the payloads of a log are encrypted with: 1 is the first. */
export const keysIn = async (db: IDBPDatabase): Promise<Set<number>> =>
  keysUsed(
    await db.get("meta", "keys"),
    payloadsIn(await dumpOf(db as never)).map(({ bytes }) => bytes),
  );

export const threadOf = ({ record: { key } }: Place): string => String(Array.isArray(key) ? key[0] : key);

/** Writes something in the payload's place. */
export async function attack(db: IDBPDatabase, { store, record, path }: Place, payload: unknown): Promise<void> {
  const value = structuredClone(record.value);
  let at = value as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
  at[path.at(-1)!] = payload;
  await db.put(store, value);
}

/** Whether a text is anywhere in a database, in any form that a text has there. */
export async function isFound(dbName: string, text: string): Promise<boolean> {
  const db = await openDB(dbName);
  const found: boolean[] = [];
  for (const name of db.objectStoreNames) {
    for (const record of await db.getAll(name)) found.push(holds(record, text));
    for (const key of await db.getAllKeys(name)) found.push(JSON.stringify(key).includes(text));
  }
  db.close();
  return found.includes(true);
}

function holds(value: unknown, text: string): boolean {
  if (typeof value === "string") return value.includes(text);
  if (value instanceof Uint8Array) {
    const latin = Buffer.from(value).toString("latin1");
    return latin.includes(text) || latin.includes(Buffer.from(text).toString("base64").slice(1, -3));
  }
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, inner]) => key.includes(text) || holds(inner, text));
}
