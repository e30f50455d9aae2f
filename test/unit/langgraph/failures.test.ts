import "fake-indexeddb/auto";
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import { openDB } from "idb";
import { expect, test } from "vitest";
import type { IndexedDBSaver } from "../../../src/langgraph/indexeddb-saver.js";
import type { SaverSchema, Stores } from "../../../src/langgraph/schema.js";
import { langGraphDbName } from "../../../src/platform/names.js";
import { failing, fillDiskFor, loseCommitOver, watchTransactions } from "../storage/idb-spy.js";
import { impatient } from "../storage/kit.js";
import { checkpointOf, countsOf, freshName, listOf, opened, put, rawOf, threadConfig, valuesOf } from "./kit.js";

/** A thread of two checkpoints with a pending write. */
async function filled(saver: IndexedDBSaver) {
  const first = await put(saver, threadConfig("t"), checkpointOf({ a: 1, b: 1 }));
  const second = await put(saver, first, checkpointOf({ a: 2 }, 2));
  await saver.putWrites(second, [["a", 3]], "task");
  return { first, second };
}

/** Everything in the database, to be compared. */
async function dumpOf(dbName: string): Promise<unknown> {
  const db = await rawOf(dbName);
  return Promise.all([db.getAll("checkpoints"), db.getAll("values"), db.getAll("writes")]);
}

type Filled = Awaited<ReturnType<typeof filled>>;

const WRITES: readonly [string, Stores[], (saver: IndexedDBSaver, at: Filled) => Promise<unknown>][] = [
  [
    "put",
    ["checkpoints", "keys", "values"],
    (saver, { second }) => put(saver, second, checkpointOf({ a: 4, b: 4 }, 3)),
  ],
  ["putWrites", ["checkpoints", "keys", "writes"], (saver, { second }) => saver.putWrites(second, [["a", 4], ["b", 5]], "other")], // prettier-ignore
  ["deleteThread", ["checkpoints", "values", "writes"], (saver) => saver.deleteThread("t")],
  ["deleteCheckpoint", ["checkpoints", "writes"], (saver) => saver.deleteCheckpoint(threadConfig("t"))],
];

for (const [name, stores, write] of WRITES) {
  test(`${name} is one strict transaction`, async () => {
    const saver = opened();
    const at = await filled(saver);
    const seen = watchTransactions();
    await write(saver, at);
    expect(seen).toMatchObject([{ stores: stores.toSorted(), mode: "readwrite", durability: "strict" }]);
  });

  test.each(["write", "commit"] as const)(
    `${name} on a full disk, told at its %s, is an error and changes nothing (L10)`,
    async (when) => {
      const dbName = freshName();
      const saver = opened(dbName);
      const at = await filled(saver);
      const before = await dumpOf(dbName);
      const disk = fillDiskFor(stores, when);
      await expect(write(saver, at)).rejects.toMatchObject({ code: "quota-exceeded" });
      expect(disk.hit()).toBe(true);
      expect(await dumpOf(dbName)).toEqual(before);
      expect(valuesOf(await saver.getTuple(at.second))).toEqual({ a: 2 });
    },
  );

  test.each(["committed", "aborted"] as const)(
    `${name} whose connection falls at the commit, which was %s, comes to the same (L10)`,
    async (how) => {
      const dbName = freshName();
      const untouched = opened();
      const saver = opened(dbName);
      const at = await filled(saver);
      await write(untouched, await filled(untouched));
      const loss = loseCommitOver(stores, how);
      await write(saver, at);
      expect(loss.lost()).toBe(true);
      const seen = async (of: IndexedDBSaver): Promise<unknown[]> =>
        (await listOf(of.list({}))).map((tuple) => [valuesOf(tuple), tuple.pendingWrites]);
      expect(await seen(saver)).toEqual(await seen(untouched));
    },
  );
}

test("a large thread is gone at once, and its values go in pieces; it may begin anew meanwhile", async () => {
  const dbName = freshName();
  const saver = opened(dbName);
  const many = Object.fromEntries(Array.from({ length: 2_500 }, (_, n) => [`c${n}`, n]));
  const config = await put(saver, threadConfig("t"), checkpointOf(many));
  await saver.putWrites(config, [["c0", 1]], "task");
  let isFull = true;
  let anew: Promise<RunnableConfig> | undefined;
  const seen = watchTransactions(({ stores }) => {
    if (stores.join() !== "values") return;
    if (isFull) throw new DOMException("full", "QuotaExceededError");
    anew ??= put(saver, threadConfig("t"), checkpointOf({ c0: "new" }, 2));
  });
  await expect(saver.deleteThread("t")).rejects.toMatchObject({ code: "quota-exceeded" });
  expect(await listOf(saver.list({}))).toEqual([]);
  isFull = false;
  await saver.deleteThread("t");
  expect(valuesOf(await saver.getTuple(await anew!))).toEqual({ c0: "new" });
  expect(await countsOf(dbName)).toEqual({ checkpoints: 1, values: 1, writes: 0 });
  const pieces = seen.filter(({ mode, stores }) => mode === "readwrite" && stores.length === 1);
  expect(pieces.map(({ deleted }) => deleted)).toEqual([1_000, 1_000, 500, 1]);
});

test("a list that finds nothing among many checkpoints looks through them in short transactions", async () => {
  const saver = opened();
  const many = Array.from({ length: 150 }, () => put(saver, threadConfig("t"), checkpointOf({})));
  await Promise.all(many);
  const seen = watchTransactions();
  expect(await listOf(saver.list(threadConfig("t"), { filter: { step: 7 } }))).toEqual([]);
  expect(seen.map(({ mode, stores }) => [mode, ...stores].join())).toEqual([
    "readonly,keys",
    ...Array<string>(3).fill("readonly,checkpoints"),
  ]);
});

test("a connection that falls twice is told as lost, and the next call finds another", async () => {
  const saver = opened();
  const { second } = await filled(saver);
  watchTransactions(failing(() => true, 2, new DOMException("Connection lost", "UnknownError")));
  await expect(saver.getTuple(second)).rejects.toMatchObject({ code: "storage-lost" });
  expect(valuesOf(await saver.getTuple(second))).toEqual({ a: 2 });
});

test("a newer build is given way, and what is asked afterwards is refused (L10)", async () => {
  const dbName = freshName();
  const saver = opened(dbName);
  await filled(saver);
  const newer = await openDB(langGraphDbName(dbName), 99);
  await expect(saver.getTuple(threadConfig("t"))).rejects.toMatchObject({ code: "outdated" });
  newer.close();
});

test("a database that is deleted under a saver is begun anew", async () => {
  const dbName = freshName();
  const saver = opened(dbName);
  await filled(saver);
  await new Promise((resolve) => {
    indexedDB.deleteDatabase(langGraphDbName(dbName)).onsuccess = resolve;
  });
  expect(await saver.getTuple(threadConfig("t"))).toBeUndefined();
  await filled(saver);
});

test("an open that is blocked is told in time (L13)", async () => {
  const dbName = freshName();
  const deaf = await openDB(langGraphDbName(dbName), 1);
  const deleting = indexedDB.deleteDatabase(langGraphDbName(dbName));
  const saver = opened(dbName, { clock: impatient, openTimeoutMs: 3_000 });
  await expect(saver.getTuple(threadConfig("t"))).rejects.toMatchObject({ code: expect.stringMatching(/^storage-/) });
  deaf.close();
  await new Promise((resolve) => (deleting.onsuccess = resolve));
});

type Change = (record: Record<string, unknown>) => unknown;

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Records that no saver wrote, of the newest checkpoint. */
test.each<[Stores, string, Change]>([
  ["checkpoints", "without its body", (it) => ({ ...it, checkpoint: undefined })],
  [
    "checkpoints",
    "whose body is no text of the serializer",
    (it) => ({ ...it, checkpoint: { type: "json", data: bytes("{") } }),
  ],
  [
    "checkpoints",
    "whose body is of an unknown type",
    (it) => ({ ...it, checkpoint: { type: "xml", data: bytes("{}") } }),
  ],
  ["checkpoints", "whose body is no checkpoint", (it) => ({ ...it, checkpoint: { type: "json", data: bytes("7") } })],
  ["checkpoints", "whose body has no versions", (it) => ({ ...it, checkpoint: { type: "json", data: bytes("{}") } })],
  ["checkpoints", "whose metadata are none", (it) => ({ ...it, metadata: { type: "json", data: bytes("null") } })],
  ["checkpoints", "whose format is none", (it) => ({ ...it, format: "4" })],
  ["checkpoints", "whose parent is no name", (it) => ({ ...it, parentId: 7 })],
  ["checkpoints", "whose channels are no list", (it) => ({ ...it, channels: {} })],
  [
    "checkpoints",
    "whose channels are no names",
    (it) => ({ ...it, channels: [{ channel: "a", version: NaN, writer: "w" }] }),
  ],
  ["values", "that is gone", () => undefined],
  ["values", "without bytes", (it) => ({ ...it, value: { type: "json", data: "1" } })],
  ["values", "that is no text of the serializer", (it) => ({ ...it, value: { type: "json", data: bytes("{") } })],
  ["writes", "without a path", (it) => ({ ...it, taskPath: undefined })],
  ["writes", "to no channel", (it) => ({ ...it, channel: null })],
  ["writes", "that is no text of the serializer", (it) => ({ ...it, value: { type: "json", data: bytes("") } })],
])("a record in %s %s is refused and left as it is, and others are read (L10)", async (store, _what, change) => {
  const dbName = freshName();
  const saver = opened(dbName);
  const { first, second } = await filled(saver);
  const db = await rawOf(dbName);
  const cursor = await db.transaction(store, "readwrite").store.openCursor(null, store === "values" ? "next" : "prev");
  // The value that is changed is the newest one of channel a.
  const at = store === "values" ? await cursor?.continue() : cursor;
  const changed = change({ ...at!.value });
  // What no saver wrote has no type of ours.
  await (changed === undefined ? at!.delete() : at!.update(changed as SaverSchema[typeof store]["value"]));
  const corrupt = {
    code: "corrupt-record",
    details: { store, threadId: "t", checkpointNs: "", checkpointId: second.configurable?.["checkpoint_id"] },
  };
  const before = await dumpOf(dbName);
  await expect(saver.getTuple(second)).rejects.toMatchObject(corrupt);
  await expect(saver.getTuple(threadConfig("t"))).rejects.toMatchObject(corrupt);
  await expect(listOf(saver.list(threadConfig("t")))).rejects.toMatchObject(corrupt);
  expect(valuesOf(await saver.getTuple(first))).toEqual({ a: 1, b: 1 });
  expect(await dumpOf(dbName)).toEqual(before);
  // The thread goes on from the one before.
  await saver.deleteCheckpoint(threadConfig("t"));
  expect((await saver.getTuple(threadConfig("t")))?.config).toEqual(first);
  await saver.deleteThread("t");
  expect(await countsOf(dbName)).toEqual({ checkpoints: 0, values: 0, writes: 0 });
});

test("what a serializer says of a value that it cannot read is in no details", async () => {
  const dbName = freshName();
  const { second } = await filled(opened(dbName));
  const serde = new JsonPlusSerializer();
  serde.loadsTyped = () => Promise.reject(new SyntaxError("Unexpected token in secret"));
  const refused: unknown = await opened(dbName, { serde })
    .getTuple(second)
    .catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "corrupt-record", details: { cause: "SyntaxError" } });
  expect(JSON.stringify(refused)).not.toContain("secret");
});

test.each<[Stores, string, Change]>([
  ["checkpoints", "an id that is no text", (it) => ({ ...it, id: new Uint8Array([255]) })],
  ["checkpoints", "a namespace that is no text", (it) => ({ ...it, ns: 7 })],
  ["writes", "a task that is no text", (it) => ({ ...it, taskId: 7 })],
  ["writes", "a place that is no number", (it) => ({ ...it, idx: "0" })],
])("a further record in %s with %s is refused (L10)", async (store, _what, change) => {
  const dbName = freshName();
  const saver = opened(dbName);
  await filled(saver);
  const db = await rawOf(dbName);
  const [record] = await db.getAll(store);
  // What no saver wrote has no type of ours.
  await db.put(store, change({ ...record! }) as SaverSchema[typeof store]["value"]);
  await expect(listOf(saver.list({}))).rejects.toMatchObject({
    code: "corrupt-record",
    details: { store },
  });
});
