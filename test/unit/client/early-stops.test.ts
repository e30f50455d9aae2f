import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, counter, freshDb, gated, makeRunner, user } from "../runner/kit.js";
import { gatedAgent, hostOf } from "../waiting/kit.js";
import { echo, host, idle } from "./store/thread-store-kit.js";

/*
 * A stop that comes before the run has begun (L11), and questions that no host answers (L13).
 */

function gatedEcho() {
  const { gate, letOn } = gated();
  onTestFinished(letOn);
  return host({ echo: echo(gate) });
}

const how = (agent: { readonly run$: { subscribe: (told: (run: unknown) => void) => { unsubscribe(): void } } }) => {
  let now: unknown;
  agent.run$.subscribe((run) => (now = run)).unsubscribe();
  return now;
};

test("a run that is stopped in the tick of its call is stopped once it has begun (L11)", async () => {
  const agent = gatedEcho().connect().agent("echo", { threadId: "t" });
  agent.addMessage(user("u", "wait"));
  const running = agent.runAgent();
  agent.abortRun();
  await running;
  expect(how(agent)).toMatchObject({ is: "idle", last: { status: "stopped" } });
  // It was that run's alone.
  agent.addMessage(user("v", "next"));
  await agent.runAgent();
  expect(how(agent)).toMatchObject({ is: "idle", last: { status: "finished" } });
});

test("so is one of a thread for a front end (L11)", async () => {
  const { store } = gatedEcho().open("echo");
  await vi.waitFor(() => expect(store.getSnapshot().status).toBe("ready"));
  const sending = store.send("wait");
  store.stop();
  await sending;
  await idle(store, "stopped");
});

test("one that is stopped while its host cannot begin it yet ends as stopped, and its message goes with the next one (L12)", async () => {
  const { gate, letOn } = gated();
  let isSettling = false;
  const runner = makeRunner({
    dbName: freshDb(),
    atFailurePoint: async (point) => {
      if (point !== "settling.drained") return;
      isSettling = true;
      await gate;
    },
  });
  const started = vi.spyOn(runner, "start");
  const served = serveRuntime({ agents: { counter: agentOf(counter(1)) }, runner });
  onTestFinished(() => served.close());
  const connect = () => {
    const runtime = connectRuntime({ hosts: { page: async () => served.connect() } });
    onTestFinished(() => runtime.close());
    return runtime.agent("counter", { threadId: "t" });
  };
  const other = connect();
  other.addMessage(user("o", "go"));
  const before = other.runAgent();
  await vi.waitFor(() => expect(isSettling).toBe(true));
  const agent = connect();
  agent.addMessage(user("u", "wait"));
  const outcomes: unknown[] = [];
  const running = agent.runAgent({}, { onRunFinishedEvent: ({ outcome }) => void outcomes.push(outcome) });
  await vi.waitFor(() => expect(started).toHaveBeenCalledTimes(2));
  agent.abortRun();
  expect((await running).newMessages).toEqual([]);
  expect(outcomes).toEqual(["cancelled"]);
  letOn();
  await before;
  expect(await runner.listRuns("t")).toHaveLength(1);
  await agent.runAgent({ runId: "next" });
  const input = (await runner.getThreadMessages("t")).map(({ id }) => id);
  expect(input.slice(-2)).toEqual(["u", "next-a"]);
});

test("one that may wait, and was stopped before the host has said whether it does, does not run (L11)", async () => {
  const { agent: gatedOne, open, executed, letOn } = gatedAgent();
  onTestFinished(open);
  const { connect } = hostOf({ agents: { a: gatedOne } });
  const runtime = connect();
  const agent = runtime.agent("a", { threadId: "t" });
  agent.addMessage(user("u", "one"));
  const first = agent.runAgent({ runId: "first", onBusy: "queue" });
  agent.abortRun();
  await first;
  expect(how(agent)).toMatchObject({ is: "idle", last: { runId: "first", status: "stopped" } });

  const other = connect().agent("a", { threadId: "t" });
  other.addMessage(user("v", "two"));
  const live = other.runAgent({ runId: "live" });
  await vi.waitFor(() => expect(executed).toContain("live"));
  agent.addMessage(user("w", "three"));
  const second = agent.runAgent({ runId: "second", onBusy: "queue" });
  agent.abortRun();
  await expect(second).rejects.toMatchObject({ code: "cancelled" });
  expect(await runtime.waiting.list("t")).toEqual([]);
  letOn("live");
  await live;
  expect(executed).not.toContain("second");
});

test("one that waits is not cancelled by a later stop", async () => {
  const { agent: gatedOne, open, executed, letOn } = gatedAgent();
  onTestFinished(open);
  const { connect } = hostOf({ agents: { a: gatedOne } });
  const runtime = connect();
  const other = connect().agent("a", { threadId: "t" });
  other.addMessage(user("v", "two"));
  const live = other.runAgent({ runId: "live" });
  await vi.waitFor(() => expect(executed).toContain("live"));
  const agent = runtime.agent("a", { threadId: "t" });
  agent.addMessage(user("w", "three"));
  const waits = agent.runAgent({ runId: "waits", onBusy: "queue" });
  await vi.waitFor(async () => expect(await runtime.waiting.list("t")).toHaveLength(1));
  agent.abortRun();
  letOn("waits");
  letOn("live");
  await Promise.all([live, waits]);
  expect(executed).toEqual(["live", "waits"]);
});

test.each(["supersede", "queue"] as const)("a stop behind a call with %s stops that run, too (L11)", async (onBusy) => {
  const { agent: gatedOne, open } = gatedAgent();
  onTestFinished(open);
  const runtime = hostOf({ agents: { a: gatedOne } }).connect();
  const agent = runtime.agent("a", { threadId: "t" });
  onTestFinished(agent.follow());
  const other = runtime.agent("a", { threadId: "t" });
  other.addMessage(user("u", "one"));
  const live = other.runAgent({ runId: "live" });
  await vi.waitFor(() => expect(how(agent)).toMatchObject({ is: "running", runId: "live" }));
  agent.addMessage(user("v", "two"));
  const asked = agent.runAgent({ runId: "asked", onBusy }).catch((error: unknown) => error);
  agent.abortRun();
  await Promise.all([live, asked]);
  expect(await runtime.waiting.list("t")).toEqual([]);
  expect((await runtime.threads.get("t"))?.live).toBeUndefined();
  const run = await runtime.runner().getRun("asked", { threadId: "t" });
  // It was cancelled while it waited, or stopped once it had begun.
  expect(["cancelled", "stopped"]).toContain(run?.status ?? "cancelled");
});

test("without a host, the list of what waits says so (L13)", async () => {
  const runtime = connectRuntime({ hosts: {} });
  onTestFinished(() => runtime.close());
  await expect(runtime.waiting.list("t")).rejects.toMatchObject({ code: "no-host" });
});
