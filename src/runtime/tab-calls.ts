import type { BaseEvent, Message } from "@ag-ui/client";
import type { Lives } from "../platform/locks.js";
import { onAbort } from "../platform/abort.js";
import { invalidInput } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import {
  checkActivation,
  checkMessagePageQuery,
  checkNamedRun,
  checkRunQuery,
  checkStop,
  checkThread,
  checkThreadQuery,
  checkThreadUpdate,
  checkToolCallAnswer,
  checkToolCallClaim,
} from "../wire/checks.js";
import type { ModelOffer } from "../wire/model-frames.js";
import type { WaitingRun } from "../wire/waiting-shapes.js";
import { checkEnqueue, checkNamedWaiting, checkWaitingMove, checkWaitingQuery } from "../wire/waiting-checks.js";
import { postAll, untilEnd } from "../wire/watched-port.js";
import { runCall, type CallShape, type Seen } from "./call-request.js";
import type { RuntimeCore } from "./core.js";
import { filterEvents, filterMessages, filterState, type EventFilter } from "./event-filter.js";
import type { ChangedKey, KeptKey, LockCall } from "./locking.js";
import type { Admitted } from "./request.js";
import type { WaitingRuns } from "./waiting/waiting-runs.js";

/** The tab that makes a call, and the host that answers it. */
export interface Caller {
  readonly core: RuntimeCore;
  readonly runner: LocalAgentRunner;
  readonly lives: Lives;
  /** Aborts when the tab is gone. */
  readonly gone: AbortSignal;
  /** The tab's id, once it has named itself. */
  readonly tabId: Promise<string>;
  readonly headers: Readonly<Record<string, string>>;
  readonly admitted: Admitted;
}

/**
 * A call of a tab that is answered by plain data (and what comes on the port that it hands over). `G`: what it asks for;
 * undefined: nothing but the call itself.
 */
export interface Row<G, R, P extends boolean> extends CallShape<G> {
  /** Errors: RunnerError `invalid-input`. */
  readonly check: (given: G) => G | Promise<G>;
  /** Whether a port is handed over. */
  readonly watches: P;
  /** `by` is a {@link Caller}: not said here, because the client's declarations have this type, and nothing of a host. */
  readonly answer: (asked: G, by: never, port: MessagePort) => R | Promise<R>;
}

const call = <G, R>(
  seen: Seen | readonly Seen[],
  check: (given: G) => G | Promise<G>,
  answer: (asked: G, by: Caller) => R | Promise<R>,
  shape: Omit<CallShape<G>, "seen"> = {},
): Row<G, R, false> => ({ seen: [seen].flat() as readonly Seen[], check, answer, watches: false, ...shape });

/** @param shown what a caller sees of the value where events are filtered; absent: it has nothing of events */
const ofThread = <R>(
  seen: Seen,
  answer: (threadId: string, by: Caller) => R | Promise<R>,
  shown?: (value: R, filter: EventFilter) => R,
) =>
  call(seen, checkThread, async ({ threadId }, by) => {
    const value = await answer(threadId, by);
    return shown === undefined ? value : by.core.shown(by.admitted, threadId, value, shown);
  });

const watch = <G>(
  seen: Seen | readonly Seen[],
  check: (given: G) => G | Promise<G>,
  begin: (asked: G, by: Caller, port: MessagePort) => unknown,
): Row<G, null, true> => ({
  seen: [seen].flat() as readonly Seen[],
  check,
  answer: async (...asked) => (await begin(...asked), null),
  watches: true,
});

const nothing = (): undefined => undefined;

const waitingOf = ({ core, runner }: Caller): Promise<WaitingRuns> => core.waitingOf(runner).get();

/** Loaded when needed: most hosts encrypt nothing. */
const locking = () => loaded(import("./locking.js"));

/** A key is no plain data: a middleware can refuse the call, not change it. */
const WITHOUT_KEYS = { body: () => ({}), made: <G>(_: unknown, __: unknown, given: G): G => given };

/** Lists of waiting runs, as the caller may see their messages. */
async function* shownWaiting(lists: AsyncIterable<readonly WaitingRun[]>, { core, admitted }: Caller) {
  for await (const list of lists) {
    yield list.map((run) => ({ ...run, messages: core.shown(admitted, run.threadId, run.messages, filterMessages) }));
  }
}

/**
 * The calls of tabs that are answered by plain data, one row each: how a middleware sees it, its check, its answer. What
 * tabs may call (host-api.ts) and how a host answers follow from it.
 */
export const CALLS = {
  stop: call(
    ["agent/stop: POST agent/:agentId/stop/:threadId", "threads/stop: POST threads/:threadId/stop"],
    checkStop,
    ({ threadId, runId }, { core }) => core.stop({ threadId, ...(runId !== undefined && { runId }) }),
  ),
  isRunning: ofThread("threads/running: GET threads/:threadId/running", (threadId, { runner }) =>
    runner.isRunning({ threadId }),
  ),
  listThreads: call("threads/list: GET threads", checkThreadQuery, (query, { runner }) => runner.listThreads(query), {
    query: { limit: "number", before: "place", agentId: "text", archived: "boolean" },
  }),
  messages: call(
    "threads/messages: GET threads/:threadId/messages",
    checkMessagePageQuery,
    async ({ threadId, ...place }, { core, runner, admitted }) => {
      const page = await runner.getMessagePage(threadId, place);
      return { ...page, messages: core.shown(admitted, threadId, page.messages, filterMessages) };
    },
    { query: { before: "text", limit: "number" } },
  ),
  listRuns: call(
    "threads/runs: GET threads/:threadId/runs",
    checkRunQuery,
    ({ threadId, ...query }, { runner }) => runner.listRuns(threadId, query),
    { query: { status: "text", limit: "number", before: "number" } },
  ),
  /** Undefined for an unknown run. */
  getRun: call(
    ["runs/get: GET threads/:threadId/runs/:runId", "runs/get: GET runs/:runId"],
    checkNamedRun,
    ({ runId, threadId }, { runner }) => runner.getRun(runId, threadId === undefined ? {} : { threadId }),
  ),
  /** Takes up the branch that a run ends. */
  activateRun: call(
    "runs/activate: POST threads/:threadId/runs/:runId/activate",
    checkActivation,
    async ({ threadId, runId, runIndex }, { runner }) => {
      await runner.activateRun(threadId, runId, runIndex);
      return null;
    },
  ),
  getRunEvents: call(
    ["runs/events: GET threads/:threadId/runs/:runId/events", "runs/events: GET runs/:runId/events"],
    checkNamedRun,
    async ({ runId, ...query }, { core, runner, admitted }) => {
      const events = await runner.getRunEvents(runId, query);
      const threadId = query.threadId ?? (await runner.getRun(runId))?.threadId ?? "";
      return core.shown(admitted, threadId, events, (placed, filter) =>
        placed.flatMap((one) => filterEvents([one.event], filter).map((event) => ({ ...one, event }))),
      );
    },
  ),
  getThreadMessages: ofThread<readonly Message[]>(
    "threads/messages: GET threads/:threadId/messages",
    (threadId, { runner }) => runner.getThreadMessages(threadId),
    filterMessages,
  ),
  getThreadEvents: ofThread<readonly BaseEvent[]>(
    "threads/events: GET threads/:threadId/events",
    (threadId, { runner }) => runner.getThreadEvents(threadId),
    filterEvents,
  ),
  getThreadState: ofThread(
    "threads/state: GET threads/:threadId/state",
    (threadId, { runner }) => runner.getThreadState(threadId),
    filterState,
  ),
  getThread: ofThread("threads/get: GET threads/:threadId", (threadId, { runner }) => runner.getThread(threadId)),
  updateThread: call(
    "threads/update: PATCH threads/:threadId",
    checkThreadUpdate,
    ({ threadId, changes }, { runner }) => runner.updateThread(threadId, changes),
    { body: ({ changes }) => changes, made: async (ids, body) => ({ ...ids, changes: await body() }) },
  ),
  deleteThread: ofThread("threads/delete: DELETE threads/:threadId", (threadId, { runner }) =>
    runner.deleteThread(threadId),
  ),
  /** Deletes every thread; returns how many. */
  clearThreads: call("threads/clear: POST threads/clear", nothing, (_, { runner }) => runner.clearThreads()),
  /** `ThreadChange`s of the list of threads, as the streams below until the tab posts anything to the port. */
  watchThreads: watch("threads/subscribe: POST threads/subscribe", nothing, (_, { runner, gone }, port) => {
    const changes = runner.watchThreads().subscribe((change) => port.postMessage(change));
    onAbort(untilEnd(port, gone), () => changes.unsubscribe());
  }),
  /** A thread's pending tool calls, each time the whole list. */
  watchToolCalls: watch(
    "threads/tool-calls: GET threads/:threadId/tool-calls",
    checkThread,
    ({ threadId }, { runner, lives, gone }, port) => {
      void postAll(port, runner.watchToolCalls(threadId, lives, untilEnd(port, gone)));
    },
  ),
  /** Claims a tool call for the tab. Returns whether the tab may run it now. */
  claimToolCall: call(
    "threads/tool-calls/claim: POST threads/:threadId/tool-calls/claim",
    checkToolCallClaim,
    async (claim, { runner, tabId }) => runner.claimToolCall(claim, await tabId),
  ),
  answerToolCall: call(
    "threads/tool-calls/answer: POST threads/:threadId/tool-calls/answer",
    checkToolCallAnswer,
    async (answer, { runner }) => {
      await runner.answerToolCall(answer);
      return null;
    },
  ),
  /** Unlocks an encrypted database; a middleware sees nothing of the key. Returns how often it had been locked. */
  unlock: call(
    "encryption/unlock: POST encryption/unlock",
    async (given: KeptKey) => (await locking()).checkKeptKey(given),
    async (kept, { core }) => (await core.locking()).unlock(kept),
    WITHOUT_KEYS,
  ),
  /** Locks it in all hosts. */
  lock: call(
    "encryption/lock: POST encryption/lock",
    async (given: LockCall) => (await locking()).checkLock(given),
    async (asked, { core }) => {
      await (await core.locking()).lock(asked);
      return null;
    },
    WITHOUT_KEYS,
  ),
  /** Returns the same as `unlock`. */
  changeKey: call(
    "encryption/change-key: POST encryption/change-key",
    async (given: ChangedKey) => (await locking()).checkChangedKey(given),
    async (changed, { core }) => (await core.locking()).changeKey(changed),
    WITHOUT_KEYS,
  ),
  /**
   * Offers a language model that the tab runs: requests arrive on the port, see model-frames.ts. It is given the prompts of
   * other tabs' runs: a middleware decides.
   */
  offerModel: watch(
    "models/offer: POST models/:model/offer",
    // Loaded when needed: few tabs have a model.
    async (offer: ModelOffer) => (await loaded(import("../wire/model-frames.js"))).checkModelOffer(offer),
    async (offer, { gone }, port) =>
      (await loaded(import("./models/tab-models.js"))).tabModels().offer(offer, port, gone),
  ),
  /** Has a run wait that cannot begin at once. A repeated request adds one. */
  enqueue: call(
    "threads/waiting/add: POST threads/:threadId/waiting",
    checkEnqueue,
    async (asked, by) => {
      await by.core.agents.require(asked.run.agentId, by.admitted.request);
      return (await waitingOf(by)).enqueue(asked, by.headers);
    },
    {
      names: ({ run: { agentId, threadId, input } }) => ({ agentId, threadId, runId: input.runId }),
      body: ({ run }) => ({ ...runCall(run).body, agentId: run.agentId }),
      made: ({ threadId }, _, given) => {
        // It begins as a run does, through the middleware again: what that makes of it counts then.
        if (threadId === given.run.threadId) return given;
        const message = "A middleware cannot move a run that waits";
        throw invalidInput("threadId", message);
      },
    },
  ),
  /** The waiting runs of a thread, or of all: each time all of them, in order within their thread. */
  watchWaiting: watch(
    ["threads/waiting: GET threads/:threadId/waiting", "threads/waiting: GET threads/waiting"],
    checkWaitingQuery,
    async ({ threadId }, by, port) => {
      const waiting = await waitingOf(by);
      void postAll(port, shownWaiting(waiting.watch(threadId, untilEnd(port, by.gone)), by));
    },
  ),
  /** Whether both wait. */
  moveWaiting: call(
    "threads/waiting/move: POST threads/:threadId/waiting/move",
    checkWaitingMove,
    async ({ threadId, runId, before }, by) => (await waitingOf(by)).move(threadId, runId, before),
  ),
  /** Whether it waited. */
  cancelWaiting: call(
    "threads/waiting/cancel: POST threads/:threadId/waiting/cancel",
    checkNamedWaiting,
    async ({ threadId, runId }, by) => (await waitingOf(by)).cancel(threadId, runId),
  ),
  /** Tries one again that could not start, or that waits for a time. Whether it waits. */
  retryWaiting: call(
    "threads/waiting/retry: POST threads/:threadId/waiting/retry",
    checkNamedWaiting,
    async ({ threadId, runId }, by) => (await waitingOf(by)).retry(threadId, runId),
  ),
};
