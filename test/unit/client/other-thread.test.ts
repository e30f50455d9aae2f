import { EventType, type Message, type RunAgentInput } from "@ag-ui/client";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { expect, onTestFinished, test } from "vitest";
import { agentOf, freshDb } from "../runner/kit.js";

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
