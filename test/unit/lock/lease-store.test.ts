import "fake-indexeddb/auto";
import { openDB } from "idb";
import { expect, onTestFinished, test } from "vitest";
import { leaseDbName } from "../../../src/platform/names.js";
import { indexedDBLeaseStore, type Lease, type LeaseStore } from "../../../src/storage/indexeddb/leases.js";
import { fastClock, freshDb } from "../runner/kit.js";
import { loseCommitOver, watchTransactions } from "../storage/idb-spy.js";
import { LeaseWorld, LONG, secondsUntil } from "./kit.js";
import { describeLeaseStore } from "./lease-store.suite.js";
import { memoryLeaseStore } from "./memory-lease-store.js";

function opened(dbName: string, options: { readonly openTimeoutMs?: number } = {}): LeaseStore {
  const store = indexedDBLeaseStore({ dbName, clock: fastClock(100), openTimeoutMs: 1_000_000, ...options });
  onTestFinished(() => store.close());
  return store;
}

describeLeaseStore("leases in memory", () => {
  const rows = new Map<string, Lease>();
  return () => memoryLeaseStore(rows);
});

describeLeaseStore("leases in IndexedDB, on fake-indexeddb", () => {
  const dbName = freshDb();
  return () => opened(dbName);
});

test("leases are written without waiting for the disk, in a database of their own (L8)", async () => {
  const dbName = freshDb();
  const store = opened(dbName);
  await store.all();
  const seen = watchTransactions();
  await store.take("t", "a");
  await store.beat(new Map([["t", "a"]]));
  expect(seen.map(({ stores, durability }) => ({ stores, durability }))).toEqual(
    Array.from({ length: 2 }, () => ({ stores: ["leases"], durability: "relaxed" })),
  );
  expect((await indexedDB.databases()).filter(({ name }) => name?.startsWith(dbName))).toMatchObject([
    { name: leaseDbName(dbName), version: 1 },
  ]);
});

test("a connection that fell is opened anew, and what may have been committed is not done twice (L10)", async () => {
  const store = opened(freshDb());
  await store.all();
  const { lost } = loseCommitOver(["leases"]);
  expect(await store.take("t", "a")).toBeUndefined();
  expect(lost()).toBe(true);
  expect(Object.fromEntries(await store.all())).toEqual({ t: { owner: "a", beat: 0 } });
});

test("a database that is deleted gives way, and its leases are lost to their holders (L6, L10)", async () => {
  const dbName = freshDb();
  const store = opened(dbName);
  await store.take("t", "a");
  await new Promise((resolve, reject) => {
    const deleting = indexedDB.deleteDatabase(leaseDbName(dbName));
    deleting.onsuccess = resolve;
    deleting.onerror = reject;
  });
  expect(await store.beat(new Map([["t", "a"]]))).toEqual(["t"]);
  expect(await store.take("t", "b")).toBeUndefined();
});

test("leases of a newer version are refused, unharmed (L10)", async () => {
  const dbName = freshDb();
  const newer = await openDB(leaseDbName(dbName), 9, { upgrade: (db) => void db.createObjectStore("theirs") });
  newer.close();
  await expect(opened(dbName).all()).rejects.toMatchObject({ code: "outdated" });
  const again = await openDB(leaseDbName(dbName));
  expect([again.version, [...again.objectStoreNames]]).toEqual([9, ["theirs"]]);
  again.close();
});

test("a newer version may take the leases over while they are in use (L10)", async () => {
  const dbName = freshDb();
  const store = opened(dbName);
  await store.take("t", "a");
  (await openDB(leaseDbName(dbName), 2)).close();
  await expect(store.all()).rejects.toMatchObject({ code: "outdated" });
});

test("an open that is blocked is told in time, and can be tried again (L13)", async () => {
  const dbName = freshDb();
  const blocking = await openDB(leaseDbName(dbName), 1, { upgrade: (db) => void db.createObjectStore("leases") });
  const deleting = indexedDB.deleteDatabase(leaseDbName(dbName));
  const store = opened(dbName, { openTimeoutMs: 1_000 });
  await expect(store.all()).rejects.toMatchObject({ code: "storage-unavailable" });
  blocking.close();
  await new Promise((resolve) => (deleting.onsuccess = resolve));
  expect(await store.take("t", "a")).toBeUndefined();
});

test("a transaction that never ends is told in time, and takes no effect later (L13)", async () => {
  const dbName = freshDb();
  const other = opened(dbName);
  const store = opened(dbName, { openTimeoutMs: 1_000 });
  await store.all();
  const held = await openDB(leaseDbName(dbName));
  const tx = held.transaction("leases", "readwrite");
  const busy = { is: true };
  // Busy with itself, as one that a frozen page has open.
  const keepingOpen = (async () => {
    while (busy.is) await tx.store.get("t");
  })();
  await expect(store.replace("t", "thief")).rejects.toMatchObject({ code: "storage-lost" });
  busy.is = false;
  await keepingOpen;
  held.close();
  expect(await other.take("t", "a")).toBeUndefined();
  expect(Object.fromEntries(await other.all())).toEqual({ t: { owner: "a", beat: 0 } });
});

test.each<[string, unknown]>([
  ["a text", "held"],
  ["no owner", { beat: 3 }],
  ["no number", { owner: "a", beat: "often" }],
  ["null", null],
])("a record that is no lease wedges no thread: %s (L7)", async (_, record) => {
  const dbName = freshDb();
  const world = new LeaseWorld(() => opened(dbName));
  const { locks } = world.context();
  await (await locks.tryHold("other"))?.release();
  const foreign = await openDB(leaseDbName(dbName));
  await foreign.put("leases", record, "t");
  foreign.close();
  expect(await locks.tryHold("t")).toBeUndefined();
  expect(await secondsUntil(world, async () => (await locks.tryHold("t")) !== undefined)).toBeLessThan(LONG);
});
