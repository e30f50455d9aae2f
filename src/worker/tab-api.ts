import type { State } from "@ag-ui/client";
import { abortWith } from "../platform/abort.js";
import { Lazy } from "../platform/lazy.js";
import type { Lives } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { callRequest, type Call } from "../runtime/call-request.js";
import type { RuntimeCore } from "../runtime/core.js";
import { filterFrames, filterMessages, filterState, type EventFilter } from "../runtime/event-filter.js";
import { json } from "../runtime/http/responses.js";
import { isResponse, refusedError } from "../runtime/middleware.js";
import type { Admitted, Answer, RequestEnd, RequestRoute } from "../runtime/request.js";
import { runCall, streamed } from "../runtime/run-call.js";
import {
  checkAttach,
  checkMessagePageQuery,
  checkNamedRun,
  checkRun,
  checkRunQuery,
  checkStop,
  checkThreadQuery,
  checkToolCallAnswer,
  checkToolCallClaim,
} from "../wire/checks.js";
import { sendFrames } from "../wire/send-frames.js";
import type { CallContext } from "../wire/host-api.js";
import type { RelayHandler } from "../wire/relay.js";
import type { Frame, MessagePage, NamedRun, StatusFrame } from "../wire/shapes.js";
import type { QueryTypes } from "../runtime/rewritten.js";
import {
  checkPort,
  ofAll,
  ofThread,
  postAll,
  rewritten,
  THREAD,
  type DataCall,
  type Handlers,
  type Ids,
} from "./calls.js";

export interface TabApiParts {
  readonly lives: Lives;
  readonly core: RuntimeCore;
  readonly runner: LocalAgentRunner;
  /** Calls `send` with the host's status, now and at each change. Returns how to end it. */
  readonly watch: (send: (frame: StatusFrame) => void) => () => void;
  /** Counts a stream to the tab until what this returns is called. */
  readonly attached: () => () => void;
  /** Aborts when this host ends its connections. */
  readonly hostEnds: AbortSignal;
}

/** Who a tab is. */
export interface TabName {
  readonly id: () => string | undefined;
  readonly named: Promise<string>;
}

/**
 * The handlers of a tab's calls. Each but `watch` and `fetch` goes through the runtime's core as the request that would
 * ask for the same over HTTP, so no middleware can be walked around; `fetch` brings a request of its own.
 *
 * @param signal aborts when the tab is gone
 * @param tab its id, once it has named itself
 */
export function handlersOf(parts: TabApiParts, signal: AbortSignal, tab: TabName): Handlers {
  const { core, runner, watch, attached, lives } = parts;

  /** Streams a thread's frames, filtered for the request. @returns resolves when the tab has everything, or has left */
  const stream = async (
    port: MessagePort,
    request: Admitted,
    threadId: string,
    open: (until: AbortSignal) => AsyncGenerator<Frame, void>,
  ): Promise<void> => {
    const detached = attached();
    const filter = core.filterFor(request, threadId);
    const filtered: typeof open = (until) => (filter ? filterFrames(open(until), filter) : open(until));
    await sendFrames(port, filtered, signal).finally(detached);
  };

  /** Calls `end` when the tab is gone, or posts anything. */
  const untilEnd = (port: MessagePort, end: () => void): void => {
    const over = (): void => {
      end();
      port.close();
      signal.removeEventListener("abort", over);
    };
    port.onmessage = over;
    signal.addEventListener("abort", over, { once: true });
  };

  const through = async <T>(
    { headers }: CallContext,
    call: Omit<Call, "headers" | "signal">,
    answer: (request: Admitted) => Promise<Answer<T>>,
  ): Promise<T> => {
    core.callers.note(signal, headers);
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
    context: CallContext,
    { route, ids, ...call }: DataCall<I>,
    read: (ids: I, request: Admitted) => Promise<T>,
  ): Promise<T> => {
    const path = route.map((part) => (part.startsWith(":") ? ids[part.slice(1)]! : part));
    return through(context, { ...call, path }, async (request) => {
      const named = await rewritten(request, ids, (by) => by.rewrittenIds<I>(request, call.method, route));
      const value = await read(named, request);
      const { threadId } = named;
      const end: RequestEnd = threadId === undefined ? {} : { threadId };
      return { value, response: () => json(value ?? null), ended: Promise.resolve(end) };
    });
  };

  /** A value of a thread, as the reader who sent the request may see it. */
  const shown = <T>(
    value: T,
    request: Admitted,
    threadId: string,
    filtered: (value: T, filter: EventFilter) => T,
  ): T => {
    const filter = core.filterFor(request, threadId);
    return filter ? filtered(value, filter) : value;
  };

  const waiting = new Lazy(async () => {
    const { waitingHandlers } = await loaded(import("./waiting-api.js"));
    return waitingHandlers({ core, runner, signal, data, shown, untilEnd });
  });

  return {
    run(context, request, port) {
      checkRun(request);
      checkPort(port);
      return through(context, runCall(request), async (admitted) => {
        const made = await rewritten(admitted, request, (by) => by.rewrittenRun(admitted, request));
        const { run, frames, ended, left } = local(await core.startRun(admitted, made));
        void stream(port, admitted, made.threadId, frames).then(left);
        return { value: run, response: streamed, ended };
      });
    },
    attach(context, request, port) {
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
      return through(context, call, async (admitted) => {
        const threadId = await rewritten(admitted, request.threadId, (by) => by.rewrittenThread(admitted));
        const over = stream(port, admitted, threadId, (until) =>
          runId === undefined
            ? runner.attach({ ...request, threadId, caughtUp: () => core.preload() }, until)
            : runner.attachRun({ threadId, runId, ...(after !== undefined && { after }) }, until),
        );
        const messages = () => runner.getThreadMessages(threadId);
        return { value: null, response: streamed, ended: over.then(() => ({ threadId, messages })) };
      });
    },
    stop(context, request) {
      const { threadId, runId, agentId } = checkStop(request);
      const body = runId === undefined ? {} : { runId };
      const ofAgent = agentId !== undefined && {
        asked: { route: "agent/stop" as const, agentId, threadId, ...body },
        route: ["agent", ":agentId", "stop", ":threadId"],
        ids: { threadId, agentId },
      };
      const call = { ...ofThread("threads/stop", "POST", request, "stop"), body };
      return data(context, { ...call, asked: { ...call.asked, ...body }, ...ofAgent }, async (ids, admitted) => {
        const run = await rewritten<{ readonly runId?: string }>(admitted, body, (by) => by.rewrittenStop(admitted));
        return core.stop({ threadId: ids.threadId, ...run });
      });
    },
    isRunning: (context, request) =>
      data(context, ofThread("threads/running", "GET", request, "running"), (ids) => runner.isRunning(ids)),
    listThreads(context, given) {
      const query = { ...checkThreadQuery(given) };
      const { agentId } = query;
      const asked = { route: "threads/list", ...(agentId !== undefined && { agentId }) } as const;
      return data(context, { asked, method: "GET", route: ["threads"], ids: {}, query }, async (_, admitted) =>
        runner.listThreads(checkThreadQuery(await rewrittenQuery(admitted, query, THREAD_QUERY))),
      );
    },
    messages(context, given) {
      const { threadId: _asked, ...query } = checkMessagePageQuery(given);
      const call = { ...ofThread("threads/messages", "GET", given, "messages"), query };
      return data(context, call, async (ids, admitted) => {
        const made = await rewrittenQuery(admitted, query, MESSAGE_QUERY);
        const { threadId, ...place } = checkMessagePageQuery({ ...made, ...ids });
        const page: MessagePage = await runner.getMessagePage(threadId, place);
        return shown(page, admitted, threadId, (whole, filter) => ({
          ...whole,
          messages: filterMessages(whole.messages, filter),
        }));
      });
    },
    listRuns(context, given) {
      const { threadId: _asked, ...query } = checkRunQuery(given);
      const call = { ...ofThread("threads/runs", "GET", given, "runs"), query };
      return data(context, call, async ({ threadId }, admitted) =>
        runner.listRuns(threadId, await rewrittenQuery(admitted, query, RUN_QUERY)),
      );
    },
    getRun: (context, request) =>
      data(context, ofRun("runs/get", request), ({ runId, ...name }) => runner.getRun(runId, name)),
    getRunEvents: (context, request) =>
      data(context, ofRun("runs/events", request, "events"), async ({ runId, ...name }, admitted) => {
        const { runId: _asked, ...query } = request;
        const events = await runner.getRunEvents(runId, { ...query, ...name });
        const threadId = name.threadId ?? (await runner.getRun(runId))?.threadId ?? "";
        return shown(events, admitted, threadId, (placed, filter) =>
          placed.flatMap((one) => {
            const event = filter(one.event);
            return event === undefined ? [] : [{ ...one, event }];
          }),
        );
      }),
    getThreadMessages: (context, request) =>
      data(context, ofThread("threads/messages", "GET", request, "messages"), async ({ threadId }, admitted) =>
        shown(await runner.getThreadMessages(threadId), admitted, threadId, filterMessages),
      ),
    getThreadEvents: (context, request) =>
      data(context, ofThread("threads/events", "GET", request, "events"), async ({ threadId }, admitted) =>
        shown(await runner.getThreadEvents(threadId), admitted, threadId, (events, filter) =>
          events.flatMap((event) => filter(event) ?? []),
        ),
      ),
    getThreadState: (context, request) =>
      data(context, ofThread("threads/state", "GET", request, "state"), async ({ threadId }, admitted) =>
        shown<State | undefined>(await runner.getThreadState(threadId), admitted, threadId, filterState),
      ),
    getThread: (context, request) =>
      data(context, ofThread("threads/get", "GET", request), ({ threadId }) => runner.getThread(threadId)),
    updateThread(context, request) {
      const call = ofThread("threads/update", "PATCH", request);
      const { changes } = request;
      return data(context, { ...call, body: changes }, async ({ threadId }, admitted) =>
        runner.updateThread(threadId, await rewritten(admitted, changes, (by) => by.rewrittenUpdate(admitted))),
      );
    },
    deleteThread: (context, request) =>
      data(context, ofThread("threads/delete", "DELETE", request), ({ threadId }) => runner.deleteThread(threadId)),
    clearThreads: (context) => data(context, ofAll("threads/clear"), () => runner.clearThreads()),
    // Not through the core: the status has nothing of a thread.
    watch(_context, port) {
      checkPort(port);
      untilEnd(
        port,
        watch((frame) => port.postMessage(frame)),
      );
      return null;
    },
    watchThreads(context, port) {
      checkPort(port);
      return data(context, ofAll("threads/subscribe"), async () => {
        const changes = runner.watchThreads().subscribe((change) => port.postMessage(change));
        untilEnd(port, () => changes.unsubscribe());
        return null;
      });
    },
    watchToolCalls(context, request, port) {
      checkPort(port);
      return data(context, ofThread("threads/tool-calls", "GET", request, "tool-calls"), async ({ threadId }) => {
        const watching = abortWith(signal);
        untilEnd(port, () => watching.abort());
        void postAll(port, runner.watchToolCalls(threadId, lives, watching.signal));
        return null;
      });
    },
    claimToolCall(context, request) {
      const { threadId: _asked, ...body } = checkToolCallClaim(request);
      const call = ofThread("threads/tool-calls/claim", "POST", request, "tool-calls", "claim");
      return data(context, { ...call, body }, async (ids, admitted) => {
        const asked = await rewritten<object>(admitted, body, (by) => by.rewrittenBody(admitted));
        return runner.claimToolCall(checkToolCallClaim({ ...body, ...asked, ...ids }), await tab.named);
      });
    },
    answerToolCall(context, request) {
      const { threadId: _asked, ...body } = checkToolCallAnswer(request);
      const call = ofThread("threads/tool-calls/answer", "POST", request, "tool-calls", "answer");
      return data(context, { ...call, body }, async (ids, admitted) => {
        const asked = await rewritten<object>(admitted, body, (by) => by.rewrittenBody(admitted));
        await runner.answerToolCall(checkToolCallAnswer({ ...body, ...asked, ...ids }));
        return null;
      });
    },
    async offerModel(context, request, port) {
      checkPort(port);
      // Loaded when needed: few tabs have a model.
      const [{ checkModelOffer }, { tabModels }] = await loaded(
        Promise.all([import("../wire/model-frames.js"), import("../runtime/models/tab-models.js")]),
      );
      const { model, ...body } = checkModelOffer(request);
      // It is given the prompts of other tabs' runs: a middleware decides.
      const route = ["models", ":model", "offer"];
      const call = { asked: { route: "models/offer" }, method: "POST", route, ids: { model }, body } as const;
      return data(context, call, async (ids) => {
        tabModels().offer({ ...body, ...ids }, port, signal);
        return null;
      });
    },
    enqueue: async (...call) => (await waiting.get()).enqueue(...call),
    watchWaiting: async (...call) => (await waiting.get()).watchWaiting(...call),
    moveWaiting: async (...call) => (await waiting.get()).moveWaiting(...call),
    cancelWaiting: async (...call) => (await waiting.get()).cancelWaiting(...call),
    retryWaiting: async (...call) => (await waiting.get()).retryWaiting(...call),
    async fetch(_context, request, port) {
      checkPort(port);
      // Loaded when needed, as is the handler: most hosts get calls only.
      const { answerRequest, checkRelayed } = await loaded(import("./answer-request.js"));
      const relayed = checkRelayed(request);
      const detached = attached();
      const { serviceWorkerId, clientId } = relayed;
      // Any page may hand over a service worker's request of another page.
      const page = serviceWorkerId === undefined ? tab.id() : clientId;
      const handle: RelayHandler = async (asked, { basePath }) => {
        const { handleRelayed } = await loaded(import("../runtime/http/handler.js"));
        return handleRelayed(core, asked, basePath, page);
      };
      void answerRequest(relayed, port, { ...parts, handle }, signal).finally(detached);
      return { hostId: runner.hostId, dbName: runner.dbName };
    },
  };
}

const rewrittenQuery = <Q extends object>(request: Admitted, query: Q, types: QueryTypes<Q>): Promise<Q> =>
  rewritten(request, query, (by) => by.rewrittenQuery(request, types));

const THREAD_QUERY = { limit: "number", before: "number", agentId: "text", archived: "boolean" } as const;
const MESSAGE_QUERY = { before: "text", limit: "number" } as const;
const RUN_QUERY = { status: "text", limit: "number", before: "number" } as const;

type RunIds = { readonly runId: string; readonly threadId?: string };

/** @throws RunnerError `invalid-input` */
function ofRun(route: RequestRoute, given: NamedRun, ...rest: readonly string[]): DataCall<RunIds & Ids> {
  const { threadId, runId } = checkNamedRun(given);
  const ids = { runId, ...(threadId !== undefined && { threadId }) };
  const start = threadId === undefined ? ["runs", ":runId"] : [...THREAD, "runs", ":runId"];
  return { asked: { route, ...ids }, method: "GET", route: [...start, ...rest], ids };
}

function local(run: Awaited<ReturnType<RuntimeCore["startRun"]>>) {
  if (run.is === "local") return run;
  throw new RunnerError("invalid-input", { field: "runner" }, { message: "Tabs need a runner of this library" });
}
