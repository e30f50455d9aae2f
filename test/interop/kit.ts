import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { EventType, type AbstractAgent, type AgentSubscriber, type Message } from "@ag-ui/client";
import type { AGUIEvent } from "@ag-ui/core";
import type { AgentRunner } from "ag-ui-local-runtime";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { onTestFinished, vi } from "vitest";

/*
 * The part of CopilotKit's packages that the tests use. They are installed beside the tests and not in the root, so
 * their types are not at hand where types are checked.
 */

/** `CopilotKitCore` of `@copilotkit/core`. */
export interface Core {
  readonly runtimeConnectionStatus: string;
  readonly threadEndpoints?: unknown;
  getAgent(agentId: string): CoreAgent | undefined;
  runAgent(params: {
    agent: CoreAgent;
    runId?: string;
    resume?: readonly object[];
    forwardedProps?: object;
  }): Promise<unknown>;
  addTool(tool: { name: string; description: string; handler: (args: { name: string }) => Promise<string> }): void;
  connectAgent(params: { agent: CoreAgent }): Promise<unknown>;
  stopAgent(params: { agent: CoreAgent }): void;
  getRunIdForMessage(agentId: string, threadId: string, messageId: string): string | undefined;
  subscribe(subscriber: { onError: (error: { code: string; error: Error }) => void }): unknown;
}

/** Its agents, of another version of the client. */
export interface CoreAgent {
  threadId: string;
  readonly messages: Message[];
  readonly state: unknown;
  addMessage(message: Message): void;
  clone(): CoreAgent;
  detachActiveRun(): Promise<void>;
  subscribe(subscriber: AgentSubscriber): { unsubscribe(): void };
}

interface Packages {
  readonly CopilotKitCore: new (config: { runtimeUrl: string; runtimeTransport: string }) => Core;
  readonly InMemoryAgentRunner: new () => AgentRunner;
  readonly CopilotRuntime: new (options: { agents: Record<string, AbstractAgent>; runner: AgentRunner }) => object;
  readonly createCopilotNodeListener: (options: {
    runtime: object;
    basePath: string;
    mode?: string;
  }) => RequestListener;
}

process.env["COPILOTKIT_TELEMETRY_DISABLED"] = "true";
// A front end connects where there is a window.
Object.assign(globalThis, { window: {} });
export const copilotKit = (await import(new URL("../copilotkit/whole.mjs", import.meta.url).href)) as Packages;

export const BASE = "/api/copilotkit";

/** A server of this listener. @returns the URL of its runtime */
export async function serve(listener: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${BASE}`;
}

/** A front end, and the codes of the errors that it was told of. */
export async function frontEnd(
  runtimeUrl: string,
  runtimeTransport: string,
): Promise<{ readonly core: Core; readonly errors: string[] }> {
  const core = new copilotKit.CopilotKitCore({ runtimeUrl, runtimeTransport });
  const errors: string[] = [];
  core.subscribe({ onError: ({ code, error }) => void errors.push(`${code}: ${error.message}`) });
  await vi.waitFor(() => {
    if (core.runtimeConnectionStatus !== "connected")
      throw new Error(`the front end is ${core.runtimeConnectionStatus}`);
  });
  return { core, errors };
}

/** A conversation of the front end. */
export function agentOn(core: Core, agentId: string, threadId: string): CoreAgent {
  // Each component has its own.
  const agent = core.getAgent(agentId)!.clone();
  agent.threadId = threadId;
  return agent;
}

/** Which run each message of the agent is of, as the front end knows it. */
export const runsOf = (core: Core, agentId: string, { threadId, messages }: CoreAgent): (string | undefined)[] =>
  messages.map(({ id }) => core.getRunIdForMessage(agentId, threadId, id));

/** Whichever version's messages. */
interface Said {
  readonly role: string;
  readonly content?: unknown;
}
export const textsOf = ({ messages }: { readonly messages: readonly Said[] }): string[] =>
  messages.map(({ role, content }) => `${role}: ${String(content)}`);

/** Lets agents go on that wait. */
export class Gate {
  private open!: () => void;
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
  release(): void {
    this.open();
  }
}

const says = function* (messageId: string, delta: string): Generator<AGUIEvent, void> {
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
};

/**
 * `caller` calls two tools at once, one of the front end, and then says their results; `asking` ends its run with an
 * interrupt, `asking-langgraph` with what LangGraph asks; `failing` throws in the middle of its answer.
 */
const demandingAgents = (): Record<string, AbstractAgent> => ({
  caller: defineAgent(async function* ({ runId, messages }) {
    if (messages.at(-1)?.role === "tool") {
      const results = messages.flatMap(({ role, content }) => (role === "tool" ? [String(content)] : []));
      return yield* says(`${runId}-answer`, results.join(", "));
    }
    for (const [toolCallId, toolCallName] of [
      [`${runId}-page`, "greet"],
      [`${runId}-own`, "look"],
    ] as const) {
      yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId: `${runId}-calls` };
      yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: '{"name":"Ann"}' };
      yield { type: EventType.TOOL_CALL_END, toolCallId };
    }
    yield { type: EventType.TOOL_CALL_RESULT, messageId: `${runId}-seen`, toolCallId: `${runId}-own`, content: "seen" };
  }),
  asking: defineAgent(async function* ({ threadId, runId, resume }) {
    if (resume !== undefined) return yield* says(`${runId}-after`, `answered ${String(resume[0]?.payload)}`);
    yield* says(`${runId}-before`, "may I?");
    const interrupts = [{ id: "i", reason: "confirmation" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } };
  }),
  "asking-langgraph": defineAgent(async function* ({ runId, forwardedProps }) {
    const { command } = forwardedProps as { readonly command?: { readonly resume: string } };
    if (command !== undefined) return yield* says(`${runId}-after`, `answered ${command.resume}`);
    yield* says(`${runId}-before`, "may I?");
    yield { type: EventType.CUSTOM, name: "on_interrupt", value: "may I?" };
  }),
  failing: defineAgent(async function* ({ runId }) {
    yield* says(`${runId}-answer`, "so far");
    throw new Error("no more");
  }),
});

/** `counter` says how many messages and which count it was given; `slow` waits in its middle for the gate, or its stop. */
export const agents = (gate: Gate): Record<string, AbstractAgent> => ({
  ...demandingAgents(),
  counter: defineAgent(async function* ({ runId, messages, state, threadId }) {
    const count = ((state as { count?: number } | undefined)?.count ?? 0) + 1;
    const messageId = `${runId}-answer`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${threadId} has ${messages.length}, ` };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `count ${count}` };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
    yield { type: EventType.STATE_SNAPSHOT, snapshot: { count } };
    yield { type: EventType.RUN_FINISHED, threadId, runId };
  }),
  slow: defineAgent(async function* ({ threadId, runId }, { signal }) {
    const messageId = `${runId}-answer`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "half " };
    await Promise.race([
      gate.opened,
      new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
    ]);
    if (signal.aborted) return;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "whole" };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
    yield { type: EventType.RUN_FINISHED, threadId, runId };
  }),
});
