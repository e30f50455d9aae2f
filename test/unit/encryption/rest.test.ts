import "fake-indexeddb/auto";
import { openDB } from "idb";
import { expect, onTestFinished, test, vi } from "vitest";
import { IndexedDBCheckpointStore } from "../../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import { SEALED } from "../../../src/storage/codec.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { checkpoint } from "../checkpoint/kit.js";
import { checkpointOf, metadataOf, opened as openedSaver, threadConfig, valuesOf } from "../langgraph/kit.js";
import { freshDb } from "../runner/kit.js";
import { outcomeOf, outcomesOf } from "../storage/corrupt-kit.js";
import { watchTransactions } from "../storage/idb-spy.js";
import { chunkOf, claimed, delta, leaving, request, settlement, withRuns } from "../storage/kit.js";
import { dumpOf } from "../storage/raw.js";
import { waiting } from "../storage/waiting.suite.js";
import { encryption, fastKey, usesIn } from "./fast-key.js";
import { fill, isFound, payloadsIn, reopened, restored, sealedDump, THREADS } from "./kit.js";

/** What is planted in the payloads of {@link fill}. */
const TEXTS = ["from r", "anew", "said in", "result in", "asked in", "failed in", "title of", "secret"];
const never = new AbortController().signal;

/** A thread in which two runs had one id: a later one took it, and the runs are told apart by their fingerprints. */
async function withTakenId(store: RunStore): Promise<void> {
  for (const [n, fingerprint] of ["1:first", "1:second"].entries()) {
    const base = await store.head("f-taken");
    const more = { base, prevRunIndex: base?.activeRunIndex ?? null, fingerprint, answerId: "a" };
    const claim = await claimed(store, "f-taken", "r", more);
    await store.append(claim, chunkOf(claim, 0, [delta(`from r ${n}`)]));
    await store.settle(claim, settlement(claim, 1, { derived: leaving(`a${n}`, `from r ${n}`, { n }) }));
  }
}

/** A database that nothing is encrypted in. The live run of each thread has ended: see the tests of those. */
const plain = await (async () => {
  const { store, db, close } = await reopened({}, {});
  await fill(store);
  await withTakenId(store);
  for (const threadId of ["b-varied", "c-varied"]) {
    const claim = { threadId, runIndex: 5, runId: "r5", epoch: (await store.head(threadId))!.epoch };
    await store.settle(
      { ...claim, holder: `holder of ${threadId}` },
      settlement({ ...claim, holder: "" }, 6, { status: "stopped" }),
    );
  }
  const dump = await dumpOf(db as never);
  await close();
  return dump;
})();

const ALL = [...THREADS, "f-taken"];

async function readsOf(store: RunStore): Promise<unknown> {
  return Promise.all(
    ALL.map(async (threadId) => {
      const { head, ...reads } = await outcomesOf(store, threadId, threadId === "f-taken" ? 1 : 5);
      const results = await outcomeOf(store.toolResults((head as { value: never }).value));
      const again = await Promise.all(["1:first", "1:second"].map((of) => outcomeOf(store.runById(threadId, "r", of))));
      return {
        ...withoutFingerprints(reads),
        results,
        again,
        waiting: await outcomeOf(store.waitingRuns(threadId, 9)),
      };
    }),
  );
}

/** Runs that are not asked for by their fingerprint are given with what is stored of it. */
const withoutFingerprints = (reads: object): object =>
  JSON.parse(JSON.stringify(reads, (key, value: unknown) => (key === "fingerprint" ? "" : value))) as object;

test("what was stored before the key was given is encrypted, however often that is cut off, and read as before", async () => {
  const { store: before, close } = await reopened(plain, {});
  const wanted = await readsOf(before);
  await close();
  const { store, db, dbName } = await restored(plain);
  for (const text of TEXTS) expect(await isFound(dbName, text), text).toBe(true);
  let rounds = 0;
  for (let steps = 1; ; steps++) {
    rounds++;
    const cut = new AbortController();
    let left = steps;
    const seen = watchTransactions(({ mode }) => {
      if (mode === "readwrite" && --left === 0) cut.abort();
    });
    await store.encryptRest!(cut.signal);
    expect(await readsOf(store)).toEqual(wanted);
    void seen;
    if (!cut.signal.aborted) break;
  }
  expect(rounds).toBeGreaterThan(3);
  for (const text of TEXTS) expect(await isFound(dbName, text), text).toBe(false);
  expect(await isFound(dbName, "1:first")).toBe(false);
  expect(usesIn(await db.get("meta", "keys"))).toMatchObject({ isWhole: true, caughtUp: 1 });
  // The kinds of payloads are those that are encrypted from the start.
  const kinds = (dump: Parameters<typeof payloadsIn>[0]) =>
    [...new Set(payloadsIn(dump).map((place) => `${place.store} ${place.path.at(-1)}`))].sort();
  expect(kinds(await dumpOf(db as never))).toEqual(kinds(await sealedDump()));
  // A run that is sent again is known.
  const same = request("f-taken", "r", { fingerprint: "1:second", base: await store.head("f-taken"), prevRunIndex: 1 });
  expect(await store.claim(same)).toMatchObject({ is: "exists", run: { runIndex: 1, fingerprint: "1:second" } });
  expect(await store.runById("f-taken", "r", "1:first")).toMatchObject({ runIndex: 0, fingerprint: "1:first" });
});

test("a run that is sent again is known before it is encrypted, too", async () => {
  const { store } = await restored(plain);
  const base = await store.head("f-taken");
  const more = { fingerprint: "1:second", base, prevRunIndex: 1, answerId: "a" };
  expect(await store.claim(request("f-taken", "r", more))).toMatchObject({ is: "exists", run: { runIndex: 1 } });
});

test.each(["run", "recovery"] as const)(
  "why a waiting %s could not be started is encrypted; of a plain message only what its code means is told",
  async (kind) => {
    const { store, db, dbName } = await restored({});
    await withRuns(store, "t", ["r0"]);
    await store.addWaiting(waiting("w"), 9);
    const record = (await db.getAll("waiting"))[0] as object;
    await db.put("waiting", kind === "run" ? record : { ...record, request: undefined, kind, of: "r0", ofIndex: 0 });
    const error = { code: "unknown-agent", message: "planted" } as const;
    await store.updateWaiting("t", "w", { error });
    await store.updateWaiting("t", "w", { notBefore: 7 });
    expect(await isFound(dbName, "planted")).toBe(false);
    expect(await store.waitingRuns("t")).toMatchObject([{ runId: "w", notBefore: 7, error }]);
    await db.put("waiting", { ...((await db.getAll("waiting"))[0] as object), error });
    const [row] = await store.waitingRuns("t");
    expect(row?.error).toEqual({ code: "unknown-agent", message: "No agent is registered under this id" });
    expect(row).toMatchObject(kind === "run" ? { request: waiting("w").request } : { of: "r0" });
    await store.updateWaiting("t", "w", { error: null });
    expect((await store.waitingRuns("t"))[0]).not.toHaveProperty("error");
  },
);

test("it goes on after its connection was closed in the middle", async () => {
  const { store, dbName } = await restored(plain);
  let left = 3;
  watchTransactions(({ mode }) => {
    if (mode === "readwrite" && --left === 0) void store.close();
  });
  await store.encryptRest!(never).catch(() => undefined);
  const next = indexedDBRunStore({ dbName, encryption });
  onTestFinished(() => next.close());
  await next.encryptRest!(never);
  for (const text of TEXTS) expect(await isFound(dbName, text), text).toBe(false);
});

test("a run of a host without the key, which began before, is left to it until it has ended", async () => {
  const { store, db, dbName } = await restored({});
  const keyless = indexedDBRunStore({ dbName });
  onTestFinished(() => keyless.close());
  const claim = await claimed(keyless, "t", "r", { fingerprint: "1:r" });
  // A later pass may do it.
  expect(await store.encryptRest!(never)).toBe(true);
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: false });
  await keyless.append(claim, chunkOf(claim, 0, [delta("planted")]));
  await keyless.settle(claim, settlement(claim, 1));
  expect(JSON.stringify(await store.chunks("t", 0, -1, 9))).toContain("planted");
  await store.encryptRest!(never);
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: true });
  expect(await isFound(dbName, "planted")).toBe(false);
  expect(JSON.stringify(await store.chunks("t", 0, -1, 9))).toContain("planted");
});

test("an answer that the live run was not given is encrypted, and goes along with the next one", async () => {
  const { store, db, dbName } = await restored(plain);
  const head = await store.head("d-calls");
  const device = { id: "phone-1", name: "Phone" };
  const live = await claimed(store, "d-calls", "r1", { base: head, prevRunIndex: 0, device });
  await store.encryptRest!(never);
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: true });
  expect(await isFound(dbName, "result in d-calls")).toBe(false);
  await store.settle(live, settlement(live, 0));
  expect(await store.toolResults(await store.head("d-calls"))).toMatchObject([{ content: "result in d-calls" }]);
});

test("what is stored beside a payload that nobody can open is encrypted", async () => {
  const { store, db, dbName } = await restored(plain);
  const run = await db.get("runs", ["d-calls", 0]);
  const terminal = { ...run.closing.terminal, result: "planted" };
  await db.put("runs", { ...run, input: new Uint8Array([SEALED, 1, 2, 3]), closing: { ...run.closing, terminal } });
  await store.encryptRest!(never);
  expect(await isFound(dbName, "planted")).toBe(false);
  expect((await store.closing("d-calls", 0))?.terminal).toMatchObject({ result: "planted" });
});

test("nothing that somebody puts there is encrypted anew with the rest", async () => {
  const { store, db, dbName } = await restored(await sealedDump());
  const other = new Encryption({ key: fastKey });
  const rotating = indexedDBRunStore({ dbName, encryption: other });
  onTestFinished(() => rotating.close());
  const state = await db.get("states", ["d-calls", 0]);
  await db.put("states", { ...state, state: { forged: true } });
  await rotating.thread("d-calls");
  await other.rotate();
  await rotating.encryptRest!(never);
  await expect(store.stateAfter("d-calls", 0)).rejects.toMatchObject({ code: "corrupt-record" });
  expect(await db.get("states", ["d-calls", 0])).toMatchObject({ state: { forged: true } });
});

test("what has no encrypted form stays readable, and keeps the database from being taken for encrypted", async () => {
  const { store, db } = await restored(plain);
  const state = await db.get("states", ["d-calls", 0]);
  await db.put("states", { ...state, state: { file: new Blob(["x"]) } });
  expect(await store.encryptRest!(never)).toBe(false);
  expect((await store.stateAfter("d-calls", 0))?.state).toMatchObject({ file: expect.any(Blob) });
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: false });
});

test("while it is locked in the middle, nothing is taken for encrypted that is not", async () => {
  const { dbName, db } = await restored(plain);
  const own = new Encryption({ key: fastKey });
  const store = indexedDBRunStore({ dbName, encryption: own });
  onTestFinished(() => store.close());
  let reads = NaN;
  watchTransactions(({ mode, stores }) => {
    if (mode === "readwrite" && stores.join() === "chunks") {
      own.forget();
      reads = 0;
    }
    // A moment later somebody unlocks it.
    if (mode === "readonly" && ++reads === 2) void own.unlock(fastKey);
  });
  await expect(store.encryptRest!(never)).rejects.toMatchObject({ code: "locked" });
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: false });
});

test("what is changed while it is encrypted stays as it was changed", async () => {
  const { store, db } = await restored(plain);
  const record = await db.get("threads", "d-calls");
  let isDone = false;
  watchTransactions(({ mode, stores }) => {
    if (isDone || mode !== "readwrite" || stores.join() !== "threads") return;
    isDone = true;
    void db.put("threads", { ...record, title: "renamed", pinned: 1 });
  });
  await store.encryptRest!(never);
  expect(isDone).toBe(true);
  expect(await store.thread("d-calls")).toMatchObject({ title: "renamed", pinned: true });
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: true });
});

test("what somebody changes again and again is left to a later pass", async () => {
  const { store, db } = await restored(plain);
  const record = await db.get("threads", "d-calls");
  let renamed = 0;
  let isRenamed = true;
  let isOwn = false;
  watchTransactions(({ mode, stores }) => {
    if (!isRenamed || isOwn || mode !== "readwrite" || stores.join() !== "threads") return;
    isOwn = true;
    void db.put("threads", { ...record, title: `renamed ${++renamed}` });
    isOwn = false;
  });
  expect(await store.encryptRest!(never)).toBe(true);
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: false });
  isRenamed = false;
  expect(await store.encryptRest!(never)).toBe(false);
  expect(await db.get("meta", "keys")).toMatchObject({ isWhole: true });
  expect(await store.thread("d-calls")).toMatchObject({ title: `renamed ${renamed}` });
});

test("a checkpoint store encrypts what it had, once it is used, and anew after a rotation", async () => {
  const dbName = freshDb();
  const before = new IndexedDBCheckpointStore({ dbName });
  const planted = checkpoint("a", { state: { ...checkpoint("a").state, scratch: { planted: "planted" } } });
  for (const id of ["a", "b", "c"]) await before.save({ ...planted, id });
  await before.close();
  const own = new Encryption({ key: fastKey });
  const store = new IndexedDBCheckpointStore({ dbName, encryption: own });
  onTestFinished(() => store.close());
  expect(await store.get("b")).toEqual({ ...planted, id: "b" });
  const db = await openDB(`${dbName}.checkpoints`);
  onTestFinished(() => db.close());
  await vi.waitFor(async () => expect(await db.get("keys", "keys")).toMatchObject({ isWhole: true }));
  expect(await isFound(`${dbName}.checkpoints`, "planted")).toBe(false);
  await own.rotate();
  expect(await store.get("a")).toEqual(planted);
  await vi.waitFor(async () => expect(usesIn(await db.get("keys", "keys"))).toMatchObject({ caughtUp: 2 }));
  expect(await store.list("graph")).toHaveLength(3);
  const keyless = new IndexedDBCheckpointStore({ dbName });
  onTestFinished(() => keyless.close());
  await expect(keyless.get("a")).rejects.toMatchObject({ code: "locked" });
  await expect(keyless.save(planted)).rejects.toMatchObject({ code: "locked" });
  await expect(keyless.saveIf(planted, null)).rejects.toMatchObject({ code: "locked" });
});

test("a saver encrypts what it had, once it is used, and anew after a rotation", async () => {
  const dbName = freshDb();
  const before = openedSaver(dbName);
  const first = await before.put(
    threadConfig("t"),
    checkpointOf({ a: "planted" }),
    { ...metadataOf(0), planted: 1 } as never,
    { a: 1 },
  );
  await before.putWrites(first, [["a", "planted"]], "task");
  await before.close();
  const own = new Encryption({ key: fastKey });
  const saver = openedSaver(dbName, { encryption: own });
  expect(valuesOf(await saver.getTuple(first))).toEqual({ a: "planted" });
  const db = await openDB(`${dbName}.langgraph`);
  onTestFinished(() => db.close());
  await vi.waitFor(async () => expect(await db.get("keys", "keys")).toMatchObject({ isWhole: true }));
  expect(await isFound(`${dbName}.langgraph`, "planted")).toBe(false);
  await own.rotate();
  const tuple = await saver.getTuple(first);
  expect([valuesOf(tuple), tuple?.metadata, tuple?.pendingWrites]).toEqual([
    { a: "planted" },
    { ...metadataOf(0), planted: 1 },
    [["task", "a", "planted"]],
  ]);
  await vi.waitFor(async () => expect(usesIn(await db.get("keys", "keys"))).toMatchObject({ caughtUp: 2 }));
  const keyless = openedSaver(dbName);
  await expect(keyless.getTuple(first)).rejects.toMatchObject({ code: "locked" });
  await expect(keyless.putWrites(first, [["a", "planted"]], "other")).rejects.toMatchObject({ code: "locked" });
});
