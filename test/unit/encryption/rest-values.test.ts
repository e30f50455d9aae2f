import "fake-indexeddb/auto";
import { openDB, type IDBPDatabase } from "idb";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.js";
import { isSealed, type PayloadCodec } from "../../../src/storage/codec.js";
import { checkpoint, freshName as freshCheckpoints, openedStore } from "../checkpoint/kit.js";
import { checkpointOf, freshName, metadataOf, opened, threadConfig, valuesOf } from "../langgraph/kit.js";
import { watchTransactions } from "../storage/idb-spy.js";
import { encryption, usesIn } from "./fast-key.js";
import { isFound } from "./kit.js";

/*
 * Values that are no JSON, or no values at all, in what is encrypted in the background.
 */

async function rawOf(name: string): Promise<IDBPDatabase> {
  const db = await openDB(name);
  onTestFinished(() => db.close());
  return db;
}

const withScratch = (id: string, scratch: unknown): Checkpoint =>
  checkpoint(id, { state: { ...checkpoint(id).state, scratch } });

/** A store with the key, and its database, in which these were saved without one. */
async function savedPlain(...checkpoints: readonly Checkpoint[]) {
  const dbName = freshCheckpoints();
  const before = openedStore(dbName);
  for (const one of checkpoints) await before.save(one);
  await before.close();
  const db = await rawOf(`${dbName}.checkpoints`);
  const isWhole = () => vi.waitFor(async () => expect(usesIn(await db.get("keys", "keys"))?.isWhole).toBe(true));
  return { store: openedStore(dbName, { encryption }), db, isWhole };
}

test.each<[string, unknown]>([
  ["no value", undefined],
  ["a value without bytes", { type: "json" }],
  ["bytes of another kind", { type: "json", data: "text" }],
])("%s in one record keeps no other record of a saver's database from being encrypted", async (_what, value) => {
  const dbName = freshName();
  const before = opened(dbName);
  const configs = [];
  for (const id of ["t", "u"])
    configs.push(await before.put(threadConfig(id), checkpointOf({ a: `planted in ${id}` }), metadataOf(0), { a: 1 }));
  await before.close();
  const db = await rawOf(`${dbName}.langgraph`);
  const malformed = { ...((await db.getAll("values"))[0] as object), value };
  await db.put("values", malformed);
  const saver = opened(dbName, { encryption });
  expect(valuesOf(await saver.getTuple(configs[1]!))).toEqual({ a: "planted in u" });
  await vi.waitFor(async () => expect(await isFound(`${dbName}.langgraph`, "planted in u")).toBe(false));
  expect(await db.getAll("values")).toContainEqual(malformed);
  expect(usesIn(await db.get("keys", "keys"))).toMatchObject({ isWhole: false });
});

test("bytes in a value are no fields: nothing is made of each of them (L19)", async () => {
  const bytes = new Uint8Array(100_000).fill(7);
  const { store, isWhole } = await savedPlain(withScratch("a", { file: bytes }));
  const keys = vi.spyOn(Object, "keys");
  const entries = vi.spyOn(Object, "entries");
  onTestFinished(() => void [keys, entries].forEach((spy) => spy.mockRestore()));
  await store.list("graph");
  await isWhole();
  const walked = [keys, entries].flatMap((spy) => spy.mock.calls.map(([of]) => of));
  expect(walked.filter((of) => ArrayBuffer.isView(of))).toEqual([]);
  const { file } = (await store.get("a"))!.state.scratch as { file: Uint8Array };
  expect(Buffer.compare(file, bytes)).toBe(0);
});

test("few large records are read at once", async () => {
  const large = "x".repeat(3_000_000);
  const { store, isWhole } = await savedPlain(
    ...Array.from({ length: 12 }, (_, n) => withScratch(String(n).padStart(2, "0"), large)),
  );
  const counts: number[] = [];
  const { getAll } = IDBObjectStore.prototype;
  onTestFinished(() => {
    IDBObjectStore.prototype.getAll = getAll;
  });
  IDBObjectStore.prototype.getAll = function (range, count) {
    if (this.name === "states") counts.push(Number(count));
    return getAll.call(this, range, count);
  };
  await store.list("graph");
  await isWhole();
  expect(Math.max(...counts)).toBeLessThanOrEqual(4);
});

test.each<[string, unknown, unknown]>([
  ["a map", new Map([["a", 1]]), new Map([["a", 2]])],
  ["a set", new Set([1]), new Set([2])],
  ["a date", new Date(1), new Date(2)],
  ["bytes", new Uint8Array([1]), new Uint8Array([2])],
])("%s that is changed while it is encrypted stays as it was changed", async (_what, before, after) => {
  const { store, db, isWhole } = await savedPlain(withScratch("a", before));
  let isDone = false;
  watchTransactions(({ mode, stores }) => {
    if (isDone || mode !== "readwrite" || stores.join() !== "states") return;
    isDone = true;
    void db.put("states", { id: "a", checkpoint: withScratch("a", after) });
  });
  await store.list("graph");
  await isWhole();
  expect(isDone).toBe(true);
  expect((await store.get("a"))?.state.scratch).toEqual(after);
});

test("a value that contains itself is encrypted", async () => {
  const scratch: Record<string, unknown> = { text: "planted" };
  scratch["self"] = scratch;
  const { store, db, isWhole } = await savedPlain(withScratch("a", scratch));
  await store.list("graph");
  await isWhole();
  expect(await db.get("states", "a")).toMatchObject({ checkpoint: expect.any(Uint8Array) });
  expect((await store.get("a"))?.state.scratch).toEqual(scratch);
});

test("what a codec of one's own has made is left to it, and it is refused beside an encryption", async () => {
  const codec: PayloadCodec = {
    encode: async (value) => btoa(JSON.stringify(value)),
    decode: async (stored) => JSON.parse(atob(String(stored))) as unknown,
  };
  const dbName = freshCheckpoints();
  for (const [id, options] of Object.entries({ own: { codec }, plain: {} })) {
    const before = openedStore(dbName, options);
    await before.save(checkpoint(id));
    await before.close();
  }
  expect(() => openedStore(dbName, { codec, encryption })).toThrow(
    expect.objectContaining({ code: "invalid-input", details: { field: "codec" } }),
  );
  const encrypted = openedStore(dbName, { encryption });
  await expect(encrypted.get("own")).rejects.toMatchObject({ code: "corrupt-record" });
  const db = await rawOf(`${dbName}.checkpoints`);
  await vi.waitFor(async () => expect(isSealed((await db.get("states", "plain")).checkpoint)).toBe(true));
  expect(await openedStore(dbName, { codec }).get("own")).toEqual(checkpoint("own"));
});

test("what has no encrypted form is refused with its field, and nothing is written", async () => {
  const store = openedStore(freshCheckpoints(), { encryption });
  const refused = { code: "invalid-input", details: { field: "checkpoint.state.scratch.files[0]" } };
  await expect(store.save(withScratch("a", { files: [new Blob(["x"])] }))).rejects.toMatchObject(refused);
  expect(await store.list("graph")).toEqual([]);
});
