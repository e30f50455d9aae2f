import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { hostWith, lagging } from "./kit.js";
import { agentOf, collect, counter, inputOf, rebuild, replay, user } from "../runner/kit.js";

const run = (runner: LocalAgentRunner, runId: string): Promise<unknown> =>
  collect(runner.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", runId) }));

const idsIn = (agent: LocalAgent): string[] => agent.messages.map(({ id }) => id);

/** Waits until the agent shows what the log says, and nothing else. */
const showsTheLog = async (agent: LocalAgent, runner: LocalAgentRunner): Promise<void> => {
  const truth = (await rebuild(await replay(runner, "t"))).messages.map(({ id }) => id);
  await vi.waitFor(() => expect(idsIn(agent)).toEqual(truth));
};

test("a follower that runs before it was told of another run shows both in the order of the log (L2)", async () => {
  const { agent, other } = lagging();
  agent.follow();
  agent.addMessage(user("m0"));
  await agent.runAgent({ runId: "r0" });
  await run(other, "foreign");
  // Where it still read, it may have seen that run begin.
  await vi.waitFor(() => expect(agent.isRunning).toBe(false));
  agent.addMessage(user("m1"));
  await agent.runAgent({ runId: "own" });
  await showsTheLog(agent, other);
  expect(idsIn(agent)).toEqual(["m0", "r0-a", "foreign-u", "foreign-a", "m1", "own-a"]);
});

test("a run that is started before the history is there stays, and continues it (L2)", async () => {
  const { agent, other } = lagging();
  for (const runId of ["a", "b"]) await run(other, runId);
  agent.follow();
  agent.addMessage(user("m0"));
  await agent.runAgent({ runId: "own" });
  await showsTheLog(agent, other);
  agent.addMessage(user("m1"));
  await agent.runAgent({ runId: "next" });
  await showsTheLog(agent, other);
  expect(idsIn(agent)).toEqual(["a-u", "a-a", "b-u", "b-a", "m0", "own-a", "m1", "next-a"]);
});

test("a message that was not sent yet stays behind what a snapshot brings (L2)", async () => {
  const { agent, other } = lagging();
  await run(other, "a");
  agent.addMessage(user("unsent"));
  agent.follow();
  await vi.waitFor(() => expect(idsIn(agent)).toEqual(["a-u", "a-a", "unsent"]));
  await agent.runAgent({ runId: "own" });
  await showsTheLog(agent, other);
});

test("connectAgent waits for what only a snapshot brings after an own run (L2)", async () => {
  const { agent, other } = lagging();
  agent.follow();
  await agent.connectAgent();
  await collect(other.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "unseen") }));
  agent.addMessage(user("own-u"));
  await agent.runAgent({ runId: "own" });
  await agent.connectAgent();
  expect(agent.messages).toEqual(await other.getThreadMessages("t"));
});

test("a follower tells that the thread is idle once its messages are there, also where they take time (L2)", async () => {
  const { agent, other } = lagging();
  await run(other, "before");
  const shown: string[][] = [];
  agent.run$.subscribe((it) => {
    if (it.is === "idle" && it.last !== undefined) shown.push(idsIn(agent));
  });
  // Holds up the pipeline at each message.
  agent.subscribe({ onMessagesSnapshotEvent: () => new Promise<void>((resolve) => setImmediate(resolve)) });
  agent.follow();
  await vi.waitFor(() => expect(shown[0]).toEqual(["before-u", "before-a"]));
});

test("a follower is not shown what makes other readers forget a thread (L2)", async () => {
  const { runner, hosts } = await hostWith(1);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const agent = runtime.agent("counter", { threadId: "t" });
  agent.follow();
  await showsTheLog(agent, runner);
  const shown: string[] = [];
  agent.subscribe({ onMessagesChanged: ({ messages }) => void shown.push(...messages.map(({ id }) => id)) });
  await runner.deleteThread("t");
  await vi.waitFor(() => expect(agent.messages).toEqual([]));
  expect(shown).toEqual([]);
});
