import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { AgentRuntime } from "../../../src/runtime/agent-runtime.js";
import { agentOf, collect, counter, inputOf, makeRunner, silent, user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

/** Warnings of Node, and what nobody caught. */
let told: unknown[] = [];
const tell = (what: unknown): void => void told.push(what);
beforeEach(() => {
  told = [];
  process.on("warning", tell);
});
afterEach(async () => {
  for (let task = 0; task < 5; task++) await nextTask();
  process.off("warning", tell);
  expect(told).toEqual([]);
});

/** More than Node lets listen to one emitter without a word. */
const MANY = 30;

async function connected() {
  const { hosts, runner } = await hostWith(1, { silent: agentOf(silent) });
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  return { runtime, runner };
}

test("many runs, readings, followers, stops and reads of one tab warn of nothing", async () => {
  const { runtime } = await connected();
  const agents = Array.from({ length: MANY }, (_, n) => runtime.agent("counter", { threadId: `t${n}` }));
  const unfollow = agents.map((agent) => agent.follow());
  for (const agent of agents) agent.addMessage(user("u"));
  await Promise.all(agents.map((agent) => agent.runAgent()));
  await Promise.all(agents.map((agent) => agent.connectAgent()));
  const watching = agents.map(() => runtime.threads.watch().subscribe());
  await Promise.all(agents.map(() => runtime.threads.list()));
  watching.forEach((each) => each.unsubscribe());
  unfollow.forEach((end) => end());
  const live = agents.map((agent) => runtime.agent("silent", { threadId: `live-${agent.threadId}` }));
  const runs = live.map((agent) => agent.runAgent());
  await Promise.all(live.map(async (agent) => runtime.fetch(`/threads/${agent.threadId}/messages`)));
  live.forEach((agent) => agent.abortRun());
  live.forEach((agent) => agent.abortRun());
  await Promise.allSettled(runs);
});

test("many requests with one signal warn of nothing, in the tab and over HTTP", async () => {
  const { runtime } = await connected();
  const runner = makeRunner();
  const handler = createRuntimeHandler({ runtime: new AgentRuntime({ agents: { a: agentOf(counter(2)) }, runner }) });
  const { signal } = new AbortController();
  const init = (threadId: string): RequestInit => ({
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(inputOf(threadId, "r")),
    signal,
  });
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => [
      runtime.fetch("/agent/counter/run", init(`t${n}`)),
      handler(new Request("http://site.test/agent/a/run", init(`t${n}`))),
    ]).flat(),
  );
  for (const answer of answers) expect(await answer.text()).toContain("RUN_FINISHED");
});

test("many readers of one live run warn of nothing", async () => {
  const { runtime, runner } = await connected();
  const run = runtime.agent("silent", { threadId: "t" });
  const running = run.runAgent({ runId: "live" });
  const readers = Array.from({ length: MANY }, () => runtime.agent("silent", { threadId: "t" }));
  const reading = readers.map((agent) => agent.connectAgent());
  const plain = Array.from({ length: MANY }, () => collect(runner.connect({ threadId: "t" })));
  while (!(await runner.isRunning({ threadId: "t" }))) await nextTask();
  run.abortRun();
  await Promise.allSettled([running, ...reading, ...plain]);
});

test("a runtime that was closed refuses by its own error, and nothing else comes of it", async () => {
  const { runtime } = await connected();
  const agent = runtime.agent("counter", { threadId: "t" });
  const unfollow = agent.follow();
  await agent.connectAgent();
  await runtime.close();
  await runtime.close();
  const closed = { code: "closed" };
  await expect(agent.runAgent()).rejects.toMatchObject(closed);
  await expect(runtime.agent("counter").connectAgent()).rejects.toMatchObject(closed);
  await expect(runtime.threads.list()).rejects.toMatchObject(closed);
  await expect(runtime.fetch("/info")).rejects.toMatchObject(closed);
  agent.abortRun();
  await agent.detachActiveRun();
  unfollow();
  unfollow();
});

test("detaching and stopping what is not there, before or twice, is nothing", async () => {
  const { runtime } = await connected();
  const agent = runtime.agent("counter", { threadId: "t" });
  agent.abortRun();
  await agent.detachActiveRun();
  await agent.detachActiveRun();
  const reading = agent.connectAgent();
  await Promise.all([agent.detachActiveRun(), agent.detachActiveRun()]);
  await reading;
  const run = agent.runAgent();
  agent.abortRun();
  await Promise.all([agent.detachActiveRun(), agent.detachActiveRun(), run]);
  const copy = agent.clone();
  copy.abortRun();
  await copy.detachActiveRun();
  await copy.connectAgent();
});
