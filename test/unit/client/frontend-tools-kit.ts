import { EventType, type AbstractAgent, type BaseEvent, type Message } from "@ag-ui/client";
import { expect, onTestFinished, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import { FrontendTools, type FrontendTool } from "../../../src/client/tools/frontend-tools.js";
import { ThreadStore } from "../../../src/client/store/thread-store.js";
import { serveRuntime, type RuntimeHost } from "../../../src/worker/serve-runtime.js";
import { agentOf, freshDb } from "../runner/kit.js";

/** Calls the tools that the question names ("a b": two calls, "no tools": none); then says what they gave. */
export const caller = () =>
  agentOf(async function* ({ messages, runId, tools }): AsyncGenerator<BaseEvent> {
    const last = messages.at(-1)!;
    const parentMessageId = `${runId}-m`;
    if (last.content === "no tools") return;
    if (last.role === "user") {
      const names = String(last.content).split(" ");
      for (const [at, name] of names.entries()) {
        const toolCallId = `${runId}-${at}`;
        yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: name, parentMessageId } as BaseEvent;
        yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: `{"n":${at}}` } as BaseEvent;
        yield { type: EventType.TOOL_CALL_END, toolCallId } as BaseEvent;
      }
      return;
    }
    const results = messages.flatMap((message) => (message.role === "tool" ? [String(message.content)] : []));
    const offered = tools.map(({ name }) => name).join("+");
    yield { type: EventType.TEXT_MESSAGE_START, messageId: parentMessageId, role: "assistant" } as BaseEvent;
    const delta = `${offered}: ${results.join(", ")}`;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: parentMessageId, delta } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId: parentMessageId } as BaseEvent;
  });

export function host(agents: Readonly<Record<string, AbstractAgent>> = { caller: caller() }, dbName = freshDb()) {
  return hostOf(serveRuntime({ dbName, stopGraceMs: 50, agents }));
}

export function hostOf(served: RuntimeHost) {
  onTestFinished(() => served.close());
  const connect = (): RuntimeConnection => {
    const runtime = connectRuntime({ hosts: { page: async () => served.connect() } });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  /** A tab that shows the thread and offers these tools. */
  const tab = (...offered: readonly FrontendTool[]) => {
    const runtime = connect();
    const tools = new FrontendTools();
    for (const tool of offered) tools.add(tool);
    const store = new ThreadStore(runtime, { agentId: "caller", threadId: "t", tools });
    onTestFinished(store.subscribe(() => undefined));
    return { runtime, tools, store, close: () => runtime.close() };
  };
  return { served, connect, tab };
}

export type Tab = ReturnType<ReturnType<typeof host>["tab"]>;

export const tool = (
  name: string,
  handler?: FrontendTool["handler"],
  more: Partial<FrontendTool> = {},
): FrontendTool => ({
  name,
  description: name,
  parameters: { type: "object" },
  ...(handler !== undefined && { handler }),
  ...more,
});

export const texts = ({ store }: Tab): string[] =>
  store
    .getSnapshot()
    .messages.flatMap(({ role, content }: Message) => (role === "assistant" && content ? [String(content)] : []));
export const toolMessages = ({ store }: Tab): Message[] =>
  store.getSnapshot().messages.filter(({ role }) => role === "tool");
export const shows = (tab: Tab, text: string): Promise<void> =>
  vi.waitFor(() => expect(texts(tab)).toEqual([text]), 10_000);
const calls = ({ store }: Tab) =>
  store.getSnapshot().toolCalls.map(({ status, isHere }) => `${status}${isHere ? " here" : ""}`);
export const callsAre = (tab: Tab, ...expected: string[]): Promise<void> =>
  vi.waitFor(() => expect(calls(tab)).toEqual(expected), 10_000);
export const runsOf = async ({ runtime }: Tab) => runtime.runner().listRuns("t");
