import "fake-indexeddb/auto";
import { openDB } from "idb";
import { lastValueFrom, toArray, type Observable } from "rxjs";
import { describe, expect, onTestFinished, test } from "vitest";
import { IndexedDBCheckpointStore } from "../../../src/checkpoint/indexeddb/indexeddb-checkpoint-store.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { createRuntimeHandler } from "../../../src/runtime/http/handler.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import { checkpoint } from "../checkpoint/kit.js";
import { checkpointOf, metadataOf, opened as openedSaver, threadConfig } from "../langgraph/kit.js";
import { freshDb } from "../runner/kit.js";
import { inputOf, postOf } from "../runtime/integrations/kit.js";
import { runtimeWith } from "../runtime/kit.js";
import { foreignEnd, leaving, request, runOn, settlement, claimed } from "../storage/kit.js";
import { dumpOf } from "../storage/raw.js";
import { waiting } from "../storage/waiting.suite.js";
import { encryption } from "./fast-key.js";

/** Threads without a title: a branched one in which runs wait, and one with a pending tool call. */
async function encrypted(): Promise<string> {
  const dbName = freshDb();
  const store = indexedDBRunStore({ dbName, encryption });
  await store.claim(request("t", "r0", { title: "" }));
  await store.settleForeign("t", "r0", "broken", 2_000, foreignEnd);
  await runOn(store, "t", "r1", 0);
  await runOn(store, "t", "r2", 0);
  for (const runId of ["w1", "w2"]) await store.addWaiting(waiting(runId, { threadId: "t" }), 10);
  const claim = await claimed(store, "calls", "r0", { title: "" });
  const left = { nextRunId: "next", made: [{ toolCallId: "call", name: "look" }], unanswered: new Set<string>() };
  await store.settle(claim, settlement(claim, 0, { derived: leaving("a", "said", {}), left }));
  await store.close();
  return dbName;
}

const all = <T>(of: Observable<T>): Promise<T[]> => lastValueFrom(of.pipe(toArray()));

async function every<T>(of: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of of) found.push(one);
  return found;
}

describe.each([
  ["without an encryption", () => ({})],
  ["whose encryption is locked", () => ({ encryption: new Encryption() })],
])("a host %s", (_what, options) => {
  test("changes nothing that needs no content", async () => {
    const dbName = await encrypted();
    const store = indexedDBRunStore({ dbName, ...options() });
    const db = await openDB(dbName);
    onTestFinished(async () => (db.close(), store.close()));
    const before = await dumpOf(db as never);
    for (const attempt of [
      () => store.activate("t", 1),
      () => store.moveWaiting("t", "w2", "w1"),
      () => store.changeToolCall("calls", "call", (call) => ({ is: "changed", call: { ...call, status: "claimed" } })),
      () => store.updateThread("t", { pinned: true }),
      () => store.updateThread("t", { archived: true }),
      () => store.updateThread("t", { title: "" }),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ code: "locked" });
    }
    expect(await dumpOf(db as never)).toEqual(before);
  });

  test("shows no ids, statuses and times", async () => {
    const runner = new IndexedDBAgentRunner({ dbName: await encrypted(), ...options() });
    onTestFinished(() => runner.close());
    for (const attempt of [
      () => runner.listThreads(),
      () => runner.getThread("t"),
      () => runner.updateThread("t", {}),
      () => runner.updateThread("t", { pinned: true }),
      () => runner.listRuns("t"),
      () => runner.getRun("r1", { threadId: "t" }),
      () => runner.getRunEvents("r1", { threadId: "t" }),
      () => runner.activateRun("t", "r1"),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ code: "locked" });
    }
    // Neither what is not there.
    for (const attempt of [
      () => runner.getThread("none"),
      () => runner.activateRun("none", "r1"),
      () => all(runner.connect({ threadId: "none" })),
      () => every(runner.attachRun({ threadId: "t", runId: "none" }, new AbortController().signal)),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ code: "locked" });
    }
    // By them a middleware decides who may delete it.
    expect(await runner.agentIds("calls")).toBeUndefined();
    expect(await runner.deleteThread("t")).toBe(true);
  });

  test("tells no reader that a run has ended", async () => {
    const dbName = await encrypted();
    const store = indexedDBRunStore({ dbName });
    const { epoch, activeRunIndex: runIndex } = (await store.head("calls"))!;
    await store.close();
    const runner = new IndexedDBAgentRunner({ dbName, ...options() });
    onTestFinished(() => runner.close());
    const after = { runIndex, seq: 99, epoch };
    await expect(all(runner.connect({ threadId: "calls", after }))).rejects.toMatchObject({ code: "locked" });
    const frames = every(runner.attachRun({ threadId: "calls", runId: "r0", after }, new AbortController().signal));
    await expect(frames).rejects.toMatchObject({ code: "locked" });
  });

  test.each([
    ["", {}],
    [" after a cursor", { "last-event-id": "0.0.1" }],
  ])("answers who connects over HTTP%s with 423, not with a stream that breaks", async (_, after) => {
    const runner = new IndexedDBAgentRunner({ dbName: await encrypted(), ...options() });
    onTestFinished(() => runner.close());
    const handler = createRuntimeHandler({ runtime: runtimeWith({ runner }) });
    const url = "http://localhost/agent/counter/connect";
    const response = await handler(new Request(url, postOf(inputOf("calls", "c"), after)));
    expect([response.status, await response.json()]).toMatchObject([423, { code: "locked" }]);
  });

  test("says of no checkpoint that it is not there", async () => {
    const dbName = freshDb();
    const store = new IndexedDBCheckpointStore({ dbName, encryption: new Encryption(encryption) });
    await store.save(checkpoint("c"));
    await store.close();
    const keyless = new IndexedDBCheckpointStore({ dbName, ...options() });
    onTestFinished(() => keyless.close());
    for (const attempt of [
      () => keyless.get("none"),
      () => keyless.load("none"),
      () => keyless.load("run", "none"),
      () => keyless.latest("none"),
      () => keyless.fork("none"),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ code: "locked" });
    }
  });

  test("says of no checkpoint of LangGraph that it is not there", async () => {
    const dbName = freshDb();
    const saver = openedSaver(dbName, { encryption: new Encryption(encryption) });
    const config = await saver.put(threadConfig("t"), checkpointOf({ a: 1 }), metadataOf(0), { a: 1 });
    const keyless = openedSaver(dbName, options());
    const none = threadConfig("none");
    for (const attempt of [
      () => keyless.getTuple(none),
      () => every(keyless.list(none)),
      () => keyless.getDeltaChannelHistory({ config: none, channels: ["a"] }),
      () => keyless.getDeltaChannelHistory({ config, channels: ["a"] }),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ code: "locked" });
    }
  });

  test("is shown no checkpoint that is still to be encrypted", async () => {
    const dbName = freshDb();
    const [store, saver] = [new IndexedDBCheckpointStore({ dbName }), openedSaver(dbName)];
    await store.save(checkpoint("c"));
    const config = await saver.put(threadConfig("t"), checkpointOf({ a: 1 }), metadataOf(0), { a: 1 });
    await saver.putWrites(config, [["a", 2]], "task");
    await Promise.all([store.close(), saver.close()]);
    for (const name of [`${dbName}.checkpoints`, `${dbName}.langgraph`]) {
      const db = await openDB(name);
      // Somebody has given a key just now.
      await db.put("keys", {}, "keys");
      db.close();
    }
    const keyless = new IndexedDBCheckpointStore({ dbName, ...options() });
    onTestFinished(() => keyless.close());
    const keylessSaver = openedSaver(dbName, options());
    for (const attempt of [
      () => keyless.get("c"),
      () => keyless.latest("run"),
      () => keyless.fork("c"),
      () => keylessSaver.getTuple(config),
      () => every(keylessSaver.list(threadConfig("t"))),
      () => keylessSaver.getDeltaChannelHistory({ config, channels: ["a"] }),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ code: "locked" });
    }
  });

  test("lists no checkpoints", async () => {
    const dbName = freshDb();
    const store = new IndexedDBCheckpointStore({ dbName, encryption: new Encryption(encryption) });
    await store.save(checkpoint("c"));
    await store.close();
    const keyless = new IndexedDBCheckpointStore({ dbName, ...options() });
    onTestFinished(() => keyless.close());
    await expect(keyless.list("graph")).rejects.toMatchObject({ code: "locked" });
    await expect(keyless.lineage("c")).rejects.toMatchObject({ code: "locked" });
  });

  test("prunes no checkpoints; like a thread, one that is named can be deleted", async () => {
    const dbName = freshDb();
    const store = new IndexedDBCheckpointStore({ dbName, encryption: new Encryption(encryption) });
    const keyless = new IndexedDBCheckpointStore({ dbName, ...options() });
    onTestFinished(async () => (await store.close(), keyless.close()));
    for (const id of ["c1", "c2", "c3"]) await store.save(checkpoint(id));
    const { runId } = checkpoint("c1");
    for (const attempt of [
      () => keyless.prune({ keep: 1 }),
      () => keyless.prune({ keep: 0, evenLast: true, runId }),
      () => keyless.prune({ keep: 1, runId: "none" }),
    ]) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ code: "locked" });
    }
    await keyless.delete("c1");
    expect(await store.list("graph")).toMatchObject([{ id: "c3" }, { id: "c2" }]);
    expect(await keyless.deleteRun(runId)).toBe(2);
    expect(await store.list("graph")).toEqual([]);
  });
});
