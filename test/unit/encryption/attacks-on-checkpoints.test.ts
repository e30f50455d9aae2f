import "fake-indexeddb/auto";
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import { openDB, type IDBPDatabase } from "idb";
import { expect, onTestFinished, test } from "vitest";
import type { IndexedDBSaverOptions } from "../../../src/langgraph/indexeddb-saver.js";
import { isSealed } from "../../../src/storage/codec.js";
import { checkpoint, freshName as freshCheckpoints, openedStore } from "../checkpoint/kit.js";
import { checkpointOf, freshName, listOf, metadataOf, opened, threadConfig, valuesOf } from "../langgraph/kit.js";
import { encryption } from "./fast-key.js";

type Bytes = Uint8Array;

/** What becomes of a payload; `other` is one of another place. */
const ATTACKS: readonly [string, (bytes: Bytes, other: Bytes, plain: unknown) => unknown][] = [
  ["swapped with another one", (_bytes, other) => other],
  ["emptied", (bytes) => bytes.slice(0, 0)],
  ["cut to its header", (bytes) => bytes.slice(0, 6)],
  ["cut to what no tag fits in", (bytes) => bytes.slice(0, 33)],
  ["cut to its tag", (bytes) => bytes.slice(0, 34)],
  ["cut by a byte", (bytes) => bytes.slice(0, -1)],
  ["made longer", (bytes) => Uint8Array.of(...bytes, 0)],
  ...[0, 1, 5, 8, 20, -1].map((at): (typeof ATTACKS)[number] => [
    `changed in one bit of byte ${at}`,
    (bytes) => bytes.with(at, bytes.at(at)! ^ 1),
  ]),
  ["of a key that there is not", (bytes) => bytes.with(5, 9)],
  ["of another form", (bytes) => bytes.with(1, 1)],
  ["replaced by a plain one", (_bytes, _other, plain) => plain],
];

async function rawOf(name: string): Promise<IDBPDatabase> {
  const db = await openDB(name);
  onTestFinished(() => db.close());
  return db;
}

const corrupt = { code: "corrupt-record" };

test.each(ATTACKS)(
  "a checkpoint that is %s is refused, others are read, and its run goes on",
  async (_what, change) => {
    const dbName = freshCheckpoints();
    const store = openedStore(dbName, { encryption });
    await store.save(checkpoint("a"));
    await store.save(checkpoint("b", { runId: "other" }));
    const db = await rawOf(`${dbName}.checkpoints`);
    const [a, b] = [await db.get("states", "a"), await db.get("states", "b")] as { checkpoint: Bytes }[];
    const forged = checkpoint("a", { state: { ...checkpoint("a").state, scratch: "forged" } });
    await db.put("states", { ...a, checkpoint: change(a!.checkpoint, b!.checkpoint, forged) });
    await expect(store.get("a")).rejects.toMatchObject({ ...corrupt, details: { store: "states", checkpointId: "a" } });
    await expect(store.latest("run")).rejects.toMatchObject(corrupt);
    await expect(store.fork("a")).rejects.toMatchObject(corrupt);
    expect(await store.get("b")).toEqual(checkpoint("b", { runId: "other" }));
    expect(await store.list("graph")).toHaveLength(2);
    await store.save(checkpoint("c", { timestamp: 2_000 }));
    expect(await store.latest("run")).toMatchObject({ id: "c" });
    await store.save(checkpoint("a"));
    expect(await store.get("a")).toEqual(checkpoint("a"));
  },
);

test("a checkpoint that somebody has made the newest of its run is refused", async () => {
  const dbName = freshCheckpoints();
  const store = openedStore(dbName, { encryption });
  for (const [n, id] of ["a", "b"].entries()) await store.save(checkpoint(id, { timestamp: n }));
  const db = await rawOf(`${dbName}.checkpoints`);
  const metadata = (await db.get("metadata", "a")) as { place: [number, number] };
  await db.put("metadata", { ...metadata, timestamp: 9, place: [-9, metadata.place[1]] });
  await expect(store.latest("run")).rejects.toMatchObject({ ...corrupt, details: { checkpointId: "a" } });
  await expect(store.load("run", "node")).rejects.toMatchObject({ ...corrupt, details: { checkpointId: "a" } });
  expect(await store.get("b")).toMatchObject({ id: "b" });
});

test("a checkpoint's earlier form is read in the place of the present one: the whole record is the older one", async () => {
  const dbName = freshCheckpoints();
  const store = openedStore(dbName, { encryption });
  await store.save(checkpoint("a", { timestamp: 1_000 }));
  const db = await rawOf(`${dbName}.checkpoints`);
  const before: unknown = await db.get("states", "a");
  await store.save(checkpoint("a", { timestamp: 2_000 }));
  await db.put("states", before);
  // As the guide says of an earlier record of the same id.
  expect(await store.get("a")).toMatchObject({ timestamp: 1_000 });
});

/** Each payload of a saver: its store, its field and whether it is found. */
const FIELDS = [
  ["checkpoints", "checkpoint"],
  ["checkpoints", "metadata"],
  ["values", "value"],
  ["writes", "value"],
] as const;

async function twoThreads() {
  const dbName = freshName();
  const saver = opened(dbName, { encryption });
  const configs = [];
  for (const threadId of ["t", "u"]) {
    const config = await saver.put(threadConfig(threadId), checkpointOf({ a: `of ${threadId}` }), metadataOf(0), {
      a: 1,
    });
    await saver.putWrites(config, [["a", `write of ${threadId}`]], "task");
    configs.push(config);
  }
  return { saver, db: await rawOf(`${dbName}.langgraph`), config: configs[0]!, other: configs[1]! };
}

test.each(FIELDS.flatMap(([name, field]) => ATTACKS.map(([what, change]) => [name, field, what, change] as const)))(
  "of a saver's %s, a %s that is %s is refused, others are read, and the thread goes on",
  async (name, field, _what, change) => {
    const { saver, db, config, other } = await twoThreads();
    const [record, second] = (await db.getAll(name)) as Record<string, Bytes>[];
    expect(isSealed(record![field])).toBe(true);
    const plain = { type: "json", data: new TextEncoder().encode('"forged"') };
    await db.put(name, { ...record, [field]: change(record![field]!, second![field]!, plain) });
    const told = { ...corrupt, details: { store: name, threadId: "t" } };
    await expect(saver.getTuple(config)).rejects.toMatchObject(told);
    await expect(saver.getTuple(threadConfig("t"))).rejects.toMatchObject(told);
    await expect(listOf(saver.list(threadConfig("t"), { filter: { step: 0 } }))).rejects.toMatchObject(told);
    expect(valuesOf(await saver.getTuple(other))).toEqual({ a: "of u" });
    const next = await saver.put(config, checkpointOf({ a: "again" }, 2), metadataOf(1), { a: 2 });
    expect(valuesOf(await saver.getTuple(next))).toEqual({ a: "again" });
    await saver.deleteThread("t");
    expect(await saver.getTuple(threadConfig("t"))).toBeUndefined();
  },
);

test("an older value of a channel is refused in the place of the one that a checkpoint names", async () => {
  const dbName = freshName();
  const saver = opened(dbName, { encryption });
  let config = threadConfig("t");
  for (const version of [1, 2, 3]) {
    const next = checkpointOf({ a: `a${version}`, b: "b" }, version);
    next.channel_versions = { a: version === 3 ? 2 : version, b: 1 };
    const added: Record<string, number> = version === 1 ? { a: 1, b: 1 } : version === 2 ? { a: 2 } : {};
    config = await saver.put(config, next, metadataOf(version), added);
  }
  expect(valuesOf(await saver.getTuple(config))).toEqual({ a: "a2", b: "b" });
  const db = await rawOf(`${dbName}.langgraph`);
  const records = (await db.getAll("checkpoints")) as { channels: object[] }[];
  const [oldest, , newest] = records;
  await db.put("checkpoints", { ...newest, channels: oldest!.channels });
  await expect(saver.getTuple(config)).rejects.toMatchObject(corrupt);
});

/** Saves as builds did that named no channels in a checkpoint. */
class WithoutNames extends JsonPlusSerializer {
  override dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
    const isCheckpoint = typeof value === "object" && value !== null && "channel_values" in value;
    return super.dumpsTyped(isCheckpoint ? { ...value, channel_values: {} } : value);
  }
}

/** A checkpoint with a value of its own, one that it keeps, and a channel whose value is nowhere. */
async function withChannels(options: IndexedDBSaverOptions = {}) {
  const dbName = freshName();
  const saver = opened(dbName, { encryption, ...options });
  const first = await saver.put(threadConfig("t"), checkpointOf({ a: "a", b: "b" }), metadataOf(0), { a: 1, b: 1 });
  const next = checkpointOf({ a: "a2", b: "b", lost: "lost" });
  next.channel_versions = { a: 2, b: 1, lost: 1 };
  const config = await saver.put(first, next, metadataOf(1), { a: 2 });
  const db = await rawOf(`${dbName}.langgraph`);
  const record = ((await db.getAll("checkpoints")) as { channels: { channel: string }[] }[])[1]!;
  return { saver, config, db, record };
}

test.each(["a", "b"])("a checkpoint from whose channels somebody has removed %s is refused", async (removed) => {
  const { saver, config, db, record } = await withChannels();
  expect(valuesOf(await saver.getTuple(config))).toEqual({ a: "a2", b: "b" });
  await db.put("checkpoints", { ...record, channels: record.channels.filter(({ channel }) => channel !== removed) });
  await expect(saver.getTuple(config)).rejects.toMatchObject(corrupt);
  await db.put("checkpoints", { ...record, channels: [] });
  await expect(saver.getTuple(config)).rejects.toMatchObject(corrupt);
});

test("a checkpoint to which somebody has added a channel is refused", async () => {
  const { saver, config, db, record } = await withChannels();
  const without = await saver.put(config, { ...checkpointOf({}), channel_versions: { a: 2 } }, metadataOf(2), {});
  expect(valuesOf(await saver.getTuple(without))).toEqual({});
  const last = ((await db.getAll("checkpoints")) as object[])[2]!;
  await db.put("checkpoints", { ...last, channels: record.channels.filter(({ channel }) => channel === "a") });
  await expect(saver.getTuple(without)).rejects.toMatchObject(corrupt);
});

test("a checkpoint that does not name its channels, as older builds saved it, is read", async () => {
  const { saver, config } = await withChannels({ serde: new WithoutNames() });
  expect(valuesOf(await saver.getTuple(config))).toEqual({ a: "a2", b: "b" });
});

test("a checkpoint under another parent, or of another format, is refused", async () => {
  const { saver, db, config } = await twoThreads();
  const [record] = (await db.getAll("checkpoints")) as object[];
  for (const change of [{ parentId: "other" }, { format: 1 }]) {
    await db.put("checkpoints", { ...record, ...change });
    await expect(saver.getTuple(config)).rejects.toMatchObject(corrupt);
  }
});

test("a write under another task path, or to another channel, is refused", async () => {
  const { saver, db, config } = await twoThreads();
  const [record] = (await db.getAll("writes")) as object[];
  for (const change of [{ taskPath: "other" }, { channel: "b" }]) {
    await db.put("writes", { ...record, ...change });
    await expect(saver.getTuple(config)).rejects.toMatchObject(corrupt);
  }
});
