import { EventType, type Message, type RunAgentInput } from "@ag-ui/client";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { expect, onTestFinished, test, vi } from "vitest";
import { agentOf, freshDb, user } from "../runner/kit.js";
import { gatedAgent, hostOf } from "../waiting/kit.js";

const idsOf = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

/** A tab's agent on a thread of one run, and what the agent in the host was given at each. */
async function talked() {
  const given: RunAgentInput[] = [];
  const answers = agentOf(async function* (input) {
    given.push(structuredClone({ ...input, messages: [...input.messages] }));
    const messageId = `${input.runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "yes" };
    yield { type: EventType.STATE_SNAPSHOT, snapshot: { runs: given.length } };
  });
  const host = serveRuntime({ agents: { answers }, dbName: freshDb() });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const agent = runtime.agent("answers", { threadId: "t" });
  agent.addMessage({ id: "u", role: "user", content: "hello" });
  await agent.runAgent({ runId: "r" });
  return { runtime, agent, given };
}

test("an agent that is set to another thread sends that one all that it shows", async () => {
  const { runtime, agent, given } = await talked();
  agent.threadId = "other";
  agent.addMessage({ id: "next", role: "user", content: "and here?" });
  await agent.runAgent({ runId: "o" });
  expect(idsOf(given[1]!.messages)).toEqual(["u", "r-a", "next"]);
  expect(given[1]!.state).toEqual({ runs: 1 });
  expect(idsOf(await runtime.runner().getThreadMessages("other"))).toEqual(["u", "r-a", "next", "o-a"]);
});

test("a clone that is asked for suggestions in a thread of its own shows its agent the conversation", async () => {
  const { runtime, agent, given } = await talked();
  const copy = agent.clone();
  copy.threadId = "suggestions";
  copy.addMessage({ id: "prompt", role: "user", content: "suggest" });
  const toolChoice = { type: "function", function: { name: "copilotkitSuggest" } };
  await copy.runAgent({ runId: "s", forwardedProps: { toolChoice } });
  expect(idsOf(given[1]!.messages)).toEqual(["u", "r-a", "prompt"]);
  expect((await runtime.threads.list()).map(({ threadId }) => threadId)).toEqual(["t"]);
});

test("an agent that is set to another thread and reads it has that one alone", async () => {
  const { runtime, agent } = await talked();
  const other = runtime.agent("answers", { threadId: "other" });
  other.addMessage({ id: "v", role: "user", content: "hello" });
  await other.runAgent({ runId: "o" });
  agent.threadId = "other";
  agent.setMessages([]);
  await agent.connectAgent();
  expect(agent.messages).toEqual(other.messages);
});

test("an agent that is set to another thread knows nothing of how the runs of the first one ended", async () => {
  const { agent } = await talked();
  const known: unknown[] = [];
  agent.run$.subscribe((run) => known.push(run));
  expect(known).toMatchObject([{ is: "idle", last: { runId: "r" } }]);
  agent.threadId = "other";
  agent.setMessages([]);
  await agent.connectAgent();
  expect(known.at(-1)).toEqual({ is: "idle" });
});

test("a run that may wait goes on in its thread, and is not shown in the one that was set meanwhile", async () => {
  const { agent: gated, open } = gatedAgent();
  open();
  const { connect } = hostOf({ agents: { a: gated } });
  const runtime = connect();
  const agent = runtime.agent("a", { threadId: "t" });
  agent.addMessage(user("u", "hello"));
  const running = agent.runAgent({ runId: "r", onBusy: "queue" });
  agent.threadId = "other";
  agent.setMessages([]);
  agent.addMessage(user("v", "and here?"));
  expect(await running).toEqual({ result: undefined, newMessages: [] });
  expect(idsOf(agent.messages)).toEqual(["v"]);
  expect(idsOf(await runtime.runner().getThreadMessages("t"))).toEqual(["u", "r-a"]);
  await agent.runAgent({ runId: "o" });
  expect(idsOf(await runtime.runner().getThreadMessages("other"))).toEqual(["v", "o-a"]);
});

test("a run that waits settles also where its agent shows another thread by then", async () => {
  const { agent: gated, executed, letOn, open } = gatedAgent();
  onTestFinished(open);
  const { connect } = hostOf({ agents: { a: gated } });
  const runtime = connect();
  const first = connect().agent("a", { threadId: "t" });
  first.addMessage(user("u", "one"));
  const live = first.runAgent({ runId: "live" });
  await vi.waitFor(() => expect(executed).toEqual(["live"]));
  const agent = runtime.agent("a", { threadId: "t" });
  let unfollow = agent.follow();
  await vi.waitFor(() => expect(idsOf(agent.messages)).toContain("u"));
  agent.addMessage(user("w", "two"));
  const waits = agent.runAgent({ runId: "waits", onBusy: "queue" });
  await vi.waitFor(async () => expect(await runtime.waiting.list("t")).toHaveLength(1));
  unfollow();
  agent.threadId = "other";
  agent.setMessages([]);
  unfollow = agent.follow();
  onTestFinished(() => unfollow());
  letOn("live");
  await live;
  await vi.waitFor(() => expect(executed).toEqual(["live", "waits"]));
  letOn("waits");
  expect(await waits).toMatchObject({ newMessages: [] });
  expect(agent.messages).toEqual([]);
  expect(idsOf(await runtime.runner().getThreadMessages("t"))).toEqual(["u", "live-a", "w", "waits-a"]);
});
