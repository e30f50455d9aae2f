import "fake-indexeddb/auto";
import type { IDBPDatabase } from "idb";
import { expect, onTestFinished, test } from "vitest";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { REPACK_PIECE } from "../../../src/storage/indexeddb/repack.js";
import type { RuntimeSchema } from "../../../src/storage/indexeddb/schema.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { freshDb } from "../runner/kit.js";
import { failing, loseCommitOver, watchTransactions } from "./idb-spy.js";
import { baseAt, claimed, runOn } from "./kit.js";
import { rawOf } from "./raw.js";
import { allChunks, appendAll, eventsIn, ones, settledRun } from "./repack.suite.js";

async function opened(
  dbName = freshDb(),
): Promise<{ store: RunStore; other: RunStore; db: IDBPDatabase<RuntimeSchema> }> {
  const [store, other] = [indexedDBRunStore({ dbName }), indexedDBRunStore({ dbName })];
  onTestFinished(() => Promise.all([store.close(), other.close()]).then(() => undefined));
  await store.head("t");
  return { store, other, db: await rawOf(dbName) };
}

const isWrite = ({ mode }: { readonly mode: IDBTransactionMode }): boolean => mode === "readwrite";

test("it takes short transactions over the chunks alone, in between which others append (L15)", async () => {
  const { store } = await opened();
  await settledRun(store, "r", ones(500));
  const claim = await claimed(store, "other", "r");
  const seen = watchTransactions();
  const repacking = store.repack("t", 0);
  await appendAll(store, claim, ones(3));
  await repacking;
  const isAppend = ({ stores }: { readonly stores: readonly string[] }): boolean => stores.join() === "chunks,heads";
  const writes = seen.filter(isWrite);
  expect(writes.filter(isAppend)).toHaveLength(3);
  const own = writes.filter((tx) => !isAppend(tx));
  expect(own.every(({ stores, durability }) => stores.join() === "chunks" && durability === "relaxed")).toBe(true);
  expect(Math.max(...own.map(({ deleted }) => deleted))).toBe(REPACK_PIECE);
  expect(writes.findLastIndex(isAppend)).toBeLessThan(writes.length - 1);
});

test("a run of 20,000 events in as many records is read from a handful (L16)", async () => {
  const { store, db } = await opened();
  const claim = await claimed(store, "t", "r");
  const filling = db.transaction("chunks", "readwrite");
  await appendAll(
    {
      ...store,
      append: async (_claim, chunk) => {
        void filling.store.put(chunk);
        return {};
      },
    },
    claim,
    ones(20_000),
  );
  await filling.done;
  await store.settleForeign("t", "r", "broken", 4_000, () => ({
    ...claim,
    firstSeq: 20_000,
    count: 1,
    entries: [{ event: { type: "RUN_ERROR" as never, message: "over" } }],
    at: 1,
    times: [1, 0],
  }));
  const readsOf = async (): Promise<number> => {
    const seen = watchTransactions();
    expect(eventsIn(await allChunks(store, 0, 4_096))).toHaveLength(20_001);
    return seen.length;
  };
  const [before, reads] = [await db.count("chunks"), await readsOf()];
  await store.repack("t", 0);
  const [after, readsAfter] = [await db.count("chunks"), await readsOf()];
  expect(before).toBe(20_001);
  expect(after).toBeLessThanOrEqual(10);
  expect(readsAfter).toBeLessThan(reads / 5);
  if (process.env["REPORT"] !== undefined) console.log({ before, after, reads, readsAfter });
});

test("a death in the middle leaves the run whole; the next time goes on from there (L1, L9)", async () => {
  const { store, db } = await opened();
  await settledRun(store, "r", ones(400));
  const truth = eventsIn(await allChunks(store, 0));
  let writes = 0;
  watchTransactions(failing((tx) => isWrite(tx) && ++writes === 3));
  await expect(store.repack("t", 0)).rejects.toMatchObject({ code: "quota-exceeded" });
  const between = await db.count("chunks");
  expect(between).toBe(401 - 2 * (REPACK_PIECE - 1));
  expect(eventsIn(await allChunks(store, 0))).toEqual(truth);
  await store.repack("t", 0);
  expect(await db.count("chunks")).toBe(1);
  expect(eventsIn(await allChunks(store, 0))).toEqual(truth);
});

test("who is told to end ends with a whole run (L13)", async () => {
  const { store, db } = await opened();
  await settledRun(store, "r", ones(400));
  const ending = new AbortController();
  let writes = 0;
  watchTransactions((tx) => {
    if (isWrite(tx) && ++writes === 2) ending.abort();
  });
  await store.repack("t", 0, ending.signal);
  expect(await db.count("chunks")).toBe(401 - 2 * (REPACK_PIECE - 1));
  expect(eventsIn(await allChunks(store, 0))).toHaveLength(401);
});

test.each(["committed", "aborted"] as const)("a commit that is not heard (%s) loses nothing (L8)", async (how) => {
  const { store } = await opened();
  await settledRun(store, "r", ones(100));
  const truth = eventsIn(await allChunks(store, 0));
  const falling = loseCommitOver(["chunks"], how);
  await store.repack("t", 0);
  expect(falling.lost()).toBe(true);
  expect(eventsIn(await allChunks(store, 0))).toEqual(truth);
});

test("two hosts repack one run at once and lose nothing (L1)", async () => {
  const { store, other, db } = await opened();
  await settledRun(store, "r", ones(300));
  const truth = eventsIn(await allChunks(store, 0));
  await Promise.all([store.repack("t", 0), other.repack("t", 0)]);
  await store.repack("t", 0);
  expect(eventsIn(await allChunks(store, 0))).toEqual(truth);
  expect(await db.count("chunks")).toBe(1);
});

/** Does something else just before the write of a joined record takes place. */
function beforeReplacing(work: () => void): void {
  let done = false;
  watchTransactions((tx) => {
    if (done || !isWrite(tx) || tx.stores.join() !== "chunks") return;
    done = true;
    work();
  });
}

test.each(["deleted", "cut off"])(
  "nothing of a run comes back that is %s between the read and the write (L1)",
  async (how) => {
    const { store, other, db } = await opened();
    await settledRun(store, "r", ones(50));
    await runOn(store, "t", "r1", 0);
    const { epoch } = (await store.head("t"))!;
    let going: Promise<unknown> | undefined;
    // What is asked of another connection comes first where its transactions are older.
    const range = IDBKeyRange.bound(["t", 0], ["t", 1], false, true);
    beforeReplacing(() => {
      const deleting = db.transaction("chunks", "readwrite");
      void deleting.store.delete(range);
      going = how === "deleted" ? other.deleteThread("t") : other.cut("t", epoch, baseAt(0));
    });
    await store.repack("t", 0);
    await going;
    expect(await db.count("chunks", range)).toBe(0);
  },
);

test.each([
  ["was joined by another host", (chunk: { count: number }) => ({ ...chunk, count: 2, times: [2, 0] })],
  ["is another run's", (chunk: { epoch: number }) => ({ ...chunk, epoch: chunk.epoch + 1 })],
])("a record that %s since it was read is not written over (L1)", async (_name, change) => {
  const { store, db } = await opened();
  await settledRun(store, "r", ones(50));
  const last = (await db.get("chunks", ["t", 0, 49]))!;
  beforeReplacing(() => {
    const changing = db.transaction("chunks", "readwrite");
    // A record of the same key.
    void changing.store.put(change(last as never) as never);
    void changing.store.delete(["t", 0, 50]);
  });
  await store.repack("t", 0);
  expect(await db.count("chunks")).toBe(50);
});

test.each([
  ["payload", { entries: "none" }],
  ["count", { count: 0 }],
  ["place", { firstSeq: 99.5 }],
])("a record whose %s is not valid is left as it is, and so is what follows it (L10)", async (_what, changed) => {
  const { store, db } = await opened();
  await settledRun(store, "r", ones(200));
  const wrong = { ...(await db.get("chunks", ["t", 0, 100]))!, ...changed };
  await db.delete("chunks", ["t", 0, 100]);
  await db.put("chunks", wrong as never);
  await store.repack("t", 0);
  expect(await db.get("chunks", ["t", 0, wrong.firstSeq])).toEqual(wrong);
  const left = Array.from({ length: 201 - REPACK_PIECE }, (_, n) => n + REPACK_PIECE);
  expect((await db.getAllKeys("chunks")).map(([, , seq]) => seq)).toEqual([
    0,
    ...left.map((seq) => (seq === 100 ? wrong.firstSeq : seq)),
  ]);
  await expect(store.chunks("t", 0, 99, 10)).rejects.toMatchObject({ code: "corrupt-record" });
});

test("joined records pass the codec like others", async () => {
  const dbName = freshDb();
  const store = indexedDBRunStore({
    dbName,
    codec: {
      encode: (value) => Promise.resolve({ wrapped: value }),
      decode: (stored) => Promise.resolve((stored as { wrapped: unknown }).wrapped),
    },
  });
  onTestFinished(() => store.close());
  await settledRun(store, "r", ones(20));
  const truth = eventsIn(await allChunks(store, 0));
  await store.repack("t", 0);
  const db = await rawOf(dbName);
  expect((await db.getAll("chunks")).map(({ entries }) => Object.keys(entries as object))).toEqual([["wrapped"]]);
  expect(eventsIn(await allChunks(store, 0))).toEqual(truth);
});
