import { onAbort } from "../platform/abort.js";
import type { Lives } from "../platform/locks.js";
import { invalidInput } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { asCall, namesOf, runCall, streamed, type Call } from "../runtime/call-request.js";
import type { RuntimeCore } from "../runtime/core.js";
import { filterFrames } from "../runtime/event-filter.js";
import type { CallContext, Handlers } from "../runtime/host-api.js";
import { json } from "../runtime/http/responses.js";
import type { Admitted, Answer } from "../runtime/request.js";
import { serveCall } from "../runtime/serve-call.js";
import { CALLS, type Caller, type Row } from "../runtime/tab-calls.js";
import { checkAttach, checkRun } from "../wire/checks.js";
import type { RelayHandler } from "../wire/relay.js";
import { sendFrames } from "../wire/send-frames.js";
import type { Frame, StatusFrame } from "../wire/shapes.js";
import { checkPort, untilEnd } from "../wire/watched-port.js";

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

/** What the table's rows have in common. */
type AnyRow = Row<unknown, unknown, boolean>;

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

  const through = <T>(
    { headers }: CallContext,
    call: Omit<Call, "headers" | "signal">,
    answer: (request: Admitted) => Promise<Answer<T>>,
  ): Promise<T> => {
    core.callers.note(signal, headers);
    return serveCall(core, { ...call, headers }, answer, signal);
  };

  /** Answers a call by its row of the table. */
  const answered = async (row: AnyRow, context: CallContext, given: readonly unknown[]): Promise<unknown> => {
    const port = row.watches ? checkPort(given.at(-1)) : undefined;
    const asked = await row.check(given[0]);
    const { call, path } = asCall(row, asked);
    return through(context, call, async (admitted) => {
      const made = admitted.isReplaced
        ? await row.check(await (await rewriting()).rewrittenCall(admitted, row, { ...call, path }, asked))
        : asked;
      const by: Caller = { core, runner, lives, gone: signal, tabId: tab.named, headers: context.headers, admitted };
      // A `Caller`, as the row says; the port is there where the row takes one.
      const value = await row.answer(made, by as never, port as MessagePort);
      const { threadId } = namesOf(row, made);
      return {
        value,
        response: () => json(value ?? null),
        ended: Promise.resolve(threadId === undefined ? {} : { threadId }),
      };
    });
  };
  const calls = Object.entries(CALLS as unknown as Record<string, AnyRow>).map(([name, row]) => [
    name,
    (context: CallContext, ...given: unknown[]) => answered(row, context, given),
  ]);

  return {
    ...(Object.fromEntries(calls) as Omit<Handlers, "run" | "attach" | "watch" | "fetch">), // one for each row
    run(context, request, given) {
      checkRun(request);
      const port = checkPort(given);
      return through(context, runCall(request), async (admitted) => {
        const made = admitted.isReplaced ? await (await rewriting()).rewrittenRun(admitted, request) : request;
        const { run, frames, ended, left } = local(await core.startRun(admitted, made));
        void stream(port, admitted, made.threadId, frames).then(left);
        return { value: run, response: streamed, ended };
      });
    },
    attach(context, request, given) {
      checkAttach(request);
      const port = checkPort(given);
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
        const threadId = admitted.isReplaced ? await (await rewriting()).rewrittenThread(admitted) : request.threadId;
        const over = stream(port, admitted, threadId, (until) =>
          runId === undefined
            ? runner.attach({ ...request, threadId, caughtUp: () => core.preload() }, until)
            : runner.attachRun({ threadId, runId, ...(after !== undefined && { after }) }, until),
        );
        const messages = () => runner.getThreadMessages(threadId);
        return { value: null, response: streamed, ended: over.then(() => ({ threadId, messages })) };
      });
    },
    // Not through the core: the status has nothing of a thread.
    watch(_context, given) {
      const port = checkPort(given);
      const ended = watch((frame) => port.postMessage(frame));
      onAbort(untilEnd(port, signal), ended);
      return null;
    },
    async fetch(_context, request, given) {
      const port = checkPort(given);
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

/** Few middlewares rewrite calls: the code is loaded when needed. */
const rewriting = () => loaded(import("../runtime/rewritten.js"));

function local(run: Awaited<ReturnType<RuntimeCore["startRun"]>>) {
  if (run.is === "local") return run;
  throw invalidInput("runner", "Tabs need a runner of this library");
}
