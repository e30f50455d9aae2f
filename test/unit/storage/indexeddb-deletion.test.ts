import "fake-indexeddb/auto";
import type { IDBPDatabase } from "idb";
import { expect, onTestFinished, test } from "vitest";
import { PIECE } from "../../../src/storage/indexeddb/garbage.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { RuntimeSchema } from "../../../src/storage/indexeddb/schema.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { freshDb } from "../runner/kit.js";
import { failing, loseCommitOver, watchTransactions } from "./idb-spy.js";
import {
  baseAt,
  chunkOf,
  claimed,
  contents,
  delta,
  idsOf,
  NOTHING,
  rowsOfRun,
  runOn,
  settlement,
  withRuns,
} from "./kit.js";
import { rawOf } from "./raw.js";

const BULK = ["chunks", "messages", "states", "runs"] as const;

/** A store, and its database for whoever looks below it. */
async function opened(dbName = freshDb()): Promise<{ store: RunStore; db: IDBPDatabase<RuntimeSchema> }> {
  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  await store.head("t");
  return { store, db: await rawOf(dbName) };
}

/** How many records of the thread each bulk store holds, and what is still marked. */
async function left(db: IDBPDatabase<RuntimeSchema>, threadId: string): Promise<Record<string, unknown>> {
  const all = IDBKeyRange.bound([threadId], [threadId, Infinity, Infinity]);
  const counts = await Promise.all(BULK.map(async (store) => [store, await db.count(store, all)]));
  const marks = (await db.getAllKeys("meta")).filter((key) => key.startsWith("garbage:"));
  return { ...Object.fromEntries(counts), marks };
}

const CLEAN = { chunks: 0, messages: 0, states: 0, runs: 0, marks: [] };

test("nothing of a deleted thread stays in the database but its tombstone", async () => {
  const { store, db } = await opened();
  await withRuns(store, "t", ["r0", "r1"]);
  await withRuns(store, "t2", ["r0"]);
  await store.deleteThread("t");
  expect(await left(db, "t")).toEqual(CLEAN);
  expect(await db.get("threads", "t")).toBeUndefined();
  expect(await left(db, "t2")).toEqual({ chunks: 2, messages: 1, states: 1, runs: 1, marks: [] });
});

test.each(["asked for", "evicted"])("a thread of which the list alone is left is deleted: %s (L10)", async (how) => {
  const { store, db } = await opened();
  await withRuns(store, "t", ["r0"]);
  const row = await db.get("threads", "t");
  await store.deleteThread("t");
  for (const threadId of ["t", "unknown"]) {
    await db.put("threads", { ...row!, threadId });
    const listed = how === "evicted" ? (await store.threadsBeyond(0))[0] : undefined;
    expect(await store.deleteThread(threadId, undefined, listed)).toBe(true);
    expect(await store.thread(threadId)).toBeUndefined();
    expect(await store.deleteThread(threadId)).toBe(false);
  }
});

test("of a cut thread only what counts stays in the database", async () => {
  const { store, db } = await opened();
  for (const [runId, prev] of [
    ["r0", null],
    ["r1", 0],
    ["beside", 0],
    ["beside2", 2],
    ["r4", 1],
  ] as const) {
    await runOn(store, "t", runId, prev);
  }
  await store.cut("t", (await store.head("t"))!.epoch, baseAt(1));
  expect(await left(db, "t")).toEqual({ chunks: 2, messages: 2, states: 2, runs: 2, marks: [] });
});

test.each(BULK)(
  "a deletion that ends at %s shows nothing of the thread, and the next sweep ends it (L9)",
  async (at) => {
    const { store, db } = await opened();
    await withRuns(store, "t", ["r0", "r1"]);
    await withRuns(store, "z-kept", ["r0"]);
    watchTransactions(failing(({ stores, mode }) => mode === "readwrite" && stores.join() === at));
    await expect(store.deleteThread("t")).rejects.toMatchObject({ code: "quota-exceeded" });

    expect(await left(db, "t")).toMatchObject({ [at]: expect.any(Number), marks: ["garbage:t"] });
    expect((await left(db, "t"))[at]).not.toBe(0);
    expect(await store.head("t")).toMatchObject({ deleted: true });
    expect(await store.thread("t")).toBeUndefined();
    expect(await store.runs("t")).toEqual([]);
    expect(await store.runsBefore({ threadId: "t", limit: 10 })).toEqual([]);
    expect(await store.messageRows("t", 1, undefined)).toEqual([]);
    expect(await store.runById("t", "r1")).toBeUndefined();
    expect((await store.runsOfId("r0", 1)).map(({ threadId }) => threadId)).toEqual(["z-kept"]);
    for (const runIndex of [0, 1]) expect(await rowsOfRun(store, "t", runIndex)).toEqual(NOTHING);

    await store.sweep();
    expect(await left(db, "t")).toEqual(CLEAN);
    expect(await left(db, "z-kept")).toMatchObject({ chunks: 2, runs: 1 });
  },
);

test("a thread begins anew while its old rows are still there; the sweep leaves the new ones (L1, L9)", async () => {
  const { store, db } = await opened();
  await withRuns(store, "t", ["r0", "r1"]);
  watchTransactions(failing(({ stores, mode }) => mode === "readwrite" && stores.join() === "chunks"));
  await expect(store.deleteThread("t")).rejects.toMatchObject({ code: "quota-exceeded" });
  const claim = await claimed(store, "t", "r1");
  expect(claim.runIndex).toBe(2);
  await store.append(claim, chunkOf(claim, 0, [delta("new")]));
  await store.settle(claim, settlement(claim, 1));
  expect((await store.runs("t")).map(({ runIndex }) => runIndex)).toEqual([2]);
  expect((await store.runsBefore({ threadId: "t", limit: 10 })).map(({ runIndex }) => runIndex)).toEqual([2]);
  expect(await store.runById("t", "r1")).toMatchObject({ runIndex: 2 });
  expect((await store.runsOfId("r1", 10)).map(({ runIndex }) => runIndex)).toEqual([2]);
  expect(await contents(store, "t", 2)).toEqual(["yes"]);
  await store.sweep();
  expect(await left(db, "t")).toEqual({ chunks: 2, messages: 1, states: 1, runs: 1, marks: [] });
});

test("a cut that ends before its events went shows none of them, and the next sweep ends it (L9)", async () => {
  const { store, db } = await opened();
  for (const [runId, prev] of [
    ["r0", null],
    ["r1", 0],
    ["r2", 1],
    ["beside", 0],
    ["r4", 2],
  ] as const) {
    await runOn(store, "t", runId, prev);
  }
  const cutAt = async (runIndex: number): Promise<unknown> =>
    store.cut("t", (await store.head("t"))!.epoch, baseAt(runIndex));
  const failAtChunks = () =>
    watchTransactions(failing(({ stores, mode }) => mode === "readwrite" && stores.join() === "chunks"));
  failAtChunks();
  await expect(cutAt(1)).rejects.toMatchObject({ code: "quota-exceeded" });
  expect(await left(db, "t")).toMatchObject({ chunks: 10, marks: ["garbage:t"] });
  for (const runIndex of [0, 1, 3]) expect(await store.chunks("t", runIndex, -1, 100)).toEqual([]);
  for (const runIndex of [0, 3]) expect(await store.stateAfter("t", runIndex)).toBeUndefined();
  expect((await store.runs("t")).map(({ runIndex }) => runIndex)).toEqual([1, 2, 4]);
  expect(await contents(store, "t", 4, new Set([1, 2, 4]))).toEqual(["base", "from r2", "from r4"]);

  // What a second cut leaves is added to what is marked.
  failAtChunks();
  await expect(cutAt(2)).rejects.toMatchObject({ code: "quota-exceeded" });
  await store.sweep();
  expect(await left(db, "t")).toEqual({ chunks: 2, messages: 2, states: 2, runs: 2, marks: [] });
});

test("asked again, a deletion and a cut end what they did not get to (L9)", async () => {
  const { store, db } = await opened();
  const head = await withRuns(store, "t", ["r0", "r1"]);
  watchTransactions(failing(({ stores, mode }) => mode === "readwrite" && stores.join() === "chunks", 2));
  await expect(store.cut("t", head.epoch, baseAt(1))).rejects.toMatchObject({ code: "quota-exceeded" });
  await expect(store.cut("t", head.epoch, baseAt(1))).rejects.toMatchObject({ code: "quota-exceeded" });
  // A run that is only still to be swept is no base.
  expect(await store.cut("t", (await store.head("t"))!.epoch, baseAt(0))).toBeUndefined();
  expect(await store.cut("t", head.epoch, baseAt(1))).toBe(0);
  expect(await left(db, "t")).toMatchObject({ chunks: 0, runs: 1, marks: [] });
  watchTransactions(failing(({ stores, mode }) => mode === "readwrite" && stores.join() === "messages"));
  await expect(store.deleteThread("t")).rejects.toMatchObject({ code: "quota-exceeded" });
  expect(await store.deleteThread("t")).toBe(false);
  expect(await left(db, "t")).toEqual(CLEAN);
});

/** A thread whose deletion has left something to the sweep. */
async function interrupted(store: RunStore, threadId: string): Promise<void> {
  await withRuns(store, threadId, ["r"]);
  watchTransactions(failing(({ stores, mode }) => mode === "readwrite" && stores.join() === "chunks"));
  await expect(store.deleteThread(threadId)).rejects.toMatchObject({ code: "quota-exceeded" });
}

test("the sweep finds the thread with the last of all ids (L9)", async () => {
  const { store, db } = await opened();
  const threadId = "\uffff\uffff";
  await interrupted(store, threadId);
  await store.sweep();
  expect(await left(db, threadId)).toEqual(CLEAN);
});

test("what fails in one thread does not keep the sweep from the others (L10)", async () => {
  const { store, db } = await opened();
  await interrupted(store, "t1");
  // A mark that this version never wrote: nothing is deleted on its word, and it is left as it is.
  const foreign = { epoch: 1, below: -1, chunksBelow: 1, runs: [] };
  await db.put("meta", foreign, "garbage:a");
  await expect(store.sweep()).rejects.toMatchObject({ code: "corrupt-record", details: { store: "meta" } });
  expect(await left(db, "t1")).toMatchObject({ ...CLEAN, marks: ["garbage:a"] });
  expect(await db.get("meta", "garbage:a")).toEqual(foreign);
});

test("a deletion whose end was not heard is done once, and told as done (L8)", async () => {
  const { store, db } = await opened();
  const { epoch } = await withRuns(store, "t", ["r0"]);
  const falling = loseCommitOver(["heads", "threads", "meta", "waiting"]);
  expect(await store.deleteThread("t")).toBe(true);
  expect(falling.lost()).toBe(true);
  expect(await store.head("t")).toMatchObject({ deleted: true, epoch: epoch + 1 });
  expect(await left(db, "t")).toEqual(CLEAN);
});

test("a cut whose end was not heard is done once, and told as done (L8)", async () => {
  const { store, db } = await opened();
  const { epoch } = await withRuns(store, "t", ["r0", "r1", "r2"]);
  const falling = loseCommitOver(["heads", "threads", "runs", "messages", "states", "meta"]);
  expect(await store.cut("t", epoch, baseAt(1))).toBe(2);
  expect(falling.lost()).toBe(true);
  expect(await store.head("t")).toMatchObject({ first: 1, epoch: epoch + 1 });
  expect(await left(db, "t")).toEqual({ chunks: 2, messages: 2, states: 2, runs: 2, marks: [] });
});

test("deleting a large thread holds up no other for long: short transactions, none over heads and chunks (L15)", async () => {
  const { store, db } = await opened();
  await withRuns(store, "t", ["r0", "r1"]);
  const other = await claimed(store, "other", "r");
  const filling = db.transaction("chunks", "readwrite");
  const chunk = (await filling.store.get(["t", 1, 0]))!;
  for (let firstSeq = 2; firstSeq < 3_000; firstSeq++) void filling.store.put({ ...chunk, firstSeq });
  await filling.done;

  const seen = watchTransactions();
  const deleting = store.deleteThread("t");
  for (let seq = 0; seq < 3; seq++) await store.append(other, chunkOf(other, seq, [delta("a")]));
  await deleting;
  const writes = seen.filter(({ mode }) => mode === "readwrite");
  const isAppend = ({ stores }: { stores: readonly string[] }): boolean => stores.join() === "chunks,heads";
  expect(writes.filter(isAppend)).toHaveLength(3);
  const deletions = writes.filter((tx) => !isAppend(tx));
  expect(deletions.filter(({ stores }) => stores.includes("heads"))).toMatchObject([
    { stores: ["heads", "meta", "threads", "waiting"], mode: "readwrite", durability: "strict", deleted: 1 },
  ]);
  expect(deletions.slice(1).every(({ stores, durability }) => stores.length === 1 && durability === "relaxed")).toBe(
    true,
  );
  expect(Math.max(...deletions.map(({ deleted }) => deleted))).toBe(PIECE);
  expect(deletions.reduce((sum, { deleted }) => sum + deleted, 0)).toBeGreaterThan(3_000);
  // They come in between its pieces.
  expect(writes.findLastIndex(isAppend)).toBeLessThan(writes.length - 3);
});

test("a cut changes what is shown without touching the chunks, in one strict transaction (L15)", async () => {
  const { store } = await opened();
  const { epoch } = await withRuns(store, "t", ["r0", "r1", "r2"]);
  const seen = watchTransactions();
  await store.cut("t", epoch, baseAt(1));
  const writes = seen.filter(({ mode }) => mode === "readwrite");
  expect(writes[0]).toMatchObject({
    stores: ["heads", "messages", "meta", "runs", "states", "threads"],
    durability: "strict",
  });
  expect(writes.slice(1).every(({ stores, durability }) => stores.length === 1 && durability === "relaxed")).toBe(true);
});

test("no read has heads and bulk stores in one transaction (L15)", async () => {
  const { store } = await opened();
  await withRuns(store, "t", ["r0", "r1"]);
  const seen = watchTransactions();
  await rowsOfRun(store, "t", 1);
  await Promise.all([
    store.runs("t"),
    store.runsBefore({ threadId: "t", limit: 5 }),
    store.messageRows("t", 1, undefined),
  ]);
  const bulk = ["chunks", "messages", "states"];
  const scopes = seen.map(({ stores }) => stores).filter((stores) => stores.includes("heads"));
  expect(scopes.filter((stores) => stores.some((name) => bulk.includes(name)))).toEqual([]);
});

test("the base of a cut passes the codec", async () => {
  const dbName = freshDb();
  const wrapped = indexedDBRunStore({
    dbName,
    codec: {
      encode: (value) => Promise.resolve({ wrapped: value }),
      decode: (stored) => Promise.resolve((stored as { wrapped: unknown }).wrapped),
    },
  });
  onTestFinished(() => wrapped.close());
  const { epoch } = await withRuns(wrapped, "t", ["r0", "r1"]);
  await wrapped.cut("t", epoch, baseAt(1));
  expect(await contents(wrapped, "t", 1)).toEqual(["base"]);
  const { db } = await opened(dbName);
  expect((await db.getAll("messages")).map(({ message }) => message)).toEqual([
    { wrapped: { id: "base", role: "assistant", content: "base" } },
  ]);
  expect(await db.get("states", ["t", 1])).toMatchObject({ state: { wrapped: {} }, interrupts: { wrapped: [] } });
});

test.each([
  ["all at once", 0],
  ["in pieces", 2_000],
])("messages that are read while they are cut off, %s, are those before or those after (L2)", async (_how, from) => {
  const { store, db } = await opened();
  const head = await withRuns(store, "t", ["r0", "r1"]);
  // Enough for several transactions.
  const filling = db.transaction("messages", "readwrite");
  for (let n = 1; n < 3_000; n++) {
    const message = { id: `m${n}`, role: "assistant", content: `${n}` };
    void filling.store.put({ threadId: "t", runIndex: 0, n, messageId: message.id, message });
  }
  await filling.done;
  expect(await contents(store, "t", 0)).toHaveLength(3_000);
  // Another host does it, between the first of the read's transactions and the next.
  let isCut = false;
  watchTransactions(({ stores }) => {
    if (isCut || stores.join() !== "messages") return;
    isCut = true;
    queueMicrotask(() => {
      const cutting = db.transaction(["heads", "messages"], "readwrite");
      void cutting.objectStore("heads").put({ ...head, first: 1, cut: true });
      void cutting.objectStore("messages").delete(IDBKeyRange.bound(["t", 0, from], ["t", 0, 2_500]));
    });
  });
  expect(await contents(store, "t", 0)).toEqual([]);
});

test("pinned threads count as kept and never go; archived ones go like others", async () => {
  const { store, db } = await opened();
  for (let n = 0; n < 5; n++) {
    await withRuns(store, `t${n}`, ["r"]);
    const thread = (await db.get("threads", `t${n}`))!;
    const flags = { pinned: n === 0 || n === 4 ? 1 : 0, archived: n === 1 || n === 3 ? 1 : 0 } as const;
    await db.put("threads", { ...thread, ...flags, updatedAt: n });
  }
  expect(idsOf(await store.threadsBeyond(0))).toEqual(["t1", "t2", "t3"]);
  expect(idsOf(await store.threadsBeyond(2))).toEqual(["t1", "t2", "t3"]);
  expect(idsOf(await store.threadsBeyond(3))).toEqual(["t1", "t2"]);
});
