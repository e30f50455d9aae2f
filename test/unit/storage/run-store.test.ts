import "fake-indexeddb/auto";
import { openDB } from "idb";
import { describe, expect, onTestFinished, test } from "vitest";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { lastSeq } from "../../../src/run/pack.js";
import { fastClock, freshDb } from "../runner/kit.js";
import type { ThreadUpdate } from "../../../src/run/types.js";
import { answerCall } from "../../../src/storage/pending-tool-calls.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { brokenHere, placed } from "./devices.suite.js";
import { loseCommitOver, watchTransactions } from "./idb-spy.js";
import { baseAt, chunkOf, claimed, delta, foreignEnd, settlement, withRuns } from "./kit.js";
import { eventsOf, hostsOf } from "./stores.js";
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
  [
    "heads",
    {
      threadId: "t",
      epoch: 1,
      runCount: 1,
      activeRunIndex: 0,
      holder: "h",
      live: { runIndex: 0, runId: "r", device: { id: "phone-1", name: 7 } },
    },
  ],
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
  expect(seen).toMatchObject([{ stores: ["meta", "threads"], mode: "readwrite", durability: "strict", deleted: 0 }]);
});

test.each([
  { device: "phone" },
  { device: { id: 7, name: "Phone" } },
  { device: { id: "phone-1" } },
  { leaves: -1 },
  { revised: { epoch: 1 } },
  { revised: { epoch: "1", from: 0 } },
])("a run of another device whose row is %j is refused, and neither goes on nor is replaced (L10)", async (odd) => {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  await brokenHere(store);
  const foreign = await openDB(dbName);
  onTestFinished(() => foreign.close());
  const record = { ...(await foreign.get("runs", ["t", 1])), ...odd };
  await foreign.put("runs", record);
  const refused = { code: "corrupt-record", details: { store: "runs", threadId: "t", runIndex: 1 } };
  await expect(store.run("t", 1)).rejects.toMatchObject(refused);
  await expect(store.reopen("t", 1, "h")).rejects.toMatchObject(refused);
  await expect(store.placeRun(placed("r1"))).rejects.toMatchObject(refused);
  expect(await foreign.get("runs", ["t", 1])).toEqual(record);
});

test("a broken run whose end was joined with what precedes it does not go on: nothing is written", async () => {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  await store.placeRun(placed("r", { status: "broken", closedFrom: 2 }));
  await store.repack("t", 0);
  const before = [await store.head("t"), await store.run("t", 0), await store.chunks("t", 0, -1, 10)];
  expect(before.at(-1)).toHaveLength(1);
  expect(await store.reopen("t", 0, "h")).toBeUndefined();
  expect([await store.head("t"), await store.run("t", 0), await store.chunks("t", 0, -1, 10)]).toEqual(before);
});

test("large events are handed out a few at a time; who asks for all of them is given all (L14)", async () => {
  const store = indexedDBRunStore({ dbName: freshDb() });
  onTestFinished(() => store.close());
  const claim = await claimed(store, "t", "r");
  for (let seq = 0; seq < 20; seq++) await store.append(claim, chunkOf(claim, seq, [delta("a".repeat(2 ** 20))]));
  await store.settle(claim, settlement(claim, 20));
  let seq = -1;
  for (let page = await store.chunks("t", 0, seq, 1_024); page.length > 0;) {
    expect(page).toHaveLength(1);
    seq = lastSeq(page.at(-1)!);
    page = await store.chunks("t", 0, seq, 1_024);
  }
  expect(seq).toBe(20);
  expect(await store.chunks("t", 0, -1, Infinity)).toHaveLength(21);
});

test("runs that hosts place at once, beside claims of other threads, are all there, each once (L6, L8)", async () => {
  const dbName = freshDb();
  const hosts = [indexedDBRunStore({ dbName }), indexedDBRunStore({ dbName })];
  onTestFinished(async () => void (await Promise.all(hosts.map((host) => host.close()))));
  const [one, other] = hosts as [RunStore, RunStore];
  await withRuns(one, "t", ["r0"]);
  const runIds = ["r1", "r2", "r3"];
  await Promise.all([
    ...hosts.flatMap((host) =>
      runIds.map((runId) => host.placeRun(placed(runId, { prevRunIndex: 0, activates: false }))),
    ),
    ...Array.from({ length: 6 }, (_, n) => claimed(n % 2 === 0 ? one : other, `other-${n}`, "r")),
  ]);
  const rows = await one.runs("t");
  expect(rows.map(({ runId }) => runId).sort()).toEqual(["r0", ...runIds]);
  expect(new Set(rows.map(({ epoch }) => epoch)).size).toBe(4);
  for (const { runIndex } of rows) expect(await eventsOf(other, runIndex)).not.toEqual([]);
  expect(await one.head("t")).toMatchObject({ runCount: 4, activeRunIndex: 0 });
});

test("a tool call that is answered while a run is placed stays answered", async () => {
  const result = { id: "c-result", role: "tool", toolCallId: "c", content: "yes" } as const;
  const { store, other } = hostsOf("chunk", () =>
    other.changeToolCall("t", "c", (call, encoded) => answerCall("token", "user", true, encoded)(call), result),
  );
  const claim = await claimed(other, "t", "r0");
  const made = [{ toolCallId: "c", name: "ask" }];
  await other.settle(claim, settlement(claim, 0, { left: { made, unanswered: new Set(), nextRunId: "next" } }));
  expect(await store.placeRun(placed("r1", { activates: false }))).toMatchObject({ runIndex: 1 });
  expect(await store.toolResults(await store.head("t"))).toEqual([result]);
});

test("a stop that is requested while a run is placed stays requested (L11)", async () => {
  const { store, other } = hostsOf("chunk", () => other.requestStop("t", "r1", 2_000));
  const { epoch } = await withRuns(other, "t", ["r0"]);
  const live = await claimed(other, "t", "r1", { base: { activeRunIndex: 0, epoch }, prevRunIndex: 0 });
  expect(await store.placeRun(placed("r2", { activates: false }))).toMatchObject({ runIndex: 2 });
  expect(await other.append(live, chunkOf(live, 0, [delta("a")]))).toEqual({ stop: "stopped" });
});

test("what a run that gives up its id left is derived while another one is placed, and stays", async () => {
  const { store, other } = hostsOf("chunk", () => other.derive("t", 0, closing, derived));
  const claim = await claimed(other, "t", "r");
  const { closing, derived } = settlement(claim, 0);
  await other.settleForeign("t", "r", "broken", 4_000, foreignEnd);
  await store.placeRun(placed("r", { prevRunIndex: 0, fingerprint: "answer", answerId: "a" }));
  expect(await store.closing("t", 0)).toEqual(closing);
});

describe.each<[string, ThreadUpdate]>([
  ["pinned", { pinned: true }],
  ["archived", { archived: true }],
  ["renamed", { title: "named" }],
])("a thread that was %s by another host", (_what, update) => {
  const readToLeave = async (store: RunStore) => ({
    head: (await store.head("t"))!,
    thread: (await store.thread("t"))!,
  });
  const isLeft = async (store: RunStore, { head, thread }: Awaited<ReturnType<typeof readToLeave>>) =>
    (await store.leave!(head, thread, () => true)) || (await store.head("t"))?.deleted === true;

  test("before it leaves this device stays", async () => {
    const { store, other } = hostsOf("none", async () => undefined);
    await withRuns(other, "t", ["r0"]);
    const read = await readToLeave(store);
    await other.updateThread("t", update);
    expect(await isLeft(store, read)).toBe(false);
    expect(await store.thread("t")).toMatchObject(update);
    expect(await isLeft(store, await readToLeave(store))).toBe(true);
  });

  test("while it leaves this device stays", async () => {
    const { store, other } = hostsOf("title", () => other.updateThread("t", update));
    await withRuns(other, "t", ["r0"]);
    expect(await isLeft(store, await readToLeave(store))).toBe(false);
    expect(await store.thread("t")).toMatchObject(update);
  });
});

test("a cut leaves alone a thread to which a run was added meanwhile beside the path", async () => {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  const other = indexedDBRunStore({ dbName });
  onTestFinished(async () => void (await Promise.all([store.close(), other.close()])));
  const head = await withRuns(store, "t", ["r0", "r1"]);
  await other.head("t");
  let placing: Promise<unknown> | undefined;
  loseCommitOver(["heads", "threads", "runs", "messages", "states", "meta"], "aborted", () => {
    placing = other.placeRun(placed("r2", { prevRunIndex: 0, activates: false }));
  });
  // The run comes before the cut is repeated, or after it and then waits for what it continues.
  const lost = await store.cut("t", head.epoch, baseAt(1));
  const row = await placing;
  expect([lost === undefined, row === undefined]).toContain(true);
  expect((await store.runs("t")).every(({ prevRunIndex }) => prevRunIndex === null || prevRunIndex < 2)).toBe(true);
  const first = (await store.head("t"))?.first ?? 0;
  for (const { prevRunIndex } of await store.runs("t")) expect(prevRunIndex ?? first).toBeGreaterThanOrEqual(first);
});
