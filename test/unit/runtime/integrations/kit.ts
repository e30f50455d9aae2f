import { EventType, type AGUIEvent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { connectRuntime, type ConnectRuntimeOptions, type RuntimeConnection } from "ag-ui-local-runtime/client";
import { AgentRuntime, createRuntimeHandler, type AgentRuntimeOptions } from "ag-ui-local-runtime/runtime";
import { serveRuntime, type RuntimeHost } from "ag-ui-local-runtime/worker";
import { onTestFinished } from "vitest";

/** A runtime, and the ways into it that a test takes. */
export interface Served {
  readonly runtime: AgentRuntime;
  readonly host: RuntimeHost;
  readonly handler: (request: Request) => Promise<Response>;
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>;
  /** POSTs JSON; the events of the answer. */
  readonly events: (path: string, body: unknown, headers?: Record<string, string>) => Promise<BaseEvent[]>;
  /** A tab in this same context. */
  readonly tab: (options?: Omit<ConnectRuntimeOptions, "hosts">) => RuntimeConnection;
}

/** Serves a runtime until the test ends. In Node, `fake-indexeddb/auto` has to be there. */
export function served(options: AgentRuntimeOptions): Served {
  const dbName = `runtime-${crypto.randomUUID()}`;
  const runtime = new AgentRuntime({ dbName, stopGraceMs: 50, ...options });
  const host = serveRuntime(runtime);
  const handler = createRuntimeHandler({ runtime });
  onTestFinished(async () => {
    await host.close();
    indexedDB.deleteDatabase(dbName);
  });
  const fetch: Served["fetch"] = (path, init) => handler(new Request(`http://localhost${path}`, init));
  return {
    runtime,
    host,
    handler,
    fetch,
    events: async (path, body, headers) => eventsOf(await fetch(path, postOf(body, headers))),
    tab: (given = {}) => {
      const connection = connectRuntime({ ...given, hosts: { page: async () => host.connect() } });
      onTestFinished(() => connection.close());
      return connection;
    },
  };
}

export const postOf = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

/** The events of a stream, each as it came. */
export async function eventsOf(response: Response): Promise<BaseEvent[]> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice("data: ".length)) as BaseEvent);
}

/** What an AG-UI client sends for a run in which the user says `content`. */
export const inputOf = (
  threadId: string,
  runId: string,
  { content = "hello", forwardedProps = {} }: { content?: string; forwardedProps?: object } = {},
): RunAgentInput => ({
  threadId,
  runId,
  messages: [{ id: `${runId}-u`, role: "user", content }],
  state: {},
  tools: [],
  context: [],
  forwardedProps,
});

export const typesOf = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);

/** The events of a call of `tool`, its arguments in pieces of `size` characters. */
export function* callOf(toolCallId: string, tool: string, given: unknown, size = 20): Iterable<AGUIEvent> {
  const text = JSON.stringify(given);
  yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: tool };
  for (let at = 0; at < text.length; at += size) {
    yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: text.slice(at, at + size) };
  }
  yield { type: EventType.TOOL_CALL_END, toolCallId };
}
