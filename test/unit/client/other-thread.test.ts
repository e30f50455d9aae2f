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

test("who asked for a run that waited is told nothing of a run of another thread with the same id", async () => {
  const waiting = gatedAgent();
  const beside = gatedAgent();
  onTestFinished(waiting.open);
  onTestFinished(beside.open);
  const runtime = hostOf({ agents: { a: waiting.agent, b: beside.agent } }).connect();
  const first = runtime.agent("a", { threadId: "t" });
  first.addMessage(user("u", "one"));
  const live = first.runAgent({ runId: "live" });
  await vi.waitFor(() => expect(waiting.executed).toEqual(["live"]));
  const agent = runtime.agent("a", { threadId: "t" });
  const unfollow = agent.follow();
  await vi.waitFor(() => expect(idsOf(agent.messages)).toContain("u"));
  agent.addMessage(user("w", "two"));
  const told: string[] = [];
  const note = ({ event }: { readonly event: { readonly messageId: string } }): void => void told.push(event.messageId);
  const waits = agent.runAgent({ runId: "same", onBusy: "queue" }, { onTextMessageStartEvent: note });
  await vi.waitFor(async () => expect(await runtime.waiting.list("t")).toHaveLength(1));
  waiting.letOn("live");
  await live;
  await vi.waitFor(() => expect(told).toEqual(["same-a"]));
  unfollow();
  agent.threadId = "other";
  agent.setMessages([]);
  onTestFinished(agent.follow());
  await agent.connectAgent();
  const other = runtime.agent("b", { threadId: "other" });
  other.addMessage(user("v", "three"));
  const running = other.runAgent({ runId: "same" });
  await vi.waitFor(() => expect(idsOf(agent.messages)).toContain("same-a"));
  beside.letOn("same");
  await running;
  await vi.waitFor(() => expect(agent.messages).toEqual(other.messages));
  expect(told).toEqual(["same-a"]);
  waiting.letOn("same");
  expect(await waits).toMatchObject({ newMessages: [] });
});

/** A run that streams in `t`, whose agent is set to `other` by then. */
async function leftMidRun() {
  const { agent: gated, executed, letOn, open } = gatedAgent();
  onTestFinished(open);
  const { connect } = hostOf({ agents: { a: gated } });
  const runtime = connect();
  const agent = runtime.agent("a", { threadId: "t" });
  agent.addMessage(user("u", "hello"));
  const running = agent.runAgent({ runId: "r" });
  await vi.waitFor(() => expect(idsOf(agent.messages)).toContain("r-a"));
  agent.threadId = "other";
  agent.setMessages([user("v", "and here?")]);
  const over = (threadId: string): Promise<void> =>
    vi.waitFor(async () => expect((await runtime.threads.get(threadId))?.live).toBeUndefined());
  return { runtime, agent, running, executed, letOn, over };
}

test("a run goes on in its thread, and is not shown in the one that is set while it streams", async () => {
  const { runtime, agent, running, letOn, over } = await leftMidRun();
  const told: unknown[] = [];
  agent.subscribe({ onMessagesChanged: ({ messages }) => void told.push(idsOf(messages)) });
  letOn("r");
  expect(await running).toEqual({ result: undefined, newMessages: [] });
  await over("t");
  expect([idsOf(agent.messages), told]).toEqual([["v"], []]);
  expect(idsOf(await runtime.runner().getThreadMessages("t"))).toEqual(["u", "r-a"]);
  letOn("o");
  await agent.runAgent({ runId: "o" });
  expect(idsOf(agent.messages)).toEqual(["v", "o-a"]);
  expect(idsOf(await runtime.runner().getThreadMessages("other"))).toEqual(["v", "o-a"]);
});

test("the thread that is set while a run of another one streams is read at once, and runs beside it", async () => {
  const { runtime, agent, running, executed, letOn, over } = await leftMidRun();
  await agent.connectAgent();
  expect(await running).toMatchObject({ newMessages: [] });
  letOn("o");
  await agent.runAgent({ runId: "o" });
  expect(executed).toEqual(["r", "o"]);
  letOn("r");
  await over("t");
  expect(idsOf(agent.messages)).toEqual(["v", "o-a"]);
  // What is known of the one is not taken for the other: only the new message is sent, behind what is there.
  agent.addMessage(user("w", "more"));
  letOn("p");
  await agent.runAgent({ runId: "p" });
  expect(idsOf(await runtime.runner().getThreadMessages("other"))).toEqual(["v", "o-a", "w", "p-a"]);
  expect(idsOf(await runtime.runner().getThreadMessages("t"))).toEqual(["u", "r-a"]);
});

test("a stop reaches the run in its own thread (L11)", async () => {
  const { runtime, agent, running, over } = await leftMidRun();
  agent.abortRun();
  await running;
  await over("t");
  expect(await runtime.runner().getRun("r", { threadId: "t" })).toMatchObject({ status: "stopped" });
});

test("a live run that is only read is not shown in a thread that is set meanwhile", async () => {
  const { runtime, agent: first, running, letOn } = await leftMidRun();
  const agent = runtime.agent("a", { threadId: "t" });
  const reading = agent.connectAgent();
  await vi.waitFor(() => expect(idsOf(agent.messages)).toContain("r-a"));
  agent.threadId = "other";
  agent.setMessages([user("v", "and here?")]);
  letOn("r");
  expect(await reading).toMatchObject({ newMessages: [] });
  expect(idsOf(agent.messages)).toEqual(["v"]);
  letOn("o");
  await agent.runAgent({ runId: "o" });
  expect(idsOf(await runtime.runner().getThreadMessages("other"))).toEqual(["v", "o-a"]);
  await running;
  expect(idsOf(first.messages)).toEqual(["v"]);
});

test("an agent that follows shows the thread that it is set to, and no other", async () => {
  const { runtime, letOn, over } = await leftMidRun();
  const other = runtime.agent("a", { threadId: "other" });
  other.addMessage(user("w", "hi"));
  letOn("o");
  await other.runAgent({ runId: "o" });
  const agent = runtime.agent("a", { threadId: "t" });
  onTestFinished(agent.follow());
  await vi.waitFor(() => expect(idsOf(agent.messages)).toContain("r-a"));
  agent.threadId = "other";
  agent.setMessages([]);
  await agent.connectAgent();
  expect(agent.messages).toEqual(other.messages);
  letOn("r");
  await over("t");
  other.addMessage(user("x", "again"));
  letOn("q");
  await other.runAgent({ runId: "q" });
  await vi.waitFor(() => expect(agent.messages).toEqual(other.messages));
});
