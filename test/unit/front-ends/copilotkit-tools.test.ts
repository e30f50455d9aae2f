import { EventType } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { liveAgent } from "../../../src/copilotkit/live-agent.js";
import { SharedTools, type CopilotKitTool, type RunsTools } from "../../../src/copilotkit/shared-tools.js";
import { agentOf, gated, user } from "../runner/kit.js";
import { host } from "../client/store/thread-store-kit.js";

/** Calls each tool that it is given, then says what they gave. */
const caller = agentOf(async function* ({ messages, tools, runId }) {
  if (messages.at(-1)?.role === "tool") {
    const messageId = `${runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    return yield { type: EventType.TEXT_MESSAGE_END, messageId };
  }
  for (const { name } of tools) {
    yield { type: EventType.TOOL_CALL_START, toolCallId: name, toolCallName: name };
    yield { type: EventType.TOOL_CALL_END, toolCallId: name };
  }
});

/** CopilotKit's core, by what is asked of it: it runs no handlers by itself. */
function coreOf(tools: Readonly<Record<string, CopilotKitTool>>) {
  const subscribers = new Set<Parameters<RunsTools<LocalAgent>["subscribe"]>[0]>();
  const definitions = Object.keys(tools).map((name) => ({ name, description: "", parameters: {} }));
  const core: RunsTools<LocalAgent> = {
    tools: Object.values(tools),
    runAgent: ({ agent, runId }) => agent.runAgent({ tools: definitions, ...(runId !== undefined && { runId }) }),
    connectAgent: ({ agent }) => agent.connectAgent(),
    getTool: ({ toolName }) => tools[toolName],
    subscribe: (subscriber) => {
      subscribers.add(subscriber);
      return { unsubscribe: () => void subscribers.delete(subscriber) };
    },
  };
  return Object.assign(core, { subscribers });
}

function chat(tools: Readonly<Record<string, CopilotKitTool>>) {
  const runtime = host({ caller }).connect();
  const agent = liveAgent(runtime.agent("caller", { threadId: "t" }));
  const core = coreOf(tools);
  return { runtime, agent, core, shared: SharedTools.of(runtime, core, agent) };
}

test("another core takes the agent over, and nothing of the first one stays when its last handler has ended", async () => {
  const { gate, letOn } = gated();
  const handler = vi.fn();
  const { runtime, agent, core, shared } = chat({ slow: { handler } });
  const { runAgent } = core;
  // As CopilotKit does it: the handler runs behind the run.
  core.runAgent = async (parameters) => {
    await runAgent(parameters);
    if (parameters.runId === undefined) return;
    await gate;
    const execution = { agentId: "caller", toolCallId: "slow", result: "done" };
    for (const subscriber of core.subscribers) await subscriber.onToolExecutionEnd?.(execution);
  };
  const unsubscribe = shared.subscribe(() => undefined);
  await agent.connectAgent();
  agent.addMessage(user("u", "go"));
  await core.runAgent({ agent });
  await vi.waitFor(() => expect(shared.getSnapshot()).toMatchObject([{ status: "running" }]));
  const before = agent.subscribers.length;
  const second = coreOf({});
  SharedTools.of(runtime, second, agent);
  expect([core.subscribers.size, second.subscribers.size]).toEqual([1, 1]);
  letOn();
  await vi.waitFor(() => expect(core.subscribers.size).toBe(0));
  const results = (): unknown[] => agent.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  await vi.waitFor(() => expect(results()).toEqual(["done"]));
  expect(handler).not.toHaveBeenCalled();
  unsubscribe();
  expect(agent.subscribers.length).toBeLessThanOrEqual(before);
});

test("a handler whose call was answered while it waited for its turn is not run", async () => {
  const { gate, letOn } = gated();
  const second = vi.fn();
  const { agent, core, shared } = chat({ first: { handler: () => gate }, second: { handler: second } });
  onTestFinished(shared.subscribe(() => undefined));
  await agent.connectAgent();
  agent.addMessage(user("u", "go"));
  await core.runAgent({ agent });
  await vi.waitFor(() => expect(shared.getSnapshot()).toMatchObject([{ status: "running" }, { status: "running" }]));
  expect(second).not.toHaveBeenCalled();
  await shared.answer("second", "by hand");
  await vi.waitFor(() => expect(shared.getSnapshot()[1]).toMatchObject({ status: "answered" }));
  letOn();
  const results = (): unknown[] => agent.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  await vi.waitFor(() => expect(results().sort()).toEqual(["", "by hand"]));
  expect(second).not.toHaveBeenCalled();
});
