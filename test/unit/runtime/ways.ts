import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BaseEvent, Message, RunAgentInput, State } from "@ag-ui/client";
import { connectRuntime, RunnerError, type RuntimeConnection } from "ag-ui-local-runtime/client";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { createRuntimeHandler, type AgentRuntime, type HandlerMode } from "ag-ui-local-runtime/runtime";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import type { Observable } from "rxjs";
import { onTestFinished } from "vitest";
import { errorResponse } from "../../../src/runtime/error-response.js";
import { collect } from "../runner/kit.js";

/** The request was not answered with what it asked for. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly body: string,
  ) {
    super(`${status} ${body}`);
  }
}

/** Somebody who asks a runtime by one way in. Each call throws {@link Refused}. */
export interface Caller {
  /**
   * Starts a run and reads it to its end.
   *
   * @param leaving the caller leaves when it aborts, and the call rejects
   */
  run(agentId: string, input: RunAgentInput, leaving?: AbortSignal): Promise<readonly BaseEvent[]>;
  /** Starts a run and leaves with its first event. */
  runAndLeave(agentId: string, input: RunAgentInput): Promise<void>;
  /** The thread as messages and state, then its live run. */
  connect(agentId: string, threadId: string): Promise<readonly BaseEvent[]>;
  stop(agentId: string, threadId: string): Promise<boolean>;
  messages(threadId: string): Promise<readonly Pick<Message, "id" | "content">[]>;
  events(threadId: string): Promise<readonly BaseEvent[]>;
  state(threadId: string): Promise<State>;
  /** Ids of the threads. */
  list(): Promise<readonly string[]>;
  clear(): Promise<void>;
}

/** How requests come to a runtime. One more way in is one more of these. */
export interface Way {
  readonly name: string;
  /** @param headers go with each request */
  readonly open: (runtime: AgentRuntime, headers?: Readonly<Record<string, string>>) => Promise<Caller>;
}

export interface RunChange {
  readonly agentId?: string;
  readonly input?: (input: RunAgentInput) => RunAgentInput;
}

type Fetch = (request: Request) => Promise<Response>;

/** The request for a run, for another agent or with another input. */
export async function rewrittenRun(request: Request, { agentId, input }: RunChange): Promise<Request> {
  const url = new URL(request.url);
  if (agentId !== undefined) url.pathname = `/agent/${agentId}/run`;
  const body = (await request.json()) as RunAgentInput;
  const { method, headers, signal } = request;
  return new Request(url, { method, headers, signal, body: JSON.stringify(input === undefined ? body : input(body)) });
}

/** All ways into a runtime. */
export const WAYS: readonly Way[] = [
  {
    name: "a handler with an endpoint for each route",
    open: async (runtime, headers) => httpCaller(createRuntimeHandler({ runtime }), "multi-route", headers),
  },
  {
    name: "a handler with one endpoint",
    open: async (runtime, headers) =>
      httpCaller(createRuntimeHandler({ runtime, mode: "single-route" }), "single-route", headers),
  },
  {
    name: "http, by createNodeHandler",
    open: async (runtime, headers) => httpCaller(await served(runtime), "multi-route", headers),
  },
  {
    name: "a tab",
    open: async (runtime, headers) => tabCaller(connectedTab(runtime, headers)),
  },
];

/** A server of Node's, as a fetch. */
async function served(runtime: AgentRuntime): Promise<Fetch> {
  const server = createServer(createNodeHandler(createRuntimeHandler({ runtime })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (request) => {
    const { pathname, search } = new URL(request.url);
    return fetch(new Request(`http://127.0.0.1:${port}${pathname}${search}`, request));
  };
}

/** A tab in this context, for as long as the test lasts. */
export function connectedTab(runtime: AgentRuntime, headers: Readonly<Record<string, string>> = {}): RuntimeConnection {
  const host = serveRuntime(runtime);
  const connection = connectRuntime({ hosts: { page: async () => host.connect() }, headers });
  onTestFinished(() => connection.close());
  return connection;
}

function httpCaller(fetched: Fetch, mode: HandlerMode, headers: Readonly<Record<string, string>> = {}): Caller {
  const ask = async (request: Asked, signal?: AbortSignal): Promise<Response> => {
    const response = await fetched(
      mode === "multi-route" ? routed(request, headers, signal) : enveloped(request, headers, signal),
    );
    if (!response.ok) throw new Refused(response.status, await response.text());
    return response;
  };
  const read = async <T>(path: string, field: string): Promise<T> => {
    const body = (await (await ask({ method: "GET", path })).json()) as Record<string, T>;
    return body[field]!;
  };
  const input = (threadId: string) => ({ threadId, runId: "connect", messages: [], tools: [], context: [], state: {} });
  return {
    run: async (agentId, body, leaving) =>
      eventsOf(await (await ask({ method: "POST", path: `/agent/${agentId}/run`, body }, leaving)).text()),
    runAndLeave: async (agentId, body) => {
      const response = await ask({ method: "POST", path: `/agent/${agentId}/run`, body });
      const reader = response.body!.getReader();
      await reader.read();
      await reader.cancel();
    },
    connect: async (agentId, threadId) =>
      eventsOf(await (await ask({ method: "POST", path: `/agent/${agentId}/connect`, body: input(threadId) })).text()),
    stop: async (agentId, threadId) => {
      const response = await ask({ method: "POST", path: `/agent/${agentId}/stop/${threadId}`, body: {} });
      return ((await response.json()) as { readonly stopped: boolean }).stopped;
    },
    messages: (threadId) => read(`/threads/${threadId}/messages`, "messages"),
    events: (threadId) => read(`/threads/${threadId}/events`, "events"),
    state: (threadId) => read(`/threads/${threadId}/state`, "state"),
    list: async () => (await read<{ readonly id: string }[]>("/threads", "threads")).map(({ id }) => id),
    clear: async () => void (await ask({ method: "POST", path: "/threads/clear", body: {} })),
  };
}

interface Asked {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
}

const ORIGIN = "http://localhost";

function routed(
  { method, path, body }: Asked,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Request {
  return new Request(`${ORIGIN}${path}`, {
    method,
    headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
}

function enveloped(
  { method, path, body }: Asked,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Request {
  const [room, agentId, verb, threadId] = path.slice(1).split("/");
  const envelope =
    room === "agent"
      ? { method: `agent/${verb}`, params: { agentId, ...(threadId !== undefined && { threadId }) }, body }
      : { method: "resource/request", params: { path, httpMethod: method }, ...(body !== undefined && { body }) };
  return routed({ method: "POST", path: "/", body: envelope }, headers, signal);
}

function eventsOf(text: string): readonly BaseEvent[] {
  return text
    .split("\n")
    .flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as BaseEvent] : []));
}

function tabCaller(tab: RuntimeConnection): Caller {
  const runner = tab.runner();
  const asked = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      throw await refusedOf(error);
    }
  };
  const start = (agentId: string, input: RunAgentInput): Observable<BaseEvent> =>
    runner.run({ threadId: input.threadId, agent: { agentId }, input });
  return {
    run: (agentId, input, leaving) => {
      // A call is not taken back: who leaves is a tab that closes.
      leaving?.addEventListener("abort", () => void tab.close(), { once: true });
      return asked(collect(start(agentId, input)));
    },
    runAndLeave: (agentId, input) =>
      asked(
        new Promise((resolve, reject) => {
          const reading = start(agentId, input).subscribe({
            next: () => {
              reading.unsubscribe();
              resolve();
            },
            error: reject,
          });
        }),
      ),
    connect: (agentId, threadId) => asked(collect(runner.connect({ agentId, threadId, replay: "snapshot" }))),
    stop: (_agentId, threadId) => asked(runner.stop({ threadId })),
    messages: (threadId) => asked(runner.getThreadMessages(threadId)),
    events: (threadId) => asked(runner.getThreadEvents(threadId)),
    state: (threadId) => asked(runner.getThreadState(threadId)),
    list: async () => (await asked(tab.threads.list())).map(({ threadId }) => threadId),
    clear: async () => void (await asked(runner.clearThreads())),
  };
}

/** What HTTP would have said. */
async function refusedOf(error: unknown): Promise<unknown> {
  if (!RunnerError.is(error)) return error;
  if (error.code === "refused") return new Refused(Number(error.details["status"]), String(error.details["body"]));
  const answer = errorResponse(error);
  return new Refused(answer.status, await answer.text());
}
