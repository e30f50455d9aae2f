import { abortWith } from "../platform/abort.js";
import type { Lives } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import type { PlacedEvent } from "../run/pack.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { callRequest, type Call } from "../runtime/call-request.js";
import type { RuntimeCore } from "../runtime/core.js";
import { filterFrames, filterMessages, filterState } from "../runtime/event-filter.js";
import { json } from "../runtime/http/responses.js";
import { isResponse, refusedError } from "../runtime/middleware.js";
import type { Admitted, Answer, RequestEnd, RequestRoute } from "../runtime/request.js";
import {
  checkAttach,
  checkMessagePageQuery,
  checkNamedRun,
  checkRun,
  checkRunQuery,
  checkStop,
  checkThread,
  checkThreadQuery,
} from "../wire/checks.js";
import { reply } from "../wire/errors.js";
import { sendFrames } from "../wire/frames.js";
import type { HostApi } from "../wire/host-api.js";
import type { CallContext } from "../wire/host-calls.js";
import type { RelayHandler } from "../wire/relay.js";
import type { MessagePage, NamedRun, Reply, RunListQuery, StatusFrame, ThreadListQuery } from "../wire/shapes.js";

export interface TabApiParts {
  readonly lives: Lives;
  readonly core: RuntimeCore;
  readonly runner: LocalAgentRunner;
  /** Called with the port of a tab that wants to know of the host. Returns how to end it. */
  readonly watch: (send: (frame: StatusFrame) => void) => () => void;
  /** Something streams to the tab from now on, until what this returns is called. */
  readonly attached: () => () => void;
  /** Aborts when this host lets go of its tabs. */
  readonly hostEnds: AbortSignal;
}

/**
 * What a tab may call in this host. Each call goes through the runtime's core as the request that would ask for the same
 * over HTTP, so no middleware can be walked around.
 *
 * @param signal aborts when the tab is gone
 * @param tabId once the tab has named itself
 */
export function apiOf(parts: TabApiParts, signal: AbortSignal, tabId: () => string | undefined) {
  const { core, runner, watch, attached } = parts;
  const handlerFor =
    (page: string | undefined): RelayHandler =>
    async (request, { basePath }) => {
      const { handleRelayed } = await import("../runtime/http/handler.js");
      return handleRelayed(core, request, basePath, page);
    };

  /** @returns resolves when the tab has all, or left */
  const stream = async (port: MessagePort, open: Parameters<typeof sendFrames>[1]): Promise<void> => {
    const detached = attached();
    await sendFrames(port, open, signal).finally(detached);
  };

  /** Ends what is sent on a port with the tab, or when the tab says so. */
  const untilEnd = (port: MessagePort, end: () => void): void => {
    const over = (): void => {
      end();
      port.close();
      signal.removeEventListener("abort", over);
    };
    port.onmessage = over;
    signal.addEventListener("abort", over, { once: true });
  };

  return ({ headers }: CallContext): HostApi => {
    const through = async <T>(
      call: Omit<Call, "headers" | "signal">,
      answer: (request: Admitted) => Promise<Answer<T>>,
    ): Promise<T> => {
      const calling = abortWith(signal);
      const over = (): void => calling.abort();
      try {
        return await core.serve(callRequest({ ...call, headers, signal: calling.signal }), async (request) => {
          const answered = await answer(request);
          void (answered.ended ?? Promise.resolve()).then(over);
          return answered;
        });
      } catch (error) {
        over();
        throw isResponse(error) ? await refusedError(error) : error;
      }
    };

    /** A call that is answered by plain data. `read` is given the ids of the call as the middleware left them. */
    const data = <T, I extends Ids>(
      { method, route, ids, asked, query, body }: DataCall<I>,
      read: (request: Admitted, ids: I) => Promise<T>,
    ): Promise<Reply<T>> =>
      reply(() => {
        const path = route.map((part) => (part.startsWith(":") ? ids[part.slice(1)]! : part));
        const call = {
          asked,
          method,
          path,
          ...(query !== undefined && { query }),
          ...(body !== undefined && { body }),
        };
        return through(call, async (request) => {
          const named = await rewritten(request, ids, (by) => by.rewrittenIds<I>(request, method, route));
          const value = await read(request, named);
          const { threadId } = named;
          const end: RequestEnd = threadId === undefined ? {} : { threadId };
          return { value, response: () => json(value ?? null), ended: Promise.resolve(end) };
        });
      });

    return {
      run: (request, port) =>
        reply(() => {
          checkRun(request);
          checkPort(port);
          const { agentId, threadId, input, persistedInputMessages } = request;
          // All that the run is made of, and nothing else: a middleware judges by what it sees.
          const body = { ...input, threadId, ...(persistedInputMessages !== undefined && { persistedInputMessages }) };
          const asked = { route: "agent/run", agentId, threadId, runId: input.runId } as const;
          return through({ asked, method: "POST", path: ["agent", agentId, "run"], body }, async (admitted) => {
            const made = await rewritten(admitted, request, (by) => by.rewrittenRun(admitted, request));
            const { run, frames, ended, left } = local(await core.startRun(admitted, made));
            const filter = core.filterFor(admitted, made.threadId);
            void stream(port, (until) => (filter ? filterFrames(frames(until), filter) : frames(until))).then(left);
            return { value: run, response: streamed, ended };
          });
        }).then((answer) => {
          // Nothing comes on the port of a run that was refused.
          if ("error" in answer && port instanceof MessagePort) port.close();
          return answer;
        }),
      attach: (request, port) =>
        reply(() => {
          checkAttach(request);
          checkPort(port);
          const { agentId, after, runId } = request;
          const ids = { threadId: request.threadId, ...(runId !== undefined && { runId }) };
          const call: Pick<Call, "asked" | "method" | "path" | "body"> =
            agentId === undefined
              ? { asked: { route: "threads/events", ...ids }, method: "GET", path: ["threads", ids.threadId, "events"] }
              : {
                  asked: { route: "agent/connect", agentId, ...ids },
                  method: "POST",
                  path: ["agent", agentId, "connect"],
                  body: { threadId: ids.threadId },
                };
          return through(call, async (admitted) => {
            const threadId = await rewritten(admitted, request.threadId, (by) => by.rewrittenThread(admitted));
            const filter = core.filterFor(admitted, threadId);
            const over = stream(port, (until) => {
              const frames =
                runId === undefined
                  ? runner.attach({ ...request, threadId }, until)
                  : runner.attachRun({ threadId, runId, ...(after !== undefined && { after }) }, until);
              return filter ? filterFrames(frames, filter) : frames;
            });
            const messages = () => runner.getThreadMessages(threadId);
            return { value: null, response: streamed, ended: over.then(() => ({ threadId, messages })) };
          });
        }),
      stop: (request) => {
        const { threadId, runId, agentId } = checkStop(request);
        const ids = { threadId, ...(agentId !== undefined && { agentId }) };
        const route = agentId === undefined ? [...THREAD, "stop"] : ["agent", ":agentId", "stop", ":threadId"];
        const body = runId === undefined ? {} : { runId };
        const name = agentId === undefined ? "threads/stop" : "agent/stop";
        const asked = { route: name, ...ids, ...body } as const;
        return data({ asked, method: "POST", route, ids, body }, async (admitted, named) => {
          const run = await rewritten<{ readonly runId?: string }>(admitted, body, (by) => by.rewrittenStop(admitted));
          return core.stop({ threadId: named.threadId, ...run });
        });
      },
      isRunning: (request) => {
        const { threadId } = checkThread(request);
        return data(ofThread("threads/running", "GET", threadId, "running"), (_, ids) => runner.isRunning(ids));
      },
      listThreads: (given) => {
        const query = { ...checkThreadQuery(given) };
        const { agentId } = query;
        const asked = { route: "threads/list", ...(agentId !== undefined && { agentId }) } as const;
        return data({ asked, method: "GET", route: ["threads"], ids: {}, query }, async (admitted) => {
          const made = await rewritten<ThreadListQuery>(admitted, query, (by) =>
            by.rewrittenQuery<ThreadListQuery>(admitted, THREAD_QUERY),
          );
          return runner.listThreads(checkThreadQuery(made));
        });
      },
      messages: (given) => {
        const { threadId, ...query } = checkMessagePageQuery(given);
        const call = { ...ofThread("threads/messages", "GET", threadId, "messages"), query };
        return data(call, async (admitted, ids) => {
          const asked = await rewritten(admitted, query, (by) =>
            by.rewrittenQuery<typeof query>(admitted, MESSAGE_QUERY),
          );
          const { threadId: asShown, ...place } = checkMessagePageQuery({ ...asked, ...ids });
          const page: MessagePage = await runner.getMessagePage(asShown, place);
          const filter = core.filterFor(admitted, ids.threadId);
          return filter ? { ...page, messages: filterMessages(page.messages, filter) } : page;
        });
      },
      listRuns: (given) => {
        const { threadId, ...query } = checkRunQuery(given);
        const call = { ...ofThread("threads/runs", "GET", threadId, "runs"), query };
        return data(call, async (admitted, ids) => {
          const asked = await rewritten<RunListQuery>(admitted, query, (by) =>
            by.rewrittenQuery<RunListQuery>(admitted, RUN_QUERY),
          );
          return runner.listRuns(ids.threadId, asked);
        });
      },
      getRun: (request) =>
        data(namedRun("runs/get", checkNamedRun(request), []), (_, { runId, ...name }) => runner.getRun(runId, name)),
      getRunEvents: (request) => {
        const { runId: _asked, ...query } = checkNamedRun(request);
        return data(namedRun("runs/events", request, ["events"]), async (admitted, { runId, ...name }) => {
          const events = await runner.getRunEvents(runId, { ...query, ...name });
          const threadId = name.threadId ?? (await runner.getRun(runId))?.threadId ?? "";
          const filter = core.filterFor(admitted, threadId);
          if (filter === undefined) return events;
          return events.flatMap((placed): readonly PlacedEvent[] => {
            const event = filter(placed.event);
            return event === undefined ? [] : [{ ...placed, event }];
          });
        });
      },
      getThreadMessages: (request) => {
        const { threadId } = checkThread(request);
        return data(ofThread("threads/messages", "GET", threadId, "messages"), async (admitted, ids) => {
          const messages = await runner.getThreadMessages(ids.threadId);
          const filter = core.filterFor(admitted, ids.threadId);
          return filter ? filterMessages(messages, filter) : messages;
        });
      },
      getThreadEvents: (request) => {
        const { threadId } = checkThread(request);
        return data(ofThread("threads/events", "GET", threadId, "events"), async (admitted, ids) => {
          const events = await runner.getThreadEvents(ids.threadId);
          const filter = core.filterFor(admitted, ids.threadId);
          return filter ? events.flatMap((event) => filter(event) ?? []) : events;
        });
      },
      getThreadState: (request) => {
        const { threadId } = checkThread(request);
        return data(ofThread("threads/state", "GET", threadId, "state"), async (admitted, ids) => {
          const state = await runner.getThreadState(ids.threadId);
          const filter = core.filterFor(admitted, ids.threadId);
          return filter ? filterState(state, filter) : state;
        });
      },
      getThread: (request) => {
        const { threadId } = checkThread(request);
        return data(ofThread("threads/get", "GET", threadId), (_, ids) => runner.getThread(ids.threadId));
      },
      updateThread: (request) => {
        const { threadId } = checkThread(request);
        const { changes } = request;
        const call = { ...ofThread("threads/update", "PATCH", threadId), body: changes };
        return data(call, async (admitted, ids) => {
          const asked = await rewritten(admitted, changes, (by) => by.rewrittenUpdate(admitted));
          return runner.updateThread(ids.threadId, asked);
        });
      },
      deleteThread: (request) => {
        const { threadId } = checkThread(request);
        return data(ofThread("threads/delete", "DELETE", threadId), (_, ids) => runner.deleteThread(ids.threadId));
      },
      clearThreads: () => data(ofAll("threads/clear"), () => runner.clearThreads()),
      // Nothing of a thread is in it.
      watch: (port) =>
        reply(() => {
          checkPort(port);
          untilEnd(
            port,
            watch((frame) => port.postMessage(frame)),
          );
          return null;
        }),
      fetch: (request, port) =>
        reply(async () => {
          checkPort(port);
          // As the handler: most hosts are asked by calls alone.
          const { answerRequest, checkRelayed } = await import("./answer-request.js");
          const relayed = checkRelayed(request);
          const detached = attached();
          const { serviceWorkerId, clientId } = relayed;
          // Any page may hand over what a service worker was asked for by another one.
          const handle = handlerFor(serviceWorkerId === undefined ? tabId() : clientId);
          void answerRequest(relayed, port, { ...parts, handle }, signal).finally(detached);
          return { hostId: runner.hostId, dbName: runner.dbName };
        }).then((answer) => {
          if ("error" in answer && port instanceof MessagePort) port.close();
          return answer;
        }),
      watchThreads: (port) => {
        checkPort(port);
        return data(ofAll("threads/subscribe"), async () => {
          const changes = runner.watchThreads().subscribe((change) => port.postMessage(change));
          untilEnd(port, () => changes.unsubscribe());
          return null;
        });
      },
    };
  };
}

/** What a call asks for as the middleware made it. Few middlewares do that: how is loaded where it is needed. */
async function rewritten<T>(
  request: Admitted,
  asked: T,
  by: (rewriting: typeof import("./rewritten.js")) => T | Promise<T>,
): Promise<T> {
  return request.isReplaced ? by(await import("./rewritten.js")) : asked;
}

/** Ids of a call, by their names in its route. */
type Ids = Readonly<Record<string, string>>;

/** What a stream's answer looks like to the middleware that is told of its end. */
const streamed = (): Response => new Response(null, { headers: { "content-type": "text/event-stream" } });

/** A call that is answered by plain data, as the request that would ask for it. */
interface DataCall<I extends Ids> extends Pick<Call, "asked" | "method" | "query" | "body"> {
  /** Parts of the path; one that begins with ":" stands for an id. */
  readonly route: readonly string[];
  readonly ids: I;
}

type ThreadIds = { readonly threadId: string };

const THREAD = ["threads", ":threadId"];

const THREAD_QUERY = { limit: "number", before: "number", agentId: "text", archived: "boolean" } as const;
const MESSAGE_QUERY = { before: "text", limit: "number" } as const;
const RUN_QUERY = { status: "text", limit: "number", before: "number" } as const;

/** A call that names a thread, and all of its ids so. */
function ofThread(
  route: RequestRoute,
  method: Call["method"],
  threadId: string,
  ...rest: readonly string[]
): DataCall<ThreadIds> {
  return { asked: { route, threadId }, method, route: [...THREAD, ...rest], ids: { threadId } };
}

const ofAll = (route: "threads/clear" | "threads/subscribe"): DataCall<Ids> => ({
  asked: { route },
  method: "POST",
  route: route.split("/"),
  ids: {},
  body: {},
});

type RunIds = { readonly runId: string; readonly threadId?: string };

function namedRun(route: RequestRoute, { threadId, runId }: NamedRun, rest: readonly string[]): DataCall<RunIds & Ids> {
  const ids = { runId, ...(threadId !== undefined && { threadId }) };
  const start = threadId === undefined ? ["runs", ":runId"] : [...THREAD, "runs", ":runId"];
  return { asked: { route, ...ids }, method: "GET", route: [...start, ...rest], ids };
}

function checkPort(port: unknown): asserts port is MessagePort {
  if (!(port instanceof MessagePort)) {
    throw new RunnerError("invalid-input", { field: "port" }, { message: "A MessagePort must be handed over" });
  }
}

function local(run: Awaited<ReturnType<RuntimeCore["startRun"]>>) {
  if (run.is === "local") return run;
  throw new RunnerError("invalid-input", { field: "runner" }, { message: "Tabs need a runner of this library" });
}
