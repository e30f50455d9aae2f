import "fake-indexeddb/auto";
import { EventType, type RunAgentInput } from "@ag-ui/client";
import { openDB } from "idb";
import { lastValueFrom, toArray } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { createEncryptionKey, Encryption } from "ag-ui-local-runtime/encryption";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { RuntimeSchema } from "../../../src/storage/indexeddb/schema.js";
import { agentOf, freshDb, inputOf } from "../runner/kit.js";
import { chunkOf, claimed, delta } from "../storage/kit.js";
import { dumpOf } from "../storage/raw.js";
import { fastKey } from "./fast-key.js";

const SECRET = "https://keys.example/?token=planted";

/** A function that gives the key, and fails until `works`. */
function failingKey() {
  const server = {
    works: false,
    key: vi.fn(async () => {
      if (!server.works) throw new TypeError(`Failed to fetch ${SECRET}`);
      return fastKey;
    }),
  };
  return server;
}

function runnerOf(dbName: string, key: () => Promise<CryptoKey>): IndexedDBAgentRunner {
  const runner = new IndexedDBAgentRunner({ dbName, encryption: { key } });
  onTestFinished(() => runner.close());
  return runner;
}

const seen: RunAgentInput[] = [];
const remembers = agentOf(async function* (input) {
  seen.push(input);
  const messageId = `a-${input.runId}`;
  yield { type: EventType.STATE_SNAPSHOT, snapshot: { ...(input.state as object), [input.runId]: true } };
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `answer of ${input.runId}` };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
});

const run = (runner: IndexedDBAgentRunner, runId: string) =>
  lastValueFrom(runner.run({ threadId: "t", agent: remembers.clone(), input: inputOf("t", runId) }).pipe(toArray()));
const read = async (runner: IndexedDBAgentRunner) =>
  JSON.stringify(await lastValueFrom(runner.connect({ threadId: "t" }).pipe(toArray())));

async function dump(dbName: string) {
  const db = await openDB<RuntimeSchema>(dbName);
  const all = await dumpOf(db);
  db.close();
  return all;
}

test("while the function that gives the key fails, nothing is read or written, and all is there when it works (L4)", async () => {
  const dbName = freshDb();
  const before = runnerOf(dbName, async () => fastKey);
  await run(before, "r0");
  await before.close();
  const server = failingKey();
  const runner = runnerOf(dbName, server.key);
  await runner.opened;
  const stored = await dump(dbName);
  const refused = { code: "locked", message: expect.not.stringContaining("planted") as string };
  await expect(runner.listThreads()).rejects.toMatchObject(refused);
  await expect(read(runner)).rejects.toMatchObject(refused);
  await expect(run(runner, "r1")).rejects.toMatchObject(refused);
  await expect(runner.lockState()).rejects.toMatchObject({ ...refused, cause: expect.any(TypeError) as TypeError });
  expect(await dump(dbName)).toEqual(stored);
  server.works = true;
  expect(await read(runner)).toContain("answer of r0");
  expect((await runner.listThreads()).map(({ threadId }) => threadId)).toEqual(["t"]);
  await run(runner, "r1");
  expect(seen.at(-1)).toMatchObject({ runId: "r1", state: { r0: true } });
  const both = await read(runner);
  for (const text of ["answer of r0", "answer of r1"]) expect(both).toContain(text);
});

/** A run whose host has died. */
async function leftRun(dbName: string): Promise<void> {
  const first = indexedDBRunStore({ dbName, encryption: { key: fastKey } });
  const claim = await claimed(first, "t", "r0");
  await first.append(
    claim,
    chunkOf(claim, 0, [
      { type: EventType.RUN_STARTED, threadId: "t", runId: "r0" },
      { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" },
      delta("said before it died"),
    ]),
  );
  await first.close();
}

test("a run that another host left is not emptied for want of the key (L9)", async () => {
  const dbName = freshDb();
  await leftRun(dbName);
  const server = failingKey();
  const runner = runnerOf(dbName, server.key);
  await runner.opened;
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(false));
  await expect(read(runner)).rejects.toMatchObject({ code: "locked" });
  await expect(run(runner, "r1")).rejects.toMatchObject({ code: "locked" });
  server.works = true;
  expect(await read(runner)).toContain("said before it died");
});

test("nor is it while the record of the keys is gone", async () => {
  const dbName = freshDb();
  await leftRun(dbName);
  const db = await openDB(dbName);
  onTestFinished(() => db.close());
  const keys = (await db.get("meta", "keys")) as object;
  await db.delete("meta", "keys");
  const runner = runnerOf(dbName, async () => fastKey);
  await runner.opened;
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(false));
  for (const _ of [1, 2]) await expect(read(runner)).rejects.toMatchObject({ code: "corrupt-record" });
  await db.put("meta", keys, "keys");
  expect(await read(runner)).toContain("said before it died");
});

test("an encryption says locked while the function that gives its key fails, and that there is a key when it works", async () => {
  const server = failingKey();
  const encryption = new Encryption({ key: server.key });
  const states: boolean[] = [];
  encryption.unlocked$.subscribe((state) => states.push(state));
  const store = indexedDBRunStore({ dbName: freshDb(), encryption });
  onTestFinished(() => store.close());
  expect(await encryption.state()).toBe("locked");
  expect(await encryption.state()).toBe("locked");
  expect(states).toEqual([true]);
  server.works = true;
  expect(await encryption.state()).toBe("unlocked");
  expect(await encryption.state()).toBe("unlocked");
  expect(states).toEqual([true, true]);
  expect(server.key).toHaveBeenCalledTimes(3);
});

test("a function that gives no key leaves it locked, and says what a key is", async () => {
  // As untyped callers may.
  const runner = runnerOf(freshDb(), async () => undefined as unknown as CryptoKey);
  await expect(runner.lockState()).rejects.toMatchObject({
    code: "locked",
    cause: { message: expect.stringContaining("createEncryptionKey") as string },
  });
});

test("a key that came too late for a lock tells nobody that there is one", async () => {
  const server = failingKey();
  const encryption = new Encryption({ key: server.key });
  await expect(encryption.currentKey()).rejects.toMatchObject({ code: "locked" });
  let give = (_key: CryptoKey): void => undefined;
  server.key.mockImplementationOnce(() => new Promise((resolve) => (give = resolve)));
  const late = encryption.currentKey();
  await vi.waitFor(() => expect(server.key).toHaveBeenCalledTimes(2));
  await encryption.lock();
  const states: boolean[] = [];
  encryption.unlocked$.subscribe((state) => states.push(state));
  give(fastKey);
  await expect(late).rejects.toMatchObject({ code: "locked" });
  await expect(encryption.currentKey()).rejects.toMatchObject({ code: "locked" });
  expect(states).toEqual([false]);
});

/** A function that does not answer until `give` is called. Timers pass only as the test says. */
function silentKey() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let give = (_key: CryptoKey): void => undefined;
  const key = vi.fn(() => new Promise<CryptoKey>((resolve) => (give = resolve)));
  const encryption = new Encryption({ key });
  const store = indexedDBRunStore({ dbName: freshDb(), encryption });
  onTestFinished(() => store.close());
  return { key, encryption, store, give: () => give(fastKey) };
}

const NOT_COME = { code: "locked", message: expect.stringContaining("has not come") as string };

test("a function that does not answer leaves it locked after 5 s, and its key is used when it comes (L13)", async () => {
  const { key, encryption, store, give } = silentKey();
  const states: boolean[] = [];
  encryption.unlocked$.subscribe((state) => states.push(state));
  const refused = expect(store.readable!()).rejects.toMatchObject(NOT_COME);
  await vi.waitFor(() => expect(key).toHaveBeenCalledOnce());
  await vi.advanceTimersByTimeAsync(5_000);
  await refused;
  // From now on at once; nobody is asked for a first key, and the function not again.
  await expect(store.lockState!()).rejects.toMatchObject(NOT_COME);
  expect(await encryption.state()).toBe("locked");
  expect(states).toEqual([true]);
  give();
  await vi.waitFor(() => expect(states).toEqual([true, true]));
  expect(await encryption.state()).toBe("unlocked");
  await store.readable!();
  expect(key).toHaveBeenCalledOnce();
});

test("a function that fails after it did not answer is asked again", async () => {
  const { key, encryption } = silentKey();
  let fail = (_error: Error): void => undefined;
  key.mockImplementationOnce(() => new Promise((_, reject) => (fail = reject)));
  const refused = expect(encryption.currentKey()).rejects.toMatchObject(NOT_COME);
  await vi.advanceTimersByTimeAsync(5_000);
  await refused;
  fail(new TypeError("no network"));
  await vi.advanceTimersByTimeAsync(0);
  key.mockImplementationOnce(async () => fastKey);
  expect(await encryption.currentKey()).toBe(fastKey);
});

test("while a function does not answer, somebody unlocks it, and the key that comes later is not used", async () => {
  const { key, encryption, store, give } = silentKey();
  const refused = expect(store.readable!()).rejects.toMatchObject({ code: "locked" });
  await vi.waitFor(() => expect(key).toHaveBeenCalledOnce());
  const own = await createEncryptionKey();
  await encryption.unlock(own);
  await refused;
  await store.readable!();
  give();
  await vi.advanceTimersByTimeAsync(0);
  expect(await encryption.currentKey()).toBe(own);
  expect(await encryption.state()).toBe("unlocked");
});

test("a lock does not wait for a function that does not answer, and the key that comes later does not undo it", async () => {
  const { key, encryption, store, give } = silentKey();
  const states: boolean[] = [];
  encryption.unlocked$.subscribe((state) => states.push(state));
  const refused = expect(store.readable!()).rejects.toMatchObject({ code: "locked" });
  await vi.waitFor(() => expect(key).toHaveBeenCalledOnce());
  await encryption.lock();
  await refused;
  give();
  await vi.advanceTimersByTimeAsync(0);
  await expect(encryption.currentKey()).rejects.toMatchObject({ code: "locked" });
  expect(states).toEqual([true, false]);
});
