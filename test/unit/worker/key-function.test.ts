import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { RunnerError } from "../../../src/run/errors.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import type { AgentRuntimeOptions } from "../../../src/runtime/options.js";
import type { RuntimeStatus } from "../../../src/wire/shapes.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, freshDb, quiet } from "../runner/kit.js";

const says = agentOf(async function* (input) {
  const messageId = `a-${input.runId}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "an answer" } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
});

function tabOf(options: Partial<AgentRuntimeOptions>) {
  const host = serveRuntime({ agents: { says }, ...options });
  onTestFinished(() => host.close());
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(() => runtime.close());
  let status: RuntimeStatus = { is: "connecting" };
  runtime.status$.subscribe((now) => (status = now));
  const is = (wanted: object) => vi.waitFor(() => expect(status).toMatchObject(wanted), 10_000);
  return { runtime, is, status: () => status };
}

async function withThread(dbName: string): Promise<void> {
  const { runtime } = tabOf({ dbName, encryption: { key: fastKey } });
  const agent = runtime.agent("says", { threadId: "thread" });
  agent.addMessage({ id: "u", role: "user", content: "a question" });
  await agent.runAgent();
}

test("a tab is told that getting the key failed, and goes on by itself when it works again", async () => {
  const dbName = freshDb();
  await withThread(dbName);
  let fails = true;
  const key = () => (fails ? Promise.reject(new TypeError("planted")) : fastKey);
  const warn = vi.fn();
  const { runtime, is, status } = tabOf({ dbName, encryption: { key }, logger: { warn, error: () => undefined } });
  await is({ is: "connected", encryption: "locked", error: { code: "locked" } });
  expect(JSON.stringify(status())).not.toContain("planted");
  // Whoever must act finds why in the worker's log.
  expect(warn).toHaveBeenCalledOnce();
  expect(warn.mock.calls[0]?.at(-1)).toMatchObject({ cause: { message: "planted" } });
  const agent = runtime.agent("says", { threadId: "thread" });
  onTestFinished(agent.follow());
  await expect(agent.connectAgent()).rejects.toMatchObject({ code: "locked" });
  fails = false;
  await is({ is: "connected", encryption: "unlocked" });
  expect(status()).not.toHaveProperty("error");
  await vi.waitFor(() => expect(agent.messages.map(({ role }) => role)).toEqual(["user", "assistant"]));
  expect((await runtime.threads.list()).map(({ title }) => title)).toEqual(["a question"]);
});

test.each<[string, Partial<AgentRuntimeOptions>, string | undefined]>([
  ["an encrypted database", { encryption: { key: fastKey } }, "unlocked"],
  ["one that is not encrypted", {}, undefined],
])("what the storage could not tell at the first look of %s is told after another one", async (_, options, wanted) => {
  const first = vi
    .spyOn(IndexedDBAgentRunner.prototype, "lockState")
    .mockRejectedValueOnce(new RunnerError("storage-lost"));
  onTestFinished(() => first.mockRestore());
  const { is, status } = tabOf({ dbName: freshDb(), logger: quiet, ...options });
  await is({ is: "connected", error: { code: "storage-lost" } });
  await vi.waitFor(() => expect(status()).not.toHaveProperty("error"), 10_000);
  expect(status()).toMatchObject({ is: "connected" });
  expect((status() as { encryption?: string }).encryption).toBe(wanted);
});

test("the run that asks for the key when it works again is answered, and not stopped for that", async () => {
  let fails = true;
  const key = () => (fails ? Promise.reject(new TypeError("planted")) : fastKey);
  const { runtime, is } = tabOf({ dbName: freshDb(), encryption: { key }, logger: quiet });
  await is({ is: "connected", encryption: "locked" });
  const agent = runtime.agent("says", { threadId: "thread" });
  agent.addMessage({ id: "u", role: "user", content: "a question" });
  fails = false;
  await agent.runAgent({ runId: "r" });
  expect(agent.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(await runtime.runner().getRun("r", { threadId: "thread" })).toMatchObject({ status: "finished" });
  await is({ is: "connected", encryption: "unlocked" });
});

/** Timers pass only as the test waits. */
function silently(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
}

test("a host whose function does not answer says hello, and whoever has the key unlocks it (L13)", async () => {
  const dbName = freshDb();
  await withThread(dbName);
  silently();
  const key = vi.fn(() => new Promise<CryptoKey>(() => undefined));
  const { runtime, is } = tabOf({ dbName, encryption: { key }, logger: quiet });
  await vi.waitFor(() => expect(key).toHaveBeenCalled());
  await vi.advanceTimersByTimeAsync(5_000);
  await is({ is: "connected", encryption: "locked", error: { code: "locked" } });
  await runtime.encryption.unlock(fastKey);
  await is({ is: "connected", encryption: "unlocked" });
  expect((await runtime.threads.list()).map(({ title }) => title)).toEqual(["a question"]);
  expect(key).toHaveBeenCalledOnce();
});

test("a key that comes late unlocks the host", async () => {
  const dbName = freshDb();
  await withThread(dbName);
  silently();
  let give = (_key: CryptoKey): void => undefined;
  const key = vi.fn(() => new Promise<CryptoKey>((resolve) => (give = resolve)));
  const { runtime, is } = tabOf({ dbName, encryption: { key }, logger: quiet });
  await vi.waitFor(() => expect(key).toHaveBeenCalled());
  await vi.advanceTimersByTimeAsync(5_000);
  await is({ is: "connected", encryption: "locked" });
  give(fastKey);
  await is({ is: "connected", encryption: "unlocked" });
  expect((await runtime.threads.list()).map(({ title }) => title)).toEqual(["a question"]);
});

test("whoever signs out waits for no key, and none that comes later undoes it", async () => {
  let isSilent = false;
  let give = (_key: CryptoKey): void => undefined;
  const key = vi.fn(() => {
    if (!isSilent) return Promise.reject(new TypeError("planted"));
    return new Promise<CryptoKey>((resolve) => (give = resolve));
  });
  const { runtime, is } = tabOf({ dbName: freshDb(), encryption: { key }, logger: quiet });
  await is({ is: "connected", encryption: "locked" });
  silently();
  isSilent = true;
  const asked = key.mock.calls.length;
  const agent = runtime.agent("says", { threadId: "thread" });
  agent.addMessage({ id: "u", role: "user", content: "a question" });
  const refused = expect(agent.runAgent()).rejects.toMatchObject({ code: "locked" });
  while (key.mock.calls.length === asked) await vi.advanceTimersByTimeAsync(0);
  // No time passes.
  await runtime.encryption.lock();
  give(fastKey);
  await refused;
  await is({ is: "connected", encryption: "new" });
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "locked" });
});
