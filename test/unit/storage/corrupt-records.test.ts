import "fake-indexeddb/auto";
import type { IDBPDatabase } from "idb";
import { expect, onTestFinished, test } from "vitest";
import { MAX_DEPTH } from "../../../src/run/json.js";
import { weigh } from "../../../src/run/size.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { RuntimeSchema } from "../../../src/storage/indexeddb/schema.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { freshDb } from "../runner/kit.js";
import { nested } from "../runner/poisoned.suite.js";
import { cutOff, varied } from "./corrupt-kit.js";
import { baseAt, chunkOf, claimed, delta, foreignEnd, idsOf, request, runOn, settlement, withRuns } from "./kit.js";
import { dumpOf, rawOf } from "./raw.js";

type Fields = Record<string, unknown>;

/** A store with thread `t` like {@link varied}, and its database. */
async function hurt(fill = varied): Promise<{ store: RunStore; db: IDBPDatabase<RuntimeSchema> }> {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  await fill(store, "t");
  return { store, db: await rawOf(dbName) };
}

type Bulk = "threads" | "runs" | "chunks" | "messages" | "states";

/** Writes the record of this key with other fields. */
async function change(db: IDBPDatabase<RuntimeSchema>, store: Bulk, key: IDBValidKey, fields: Fields): Promise<void> {
  // What a person or a fault may put there, whatever the schema says.
  const anything = db as unknown as IDBPDatabase;
  await anything.put(store, { ...((await anything.get(store, key)) as Fields), ...fields });
}

const corrupt = (store: string, runIndex?: number) => ({
  code: "corrupt-record",
  details: { store, threadId: "t", ...(runIndex !== undefined && { runIndex }) },
});

const TWO = [{ event: delta("x") }, { event: delta("y") }];

/** Changes of the second of three chunks of two events each. */
test.each<[string, Fields]>([
  ["leaves a gap", { count: 1, times: [1, 0], entries: [{ event: delta("x") }] }],
  ["overlaps the next one", { count: 3, times: [3, 0], entries: [...TWO, { event: delta("z") }] }],
  ["is of an older epoch", { epoch: 1 }],
  ["is of a later epoch", { epoch: 99 }],
  ["has fewer events than it says", { entries: [{ event: delta("x") }] }],
  ["has cuts that are not its text's", { entries: [{ event: delta("xy"), cuts: [1, 2] }] }],
  ["has cuts without a text", { entries: [{ event: { type: "RAW" }, cuts: [0, 0] }] }],
  ["has an event without type", { entries: [{ event: delta("x") }, { event: {} }] }],
  ["has more times than events", { times: [1e15, 0] }],
  ["has no list of events", { entries: { length: 2 } }],
  ["counts below zero", { count: -1 }],
  ["counts beyond all numbers", { count: Number.MAX_SAFE_INTEGER }],
])(
  "a run with a chunk that %s is told as corrupt, to whoever reads as far as that (L2, L10)",
  async (_what, fields) => {
    const { store, db } = await hurt();
    await change(db, "chunks", ["t", 5, 2], fields);
    await expect(store.chunks("t", 5, -1, 100)).rejects.toMatchObject(corrupt("chunks", 5));
    await expect(store.chunks("t", 5, 1, 1_000)).rejects.toMatchObject(corrupt("chunks", 5));
    expect(await store.chunks("t", 5, -1, 2)).toHaveLength(1);
    expect(await store.chunks("t", 2, -1, 100)).toHaveLength(2);
  },
);

test("a run that lost its first, a middle or its last chunk is told as corrupt (L2)", async () => {
  for (const [firstSeq, runIndex] of [
    [0, 5],
    [2, 5],
    [0, 3],
    [2, 3],
  ] as const) {
    const { store, db } = await hurt();
    await db.delete("chunks", ["t", runIndex, firstSeq]);
    await expect(store.chunks("t", runIndex, -1, 100)).rejects.toMatchObject(corrupt("chunks", runIndex));
  }
});

test("a run that ended while its chunks were read is not taken for corrupt (L2)", async () => {
  const { store } = await hurt();
  const { transaction } = IDBDatabase.prototype;
  let ending: Promise<unknown> | undefined;
  IDBDatabase.prototype.transaction = function (stores, mode, options) {
    const tx = transaction.call(this, stores, mode, options);
    // Between the read of the chunks and that of the run.
    if ([stores].flat().join() === "chunks") ending ??= store.settleForeign("t", "r5", "broken", 9_000, foreignEnd);
    return tx;
  };
  onTestFinished(() => {
    IDBDatabase.prototype.transaction = transaction;
  });
  const chunks = await store.chunks("t", 5, -1, 100);
  expect(await ending).toMatchObject({ status: "broken" });
  expect(chunks.at(-1)).toMatchObject({ firstSeq: 6, epoch: (await store.run("t", 5))!.epoch });
});

test.each<[string, Fields]>([
  ["without its message", { message: undefined }],
  ["with a message of another id", { message: { id: "other", role: "user", content: "?" } }],
  ["with a message that has no role", { message: { id: "r2-a" } }],
  ["with a message that is none", { message: "hello" }],
  ["that resets by something else", { resets: true }],
  ["after something that is no id", { after: 7 }],
])("a message row %s is told as corrupt (L2, L10)", async (_what, fields) => {
  const { store, db } = await hurt();
  await change(db, "messages", ["t", 2, 0], fields);
  await expect(store.messageRows("t", 3, new Set([0, 2]))).rejects.toMatchObject(corrupt("messages", 2));
  expect(await store.messageRows("t", 1, undefined)).toHaveLength(2);
  const page = (upTo: number, path?: ReadonlySet<number>) =>
    store.messagePage("t", upTo, path, { before: undefined, limit: 9 });
  await expect(page(2, new Set([0, 2]))).rejects.toMatchObject(corrupt("messages", 2));
  expect((await page(1))?.messages).toHaveLength(2);
});

test("messages of which one is missing are told as corrupt (L2)", async () => {
  const { store, db } = await hurt();
  await db.put("messages", { threadId: "t", runIndex: 2, n: 2, messageId: "x", message: { id: "x", role: "user" } });
  const page = (run: number) => store.messagePage("t", 2, new Set([run]), { before: undefined, limit: 9 });
  await expect(store.messageRows("t", 2, new Set([2]))).rejects.toMatchObject(corrupt("messages", 2));
  await expect(page(2)).rejects.toMatchObject(corrupt("messages", 2));
  await db.delete("messages", ["t", 2, 2]);
  await db.put("messages", { threadId: "t", runIndex: 1, n: 1, messageId: "x", message: { id: "x", role: "user" } });
  await db.delete("messages", ["t", 1, 0]);
  await expect(store.messageRows("t", 2, new Set([1]))).rejects.toMatchObject(corrupt("messages", 1));
  await expect(page(1)).rejects.toMatchObject(corrupt("messages", 1));
});

test.each<[string, Bulk, IDBValidKey, Fields, (store: RunStore) => Promise<unknown>]>([
  ["status", "runs", ["t", 2], { status: "toString" }, (store) => store.run("t", 2)],
  ["end without a count", "runs", ["t", 2], { eventCount: undefined }, (store) => store.run("t", 2)],
  ["run before it", "runs", ["t", 2], { prevRunIndex: 2 }, (store) => store.runs("t")],
  ["parent", "runs", ["t", 2], { parentRunId: 7 }, (store) => store.runById("t", "r2")],
  ["fingerprint", "runs", ["t", 2], { fingerprint: {} }, (store) => store.runsBefore({ threadId: "t", limit: 5 })],
  ["input", "runs", ["t", 2], { input: { messages: [null] } }, (store) => store.input("t", 2)],
  ["closing", "runs", ["t", 2], { closing: { customs: [] } }, (store) => store.closing("t", 2)],
  ["interrupts", "states", ["t", 2], { interrupts: [{}] }, (store) => store.stateAfter("t", 2)],
  ["list of interrupts", "states", ["t", 2], { interrupts: null }, (store) => store.stateAfter("t", 2)],
])("a wrong %s is told as corrupt and left as it is (L10)", async (_what, name, key, fields, read) => {
  const { store, db } = await hurt();
  await change(db, name, key, fields);
  const before = await dumpOf(db);
  await expect(read(store)).rejects.toMatchObject(corrupt(name, 2));
  expect(await dumpOf(db)).toEqual(before);
});

test.each<[string, Fields]>([
  ["title", { title: null }],
  ["mark that it was named", { named: true }],
  ["mark that it is pinned", { pinned: "yes" }],
  ["run count", { runCount: -1 }],
  ["agent", { agentId: 7 }],
  ["last status", { lastStatus: "valueOf" }],
])("a thread with a wrong %s is told as corrupt and hides no other (L10)", async (_what, fields) => {
  const { store, db } = await hurt();
  await withRuns(store, "other", ["r0"]);
  await change(db, "threads", "t", fields);
  expect((await store.threads({ limit: 10, archived: false })).map(({ threadId }) => threadId)).toEqual(["other"]);
  await expect(store.thread("t")).rejects.toMatchObject(corrupt("threads"));
  const before = await dumpOf(db);
  await expect(store.updateThread("t", { title: "named", pinned: true })).rejects.toMatchObject(corrupt("threads"));
  expect(await dumpOf(db)).toEqual(before);
  // Its run ends all the same, and it can be deleted.
  expect(await store.settleForeign("t", "r5", "broken", 9_000, foreignEnd)).toMatchObject({ status: "broken" });
  // Nobody knows whether it is pinned.
  expect(idsOf(await store.threadsBeyond(0))).toEqual(["other"]);
  expect(await store.deleteThread("t")).toBe(true);
});

/** What may stand where the last chunk of an orphan does: by its key, and with its fields. */
const LAST_CHUNKS: [string, number, Fields][] = [
  ["counts beyond all numbers", 4, { count: Number.MAX_SAFE_INTEGER }],
  ["counts nothing", 4, { count: 0 }],
  ["leaves open what nobody can read", 4, { open: { textMessages: "m" } }],
  ["is nothing but a key", 9, {}],
  ["stands between two numbers", 4.5, { count: 1 }],
  ["stands beyond all numbers", 1e300, { count: 1 }],
  ["stands at no end", Infinity, { count: 1 }],
];

test.each(LAST_CHUNKS)(
  "an orphan whose last chunk %s is settled: the thread is free, the chunk left as it is, the run told as corrupt (L7, L9)",
  async (_what, firstSeq, fields) => {
    const { store, db } = await hurt();
    const chunk = {
      ...(firstSeq === 4 ? await db.get("chunks", ["t", 5, 4]) : { threadId: "t", runIndex: 5 }),
      firstSeq,
    };
    await change(db, "chunks", ["t", 5, firstSeq], { ...chunk, ...fields });
    const before = (await dumpOf(db))["chunks"]!;
    expect(await store.settleForeign("t", "r5", "broken", 9_000, foreignEnd)).toMatchObject({ status: "broken" });
    expect((await dumpOf(db))["chunks"]).toEqual(expect.arrayContaining([...before]));
    expect(await store.head("t")).not.toHaveProperty("live");
    expect(await store.run("t", 5)).toMatchObject({ status: "broken" });
    await expect(store.chunks("t", 5, -1, Infinity)).rejects.toMatchObject(corrupt("chunks", 5));
    const base = (await store.head("t"))!;
    expect(await store.claim(request("t", "r6", { base, prevRunIndex: 5 }))).toMatchObject({ is: "claimed" });
  },
);

test.each<[string, (db: IDBPDatabase<RuntimeSchema>) => Promise<void>]>([
  ["is not there", (db) => db.delete("runs", ["t", 5])],
  ["cannot be read", (db) => change(db, "runs", ["t", 5], { epoch: "six" })],
])("an orphan whose run %s leaves the thread free to be deleted (L7)", async (_what, spoil) => {
  const { store, db } = await hurt();
  await spoil(db);
  const before = (await dumpOf(db))["runs"];
  await expect(store.settleForeign("t", "r5", "broken", 9_000, foreignEnd)).rejects.toMatchObject(corrupt("runs", 5));
  expect((await dumpOf(db))["runs"]).toEqual(before);
  expect(await store.head("t")).not.toHaveProperty("live");
  expect(await store.liveHeads()).toEqual([]);
  expect(await store.deleteThread("t")).toBe(true);
});

test("a run that ended stays as it ended, though its head calls it live (L7)", async () => {
  const { store, db } = await hurt(async (filled, threadId) => void (await withRuns(filled, threadId, ["r0"])));
  const head = (await store.head("t"))!;
  await db.put("heads", { ...head, live: { runIndex: 0, runId: "r0" }, holder: "nobody" });
  expect(await store.settleForeign("t", "r0", "broken", 9_000, foreignEnd)).toMatchObject({ status: "finished" });
  expect(await store.chunks("t", 0, -1, 100)).toHaveLength(2);
  expect(await store.head("t")).toEqual({ ...head, epoch: 2 });
});

test.each<[string, Fields]>([
  ["fewer runs than there are", { runCount: 1, activeRunIndex: 0 }],
  ["a live run that it never had", { live: { runIndex: 9, runId: "r9" }, holder: "host" }],
  ["a live run without a holder", { live: { runIndex: 2, runId: "r2" } }],
  ["a stop request that is none", { stop: null }],
  ["underived runs that are no list", { underived: { includes: 1 } }],
  ["an epoch beyond all numbers", { epoch: 2 ** 53 }],
  // Never the same as when it is read once more: who reads the thread until it is would never end.
  ["a cut that is an object", { cut: {} }],
  ["a deletion that is a word", { deleted: "yes" }],
])("no run begins on a head with %s, and none is written over (L1, L10)", async (_what, fields) => {
  const { store, db } = await hurt(
    async (filled, threadId) => void (await withRuns(filled, threadId, ["r0", "r1", "r2"])),
  );
  const head = { ...(await store.head("t"))!, ...fields };
  await (db as unknown as IDBPDatabase).put("heads", head);
  const before = await dumpOf(db);
  const base = { activeRunIndex: head.activeRunIndex, epoch: head.epoch };
  const claim = store.claim(request("t", "r3", { base, prevRunIndex: head.activeRunIndex }));
  await expect(claim).rejects.toMatchObject(corrupt("heads"));
  expect(await dumpOf(db)).toEqual(before);
});

test("no thread begins where runs of a thread without a head are (L1, L10)", async () => {
  const { store, db } = await hurt(async (filled, threadId) => void (await withRuns(filled, threadId, ["r0", "r1"])));
  await db.delete("heads", "t");
  await expect(store.claim(request("t", "new"))).rejects.toMatchObject(corrupt("heads"));
  expect(await store.run("t", 0)).toMatchObject({ runId: "r0" });
});

test.each([["nothing"], ["a word"], [-1], [2 ** 53], [0]])(
  "where the counter of epochs says %s, the next one is still greater than all before (L6)",
  async (counter) => {
    const { store, db } = await hurt();
    await withRuns(store, "other", ["r0"]);
    const { epoch } = (await store.head("other"))!;
    if (counter === "nothing") await db.delete("meta", "epoch");
    else await db.put("meta", counter, "epoch");
    await store.settleForeign("t", "r5", "broken", 9_000, foreignEnd);
    expect((await store.run("t", 5))!.epoch).toBe(epoch + 1);
    expect(await claimed(store, "new", "r")).toMatchObject({ epoch: epoch + 2 });
  },
);

test.each<[string, Parameters<typeof mark>[0]]>([
  ["all runs", { below: 3, chunksBelow: 3, runs: [] }],
  ["more chunks than were cut off", { below: 1, chunksBelow: 3, runs: [] }],
  ["a run that counts", { below: 1, chunksBelow: 2, runs: [[2, 2]] }],
  ["runs that are still to come", { below: 1, chunksBelow: 2, runs: [[3, 9]] }],
  ["runs without end", { below: 1, chunksBelow: 2, runs: [[3, Number.MAX_SAFE_INTEGER]] }],
])("a mark that calls %s garbage is not believed: nothing goes (L1, L10)", async (_what, garbage) => {
  const { store, db } = await hurt(cutOff);
  await db.put("meta", mark(garbage), "garbage:t");
  const before = await dumpOf(db);
  await expect(store.sweep()).rejects.toMatchObject(corrupt("meta"));
  expect(await dumpOf(db)).toEqual(before);
});

test("a thread whose mark is no mark is deleted, and begins anew (L7, L10)", async () => {
  const { store, db } = await hurt(cutOff);
  await db.put("meta", 7, "garbage:t");
  expect(await store.deleteThread("t")).toBe(true);
  for (const name of ["runs", "chunks", "messages", "states"] as const) expect(await db.count(name)).toBe(0);
  await withRuns(store, "t", ["r0"]);
  expect(await store.deleteThread("t")).toBe(true);
});

test("a thread of which nothing but an empty head was left is deleted again and again (L7, L10)", async () => {
  const { store, db } = await hurt(async (empty) => void (await empty.head("t")));
  await (db as unknown as IDBPDatabase).put("heads", { threadId: "t" });
  expect(await store.deleteThread("t")).toBe(true);
  expect(await store.deleteThread("t")).toBe(false);
  await withRuns(store, "t", ["r0"]);
  expect(await store.deleteThread("t")).toBe(true);
  expect(await db.getAllKeys("meta")).toEqual(["epoch"]);
});

test("a mark of a thread that nobody knows is not believed (L10)", async () => {
  const { store, db } = await hurt(async (filled, threadId) => void (await withRuns(filled, threadId, ["r0"])));
  await db.delete("heads", "t");
  await db.put("meta", mark({ below: 1, chunksBelow: 1, runs: [] }), "garbage:t");
  await expect(store.sweep()).rejects.toMatchObject(corrupt("meta"));
  expect(await db.count("chunks")).toBe(2);
});

const mark = (garbage: { below: number; chunksBelow: number; runs: [number, number][] }) => ({ epoch: 3, ...garbage });

test("a run whose record is too deep for some contexts gives up its id to its answer in a form that all can write (L7)", async () => {
  const { store, db } = await hurt(async (filled, threadId) => void (await withRuns(filled, threadId, ["r0"])));
  await change(db, "runs", ["t", 0], { closing: { terminal: nested(400) } });
  const base = (await store.head("t"))!;
  await claimed(store, "t", "r0", { base, prevRunIndex: 0, fingerprint: "answer", answerId: "a" });
  expect(await db.get("runs", ["t", 0])).toMatchObject({ runId: ["r0", "r0"] });
  expect(weigh(await db.get("runs", ["t", 0]), {}).depth).toBeLessThanOrEqual(MAX_DEPTH);
});

test("an append and a settlement on a head that is not valid say so and write nothing (L10)", async () => {
  const { store, db } = await hurt(async (filled, threadId) => void (await claimed(filled, threadId, "r")));
  const claim = { threadId: "t", runIndex: 0, runId: "r", epoch: 1, holder: "host-1" };
  await (db as unknown as IDBPDatabase).put("heads", { ...(await store.head("t"))!, stop: null });
  const before = await dumpOf(db);
  await expect(store.append(claim, chunkOf(claim, 0, [delta("a")]))).rejects.toMatchObject(corrupt("heads"));
  await expect(store.settle(claim, settlement(claim, 0))).rejects.toMatchObject(corrupt("heads"));
  await expect(store.derive("t", 0, settlement(claim, 0).closing, settlement(claim, 0).derived)).rejects.toMatchObject(
    corrupt("heads"),
  );
  expect(await dumpOf(db)).toEqual(before);
});

test("keys like __proto__ in what an agent says come back as they were, and are nothing but data (L2)", async () => {
  const { store } = await hurt(async (filled, threadId) => void (await withRuns(filled, threadId, ["r0"])));
  const odd: unknown = JSON.parse('{ "__proto__": { "polluted": true }, "constructor": 1, "toString": null }');
  const claim = await claimed(store, "t", "r1", { base: (await store.head("t"))!, prevRunIndex: 0 });
  const end = settlement(claim, 0);
  await store.settle(claim, { ...end, derived: { ...end.derived, state: odd } });
  const { state } = (await store.stateAfter("t", 1))!;
  expect(JSON.stringify(state)).toBe(JSON.stringify(odd));
  expect((await runOn(store, "t", "r2", 1)).runIndex).toBe(2);
  expect(await store.cut("t", (await store.head("t"))!.epoch, { ...baseAt(1), state: odd })).toBe(2);
  expect(({} as Fields)["polluted"]).toBeUndefined();
});
