import { firstValueFrom, filter } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { IndexedDBCheckpointStore } from "../../../src/checkpoint/index.js";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { HostFactories } from "../../../src/client/start-host.js";
import { defaultLocks } from "../../../src/platform/locks.js";
import { IndexedDBSaver } from "../../../src/langgraph/index.js";
import { hostLifeLockName, STAND_IN } from "../../../src/platform/names.js";
import { AgentRuntime } from "../../../src/runtime/agent-runtime.js";
import { InMemoryAgentRunner } from "../../../src/runner/in-memory-agent-runner.js";
import { PROTOCOL_VERSION } from "../../../src/wire/shapes.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, counter, freshDb, makeRunner } from "../runner/kit.js";

/** A host, and a tab of it: each for a user, or for none. */
function pairOf(dbName: string, hostUser?: string, tabUser = hostUser) {
  const host = serveRuntime({
    dbName,
    agents: { counter: agentOf(counter(2)) },
    ...(hostUser !== undefined && { user: hostUser }),
  });
  let starts = 0;
  const page = async (): Promise<MessagePort> => {
    starts++;
    return host.connect();
  };
  const runtime = connectRuntime({ hosts: { page }, ...(tabUser !== undefined && { user: tabUser }) });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return { runtime, starts: () => starts };
}

test("users of one database name have threads, runs and thread ids of their own", async () => {
  const dbName = freshDb();
  const pairs = [pairOf(dbName), pairOf(dbName, "ada"), pairOf(dbName, "bob")];
  const ends = pairs.map(async ({ runtime }, n) => {
    const agent = runtime.agent("counter", { threadId: "same" });
    agent.addMessage({ id: `m${n}`, role: "user", content: `of ${n}` });
    await agent.runAgent({ runId: "same" });
    const [thread] = await runtime.threads.list();
    const { messages } = await runtime.threads.messages("same");
    return [thread?.title, messages.length];
  });
  expect(await Promise.all(ends)).toEqual([
    ["of 0", 2],
    ["of 1", 2],
    ["of 2", 2],
  ]);
  expect(pairs.map(({ runtime }) => runtime.user)).toEqual([undefined, "ada", "bob"]);
});

test.each([
  ["of another user", "bob", "ada"],
  ["of a user, by a tab of none", "bob", undefined],
  ["of none, by a tab of a user", undefined, "ada"],
  ["of a user in other letters", "Ada", "ada"],
])("a host %s is refused, and not asked again", async (_, hostUser, tabUser) => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const dbName = freshDb();
  const host = serveRuntime({ dbName, agents: {}, ...(hostUser !== undefined && { user: hostUser }) });
  let starts = 0;
  const runtime = connectRuntime({
    hosts: { page: async () => (starts++, host.connect()) },
    ...(tabUser !== undefined && { user: tabUser }),
  });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const message = expect.stringMatching(/another user.*new SharedWorker\(url, \{ name: user \}\)/);
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "wrong-user", message });
  const failed = await firstValueFrom(runtime.status$.pipe(filter(({ is }) => is === "failed")));
  expect(failed).toMatchObject({ error: { code: "wrong-user", message } });
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "wrong-user" });
  // Longer than any pause between tries.
  await vi.advanceTimersByTimeAsync(60_000);
  expect(starts).toBe(1);
  vi.useRealTimers();
  // Its owner's id is none of this tab's business.
  expect(JSON.stringify(failed)).not.toContain("bob");
  const answer = await runtime.fetch("/threads/t/messages");
  expect([answer.status, await answer.json()]).toMatchObject([503, { error: "wrong-user" }]);
});

test("a SharedWorker is called as the user, and so is the one that stands in for it", async () => {
  const life = await defaultLocks()!.hold(hostLifeLockName("db", "mute"));
  const asked: string[] = [];
  const shared = (name: string): SharedWorker => {
    if (!asked.includes(name)) asked.push(name);
    const { port1, port2 } = new MessageChannel();
    const api = new MessageChannel();
    onTestFinished(() => [port1, port2, api.port1].forEach((port) => port.close()));
    const hello = {
      type: "hello",
      protocol: PROTOCOL_VERSION,
      hostId: "mute",
      dbName: "db",
      kind: "page",
      user: "ada",
    };
    if (asked.length === 2) port1.postMessage({ ...hello, port: api.port2 }, [api.port2]);
    return Object.assign(new EventTarget(), { port: port2, onerror: null });
  };
  const hosts: HostFactories = { shared };
  const runtime = connectRuntime({ hosts, user: "ada", startTimeoutMs: 100, callTimeoutMs: 3_000 });
  onTestFinished(async () => {
    await runtime.close();
    await life.release();
  });
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "timeout" });
  expect(asked.slice(0, 2)).toEqual(["ada", `ada${STAND_IN}host-2`]);
});

test("a host that stands in for a user's is of that user", async () => {
  const dbName = freshDb();
  const { runtime } = pairOf(dbName, "ada");
  const { runtime: other } = pairOf(dbName, `ada${STAND_IN}host-2`, "ada");
  await runtime.agent("counter", { threadId: "t" }).runAgent();
  expect(await other.threads.list()).toMatchObject([{ threadId: "t" }]);
});

test("a user that is none is refused, as is the empty name of a worker, with what to do", () => {
  const message = expect.stringContaining("new SharedWorker(url, { name: user })");
  const hosts = { page: async () => new MessageChannel().port1 };
  for (const user of ["", "a".repeat(201), "\ud800", 7 as unknown as string]) {
    const refused = expect.objectContaining({ code: "invalid-input", message });
    expect(() => serveRuntime({ agents: {}, user })).toThrow(refused);
    expect(() => connectRuntime({ hosts, user })).toThrow(refused);
    expect(() => makeRunner({ user })).toThrow(refused);
    expect(() => new IndexedDBCheckpointStore({ user })).toThrow(refused);
    expect(() => new IndexedDBSaver({ user })).toThrow(refused);
  }
});

test("a worker whose options are refused says so to each tab", async () => {
  const SharedWorkerGlobalScope = { [Symbol.hasInstance]: () => true };
  const listeners: ((event: Event) => void)[] = [];
  const original = globalThis.addEventListener;
  Object.assign(globalThis, {
    SharedWorkerGlobalScope,
    addEventListener: (_: string, listener: (event: Event) => void) => listeners.push(listener),
  });
  onTestFinished(() => {
    Reflect.deleteProperty(globalThis, "SharedWorkerGlobalScope");
    Object.assign(globalThis, { addEventListener: original });
  });
  expect(() => serveRuntime({ agents: {}, user: "" })).toThrow();
  const page = async (): Promise<MessagePort> => {
    const { port1, port2 } = new MessageChannel();
    listeners.forEach((listener) => listener(Object.assign(new Event("connect"), { ports: [port1] })));
    return port2;
  };
  const runtime = connectRuntime({ hosts: { page }, user: "ada" });
  onTestFinished(() => runtime.close());
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "invalid-input", details: { field: "user" } });
});

test("a runner of one's own has the user, and not the runtime beside it", async () => {
  const dbName = freshDb();
  const refused = { code: "invalid-input", details: { field: "user" } };
  const beside = { agents: {}, runner: makeRunner({ dbName }), user: "ada" };
  expect(() => new AgentRuntime(beside)).toThrow(expect.objectContaining(refused));
  const memory = new InMemoryAgentRunner({ dbName, user: "ada" });
  onTestFinished(() => memory.destroy());
  for (const runner of [makeRunner({ dbName, user: "ada" }), memory]) {
    const host = serveRuntime({ agents: {}, runner });
    const [own, other] = ["ada", "bob"].map((user) =>
      connectRuntime({ hosts: { page: async () => host.connect() }, user }),
    );
    onTestFinished(async () => {
      await Promise.all([own!.close(), other!.close()]);
      await host.close();
    });
    expect(await own!.threads.list()).toEqual([]);
    expect(runner.dbName).toBe(`${dbName}@ada`);
    await expect(other!.threads.list()).rejects.toMatchObject({ code: "wrong-user" });
  }
});

test("checkpoints of one user are not another's", async () => {
  const dbName = freshDb();
  const stores = ["ada", "bob"].map((user) => new IndexedDBCheckpointStore({ dbName, user }));
  const savers = ["ada", "bob"].map((user) => new IndexedDBSaver({ dbName, user }));
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
  await stores[0]!.save({
    id: "c",
    graphId: "g",
    runId: "r",
    nodeId: "n",
    timestamp: 1,
    state: { input: {}, scratch: {}, artifacts: {}, diagnostics: {} as never },
    nodeResults: {},
    visitedNodes: [],
    pendingEdges: [],
  });
  expect(await Promise.all(stores.map(async (store) => (await store.get("c"))?.id))).toEqual(["c", undefined]);
  const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const checkpoint = { v: 4, id: "1", ts: "", channel_values: {}, channel_versions: {}, versions_seen: {} };
  await savers[0]!.put(config, checkpoint, { source: "input", step: -1, parents: {} }, {});
  expect(await Promise.all(savers.map(async (saver) => (await saver.getTuple(config))?.checkpoint.id))).toEqual([
    "1",
    undefined,
  ]);
});
