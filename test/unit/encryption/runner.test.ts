import "fake-indexeddb/auto";
import { EventType } from "@ag-ui/core";
import { openDB } from "idb";
import { lastValueFrom, toArray } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { IndexedDBAgentRunner, type IndexedDBAgentRunnerOptions } from "ag-ui-local-runtime";
import { Encryption } from "ag-ui-local-runtime/encryption";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import { KeyRing } from "../../../src/storage/encryption/key-ring.js";
import { agentOf, freshDb, inputOf } from "../runner/kit.js";
import { cheapPassphrases } from "./cheap-passphrases.js";
import { fastKey, keysUsed } from "./fast-key.js";
import { isFound } from "./kit.js";

cheapPassphrases();

const answers = agentOf(async function* ({ runId }) {
  yield { type: EventType.TEXT_MESSAGE_START, messageId: runId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: runId, delta: "planted answer" };
  yield { type: EventType.TEXT_MESSAGE_END, messageId: runId };
});

function runnerWith(options: IndexedDBAgentRunnerOptions): IndexedDBAgentRunner {
  const runner = new IndexedDBAgentRunner(options);
  onTestFinished(() => runner.close());
  return runner;
}

const run = (runner: IndexedDBAgentRunner, runId: string) =>
  lastValueFrom(runner.run({ threadId: "t", agent: answers.clone(), input: inputOf("t", runId) }).pipe(toArray()));
const read = (runner: IndexedDBAgentRunner) => lastValueFrom(runner.connect({ threadId: "t" }).pipe(toArray()));

test("nothing that a runner stores can be read but with its key", async () => {
  const dbName = freshDb();
  const encryption = new Encryption({ key: "correct horse" });
  const runner = runnerWith({ dbName, encryption });
  expect((await run(runner, "r")).at(-1)?.type).toBe("RUN_FINISHED");
  expect(JSON.stringify(await read(runner))).toContain("planted answer");
  expect(await isFound(dbName, "planted")).toBe(false);
  expect(await runner.lockState()).toBe("unlocked");
  await encryption.lock();
  expect(await runner.lockState()).toBe("locked");
  await expect(runner.listThreads()).rejects.toMatchObject({ code: "locked" });
  await expect(read(runner)).rejects.toMatchObject({ code: "locked" });
  await expect(encryption.unlock("wrong")).rejects.toMatchObject({ code: "wrong-key" });
  await encryption.unlock("correct horse");
  expect(JSON.stringify(await read(runner))).toContain("planted answer");
});

test("a run that goes on without the key is encrypted once it has ended, without another unlock", async () => {
  const dbName = freshDb();
  const plain = runnerWith({ dbName });
  let letOn = (): void => undefined;
  const gate = new Promise<void>((resolve) => (letOn = resolve));
  const waits = agentOf(async function* ({ runId }) {
    yield { type: EventType.TEXT_MESSAGE_START, messageId: runId, role: "assistant" };
    await gate;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: runId, delta: "planted answer" };
    yield { type: EventType.TEXT_MESSAGE_END, messageId: runId };
  });
  const ran = lastValueFrom(plain.run({ threadId: "t", agent: waits, input: inputOf("t", "r") }).pipe(toArray()));
  await plain.opened;
  const db = await openDB(dbName);
  onTestFinished(() => db.close());
  await vi.waitFor(async () => expect(await db.getAll("chunks")).not.toEqual([]));
  const passes = vi.spyOn(KeyRing.prototype, "behind");
  onTestFinished(() => passes.mockRestore());
  // The pauses before the next passes, of half a minute and more, are over when the run is.
  const clock: Clock = {
    ...systemClock,
    after: (ms, signal) =>
      ms >= 30_000
        ? Promise.race([ran, systemClock.after(ms, signal)]).then(() => undefined)
        : systemClock.after(ms, signal),
  };
  const runner = runnerWith({ dbName, encryption: { key: fastKey }, clock });
  expect(JSON.stringify(await runner.listThreads())).toContain("t");
  await vi.waitFor(() => expect(passes).toHaveBeenCalledOnce());
  letOn();
  await ran;
  await vi.waitFor(async () => expect(await db.get("meta", "keys")).toMatchObject({ isWhole: true }));
  expect(await isFound(dbName, "planted")).toBe(false);
  expect(JSON.stringify(await read(runner))).toContain("planted answer");
});

test("what was stored before is encrypted when a key is given, and anew when it is rotated, without a new start", async () => {
  const dbName = freshDb();
  const plain = runnerWith({ dbName });
  await run(plain, "r0");
  await plain.close();
  const encryption = new Encryption();
  const runner = runnerWith({ dbName, encryption });
  await runner.opened;
  expect(await isFound(dbName, "planted")).toBe(true);
  await encryption.unlock(fastKey);
  await vi.waitFor(async () => expect(await isFound(dbName, "planted")).toBe(false));
  await encryption.rotate();
  await run(runner, "r1");
  const db = await openDB(dbName);
  onTestFinished(() => db.close());
  const keys = async () =>
    keysUsed(
      await db.get("meta", "keys"),
      (await db.getAll("chunks")).map(({ entries }) => entries),
    );
  await vi.waitFor(async () => expect(await keys()).toEqual(new Set([2])));
  expect(JSON.stringify(await read(runner)).match(/planted answer/g)).toHaveLength(2);
});
