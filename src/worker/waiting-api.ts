import { abortWith } from "../platform/abort.js";
import { RunnerError } from "../run/errors.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import type { RuntimeCore } from "../runtime/core.js";
import { filterMessages, type EventFilter } from "../runtime/event-filter.js";
import type { Admitted } from "../runtime/request.js";
import { runCall } from "../runtime/run-call.js";
import type { WaitingRuns } from "../runtime/waiting/waiting-runs.js";
import type { CallContext } from "../wire/host-api.js";
import type { WaitingRun } from "../wire/shapes.js";
import { checkEnqueue, checkNamedWaiting, checkWaitingMove, checkWaitingQuery } from "../wire/waiting-checks.js";
import {
  checkPort,
  ofAll,
  ofThread,
  postAll,
  rewritten,
  type DataCall,
  type Handlers,
  type Ids,
  type ThreadIds,
} from "./calls.js";

export interface WaitingApiParts {
  readonly core: RuntimeCore;
  readonly runner: LocalAgentRunner;
  /** Aborts when the tab is gone. */
  readonly signal: AbortSignal;
  /** A call that is answered by plain data, through the middleware. */
  readonly data: <T, I extends Ids>(
    context: CallContext,
    call: DataCall<I>,
    read: (ids: I, request: Admitted) => Promise<T>,
  ) => Promise<T>;
  /** A value of a thread, as the reader who sent the request may see it. */
  readonly shown: <T>(
    value: T,
    request: Admitted,
    threadId: string,
    filtered: (value: T, filter: EventFilter) => T,
  ) => T;
  /** Calls `end` when the tab is gone, or posts anything. */
  readonly untilEnd: (port: MessagePort, end: () => void) => void;
}

type WaitingHandlers = Pick<Handlers, "enqueue" | "watchWaiting" | "moveWaiting" | "cancelWaiting" | "retryWaiting">;

/** How a host answers a tab's calls about runs that wait. Loaded at the first of them. */
export function waitingHandlers(parts: WaitingApiParts): WaitingHandlers {
  const { core, runner, signal, data, shown, untilEnd } = parts;

  /** A call that changes a waiting run, as the middleware left it. */
  const ofWaiting = <T>(
    context: CallContext,
    call: DataCall<ThreadIds>,
    change: (waiting: WaitingRuns, asked: ThreadIds) => Promise<T>,
  ): Promise<T> =>
    data(context, call, async (ids, admitted) => {
      const asked = await rewritten<object>(admitted, {}, (by) => by.rewrittenBody(admitted));
      return change(await core.waitingOf(runner).get(), { ...asked, ...ids });
    });

  /** Lists of waiting runs, as the reader who sent the request may see their messages. */
  async function* shownWaiting(lists: AsyncIterable<readonly WaitingRun[]>, admitted: Admitted) {
    for await (const list of lists) {
      yield list.map((run): WaitingRun => {
        const messages = shown(run.messages, admitted, run.threadId, (all, filter) => filterMessages([...all], filter));
        return { ...run, messages };
      });
    }
  }

  return {
    enqueue(context, request) {
      const { run, onBusy, whenOffline } = checkEnqueue(request);
      const { threadId, agentId, input } = run;
      const call = ofThread("threads/waiting/add", "POST", run, "waiting");
      const asked = { ...call.asked, agentId, runId: input.runId };
      return data(context, { ...call, asked, body: { ...runCall(run).body, agentId } }, async (ids, admitted) => {
        await core.agents.require(agentId, admitted.request);
        // It begins as a run does, through the middleware again: what that makes of it counts then.
        if (ids.threadId !== threadId) throw otherThread();
        return (await core.waitingOf(runner).get()).enqueue({ run, onBusy, whenOffline }, context.headers);
      });
    },
    watchWaiting(context, request, port) {
      checkPort(port);
      const { threadId } = checkWaitingQuery(request);
      const watch = async (ofThreadId: string | undefined, admitted: Admitted): Promise<null> => {
        const waiting = await core.waitingOf(runner).get();
        const watching = abortWith(signal);
        untilEnd(port, () => watching.abort());
        void postAll(port, shownWaiting(waiting.watch(ofThreadId, watching.signal), admitted));
        return null;
      };
      if (threadId === undefined)
        return data(context, ofAll("threads/waiting", "GET"), (_, by) => watch(undefined, by));
      return data(context, ofThread("threads/waiting", "GET", { threadId }, "waiting"), (ids, by) =>
        watch(ids.threadId, by),
      );
    },
    moveWaiting(context, request) {
      const { threadId: _asked, ...body } = checkWaitingMove(request);
      const call = ofThread("threads/waiting/move", "POST", request, "waiting", "move");
      return ofWaiting(context, { ...call, body }, (waiting, asked) => {
        const { threadId, runId, before } = checkWaitingMove({ ...body, ...asked });
        return waiting.move(threadId, runId, before);
      });
    },
    cancelWaiting(context, request) {
      const { threadId: _asked, ...body } = checkNamedWaiting(request);
      const call = ofThread("threads/waiting/cancel", "POST", request, "waiting", "cancel");
      return ofWaiting(context, { ...call, body }, (waiting, asked) => {
        const { threadId, runId } = checkNamedWaiting({ ...body, ...asked });
        return waiting.cancel(threadId, runId);
      });
    },
    retryWaiting(context, request) {
      const { threadId: _asked, ...body } = checkNamedWaiting(request);
      const call = ofThread("threads/waiting/retry", "POST", request, "waiting", "retry");
      return ofWaiting(context, { ...call, body }, (waiting, asked) => {
        const { threadId, runId } = checkNamedWaiting({ ...body, ...asked });
        return waiting.retry(threadId, runId);
      });
    },
  };
}

const otherThread = (): RunnerError =>
  new RunnerError("invalid-input", { field: "threadId" }, { message: "A middleware cannot move a run that waits" });
