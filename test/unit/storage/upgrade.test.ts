import "fake-indexeddb/auto";
import { openDB } from "idb";
import { expect, onTestFinished, test } from "vitest";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { DB_VERSION } from "../../../src/storage/indexeddb/schema.js";
import { freshDb } from "../runner/kit.js";
import { chunkOf, delta, runOn, settlement } from "./kit.js";
import { createVersion1, createVersion2, createVersion3 } from "./released-layouts.js";
import { waiting } from "./waiting.suite.js";

const run = (threadId: string, runIndex: number, runId: string, status: string) => ({
  threadId,
  runIndex,
  runId,
  prevRunIndex: runIndex === 0 ? null : runIndex - 1,
  status,
  epoch: runIndex + 1,
  startedAt: 1,
  ...(status !== "running" && { endedAt: 2, eventCount: 1 }),
  fingerprint: runId,
  input: { messages: [] },
});

test("a database of version 1 is brought up to this one with all that is in it (L10)", async () => {
  const dbName = freshDb();
  const old = await openDB(dbName, 1, { upgrade: createVersion1 });
  await old.put("heads", { threadId: "idle", epoch: 1, runCount: 1, activeRunIndex: 0 });
  await old.put("heads", {
    threadId: "live",
    epoch: 2,
    runCount: 2,
    activeRunIndex: 1,
    live: { runIndex: 1, runId: "r1" },
    holder: "host-1",
    stop: { runId: "r1", at: 7 },
  });
  const runs = [run("idle", 0, "r0", "finished"), run("live", 0, "r0", "errored"), run("live", 1, "r1", "running")];
  for (const record of runs) await old.put("runs", record);
  const claim = { threadId: "live", runIndex: 1, runId: "r1", epoch: 2, holder: "host-1" };
  const chunk = chunkOf(claim, 0, [delta("a")]);
  await old.put("chunks", chunk);
  const state = { threadId: "idle", runIndex: 0, state: { n: 1 }, interrupts: [] };
  await old.put("states", state);
  await old.put("meta", 2, "epoch");
  old.close();

  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  expect((await store.runsOfId("r0", 10)).map(({ threadId }) => threadId).sort()).toEqual(["idle", "live"]);
  expect(await store.runs("live")).toMatchObject([{ status: "errored" }, { status: "running" }]);
  expect(await store.chunks("live", 1, -1, 10)).toEqual([chunk]);
  expect(await store.stateAfter("idle", 0)).toEqual({ state: { n: 1 }, interrupts: [] });
  // What was asked before there were two ways to ask.
  expect((await store.head("live"))?.stop).toEqual({ runId: "r1", at: 7, as: "stopped" });
  expect(await store.append(claim, chunkOf(claim, 1, [delta("b")]))).toEqual({ stop: "stopped" });
  expect(await store.settle(claim, settlement(claim, 2))).toBe("settled");
  expect((await runOn(store, "idle", "r2", 0)).epoch).toBe(3);
  const now = await openDB(dbName);
  expect([now.version, DB_VERSION]).toEqual([5, 5]);
  now.close();
});

test("messages of a database of version 2 are found in pages (L10, L16)", async () => {
  const dbName = freshDb();
  const old = await openDB(dbName, 2, { upgrade: (db, _old, _new, tx) => createVersion2(db, tx) });
  const message = (runIndex: number, n: number, id: string, more = {}) =>
    old.put("messages", {
      threadId: "t",
      runIndex,
      n,
      messageId: id,
      message: { id, role: "assistant", content: `${id} of ${runIndex}` },
      ...more,
    });
  await message(0, 0, "gone");
  await message(1, 0, "a", { resets: 1 });
  await message(1, 1, "b");
  await message(2, 0, "behind-a", { after: "a" });
  await message(2, 1, "a");
  old.close();
  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  const page = async (before: string | undefined) => {
    const { messages, earlier } = (await store.messagePage("t", 2, undefined, { before, limit: 2 }))!;
    return { contents: messages.map(({ content }) => content), earlier };
  };
  expect(await page(undefined)).toEqual({ contents: ["behind-a of 2", "b of 1"], earlier: true });
  expect(await page("behind-a")).toEqual({ contents: ["a of 2"], earlier: false });
});

test("runs can wait in a database of version 3 (L10)", async () => {
  const dbName = freshDb();
  const old = await openDB(dbName, 3, { upgrade: (db, _old, _new, tx) => createVersion3(db, tx) });
  await old.put("heads", { threadId: "t", epoch: 1, runCount: 1, activeRunIndex: 0 });
  await old.put("runs", run("t", 0, "r0", "finished"));
  await old.put("meta", 1, "epoch");
  old.close();
  const store = indexedDBRunStore({ dbName });
  onTestFinished(() => store.close());
  expect(await store.waitingThreads()).toEqual([]);
  expect(await store.addWaiting(waiting("r0"), 10)).toMatchObject({ is: "exists" });
  expect(await store.addWaiting(waiting("r1"), 10)).toEqual({ is: "added" });
  expect((await runOn(store, "t", "r2", 0)).epoch).toBe(2);
  expect(await store.waitingRuns("t")).toMatchObject([waiting("r1")]);
});

test("a database that cannot be brought up is told of and left as it is (L10)", async () => {
  const dbName = freshDb();
  const foreign = await openDB(dbName, 1, { upgrade: (db) => void db.createObjectStore("theirs").put("kept", "key") });
  foreign.close();
  await expect(indexedDBRunStore({ dbName }).head("t")).rejects.toMatchObject({ code: "storage-unavailable" });
  const again = await openDB(dbName);
  expect([again.version, await again.get("theirs", "key")]).toEqual([1, "kept"]);
  again.close();
});

test("a fresh database is as one that was brought up", async () => {
  const shapeOf = async (dbName: string): Promise<unknown> => {
    const store = indexedDBRunStore({ dbName });
    await store.head("t");
    await store.close();
    const db = await openDB(dbName);
    const tx = db.transaction([...db.objectStoreNames]);
    const shape = [...db.objectStoreNames].map((name) => {
      const { keyPath, indexNames } = tx.objectStore(name);
      const indexes = [...indexNames].map((index) => {
        const { keyPath: path, unique } = tx.objectStore(name).index(index);
        return { index, path, unique };
      });
      return { name, keyPath, indexes };
    });
    db.close();
    return shape;
  };
  const old = freshDb();
  (await openDB(old, 1, { upgrade: createVersion1 })).close();
  expect(await shapeOf(old)).toEqual(await shapeOf(freshDb()));
});
