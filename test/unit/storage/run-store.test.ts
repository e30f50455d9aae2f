import "fake-indexeddb/auto";
import { openDB } from "idb";
import { expect, onTestFinished, test } from "vitest";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { fastClock, freshDb } from "../runner/kit.js";
import { watchTransactions } from "./idb-spy.js";
import { withRuns } from "./kit.js";
import { describeRunStore } from "./run-store.suite.js";

describeRunStore("IndexedDB run store, on fake-indexeddb", () => {
  const store = indexedDBRunStore({ dbName: freshDb() });
  onTestFinished(() => store.close());
  return store;
});

test("a database of a newer version is refused, unharmed (L10)", async () => {
  const dbName = freshDb();
  const newer = await openDB(dbName, 999, { upgrade: (db) => void db.createObjectStore("theirs").put("kept", "key") });
  newer.close();
  await expect(indexedDBRunStore({ dbName }).head("t")).rejects.toMatchObject({
    code: "outdated",
    details: { dbName },
  });
  const again = await openDB(dbName, 999);
  expect(await again.get("theirs", "key")).toBe("kept");
  again.close();
});

test("an open that another connection blocks is told in time (L10, L13)", async () => {
  const dbName = freshDb();
  const deaf = await openDB(dbName, 1);
  const deleting = indexedDB.deleteDatabase(dbName);
  const store = indexedDBRunStore({ dbName, clock: fastClock(100), openTimeoutMs: 1_000 });
  await expect(store.head("t")).rejects.toMatchObject({ code: expect.stringMatching(/^storage-/) });
  deaf.close();
  await new Promise((resolve) => (deleting.onsuccess = resolve));
});

test.each([
  ["heads", { threadId: "t", epoch: "one", runCount: 1, activeRunIndex: 0 }],
  ["heads", { threadId: "t", epoch: 1, runCount: 1, activeRunIndex: 7 }],
  ["heads", { threadId: "t", epoch: 1, runCount: 3, activeRunIndex: 0, first: 1 }],
  ["heads", { threadId: "t", epoch: 1, runCount: 3, activeRunIndex: 0, stop: { runId: "r", at: 1 } }],
  ["heads", { threadId: "t", epoch: 1, runCount: 3, activeRunIndex: -1, first: 0, deleted: true }],
])("a record in %s that this version never wrote is refused and left as it is (L10)", async (_store, record) => {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  await store.head("t");
  const foreign = await openDB(dbName);
  await foreign.put("heads", record);
  await expect(store.head("t")).rejects.toMatchObject({
    code: "corrupt-record",
    details: { store: "heads", threadId: "t" },
  });
  await expect(store.requestStop("t", undefined, 1)).rejects.toMatchObject({ code: "corrupt-record" });
  expect(await foreign.get("heads", "t")).toEqual(record);
  foreign.close();
  await store.close();
});

test("a connection that fell is opened anew (L10)", async () => {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  const { IDBDatabase } = globalThis;
  const handles: IDBDatabase[] = [];
  const transaction = IDBDatabase.prototype.transaction;
  IDBDatabase.prototype.transaction = function (...args) {
    handles.push(this);
    return transaction.apply(this, args);
  };
  onTestFinished(() => {
    IDBDatabase.prototype.transaction = transaction;
  });
  await store.head("t");
  handles.at(-1)!.close();
  expect(await store.head("t")).toBeUndefined();
  await store.close();
  await expect(store.head("t")).rejects.toMatchObject({ code: "closed" });
});

test("an update of a thread is one strict transaction, which no append waits for (L8, L15)", async () => {
  const store = indexedDBRunStore({ dbName: freshDb() });
  onTestFinished(() => store.close());
  await withRuns(store, "t", ["r0"]);
  const seen = watchTransactions();
  await store.updateThread("t", { title: "named", archived: true });
  // `meta` says whether somebody has encrypted the database.
  expect(seen).toEqual([{ stores: ["meta", "threads"], mode: "readwrite", durability: "strict", deleted: 0 }]);
});
