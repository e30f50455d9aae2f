import { EventType } from "@ag-ui/core";
import { abortWith } from "../../platform/abort.js";
import { ringOrSilence } from "../../platform/bell.js";
import { endOf } from "../../run/message-page.js";
import { RunnerError } from "../../run/errors.js";
import { emptyPrelude } from "../../run/prelude.js";
import { isSameDatabase } from "../../run/epochs.js";
import { isListening } from "../../run/life.js";
import { equalJson } from "../../run/json.js";
import { loaded } from "../../run/loaded.js";
import type { Cursor } from "../../run/types.js";
import type { RunRow, ThreadHead } from "../../storage/run-store.js";
import { toErrorData } from "../../wire/errors.js";
import type { Frame, LiveRun as LiveRunInfo, Replay } from "../../wire/shapes.js";
import { wholeBaseline } from "../history/baseline.js";
import { refOf, type LiveRun, type RunRef } from "../live/live-run.js";
import type { RunFeed } from "../../run/run-feed.js";
import type { RunnerContext } from "../claim/recovery.js";
import { hasNoRecord } from "../history/run-log.js";
import { steadily } from "../../storage/steadily.js";
import { recoveryState } from "./recovery-state.js";
import { tailRun, type TailContext } from "./tail.js";

export interface AttachContext extends Omit<TailContext, keyof RunnerContext>, RunnerContext {
  /** This host's run of the thread that is not over yet. */
  readonly liveRun: (threadId: string) => LiveRun | undefined;
  /** Ends every attachment. */
  readonly closed: AbortSignal;
  /** A reader has been handed all there is. */
  readonly caughtUp: () => void;
}

export interface AttachOptions {
  readonly threadId: string;
  readonly after?: Cursor;
  /** See `AttachRequest`. */
  readonly holds?: boolean;
  /** How a reader that has nothing gets the settled history. Default `snapshot`. */
  readonly replay?: Replay;
  /**
   * A snapshot shows at most this many of the last messages, and all that a live run has open or added. Default: all.
   */
  readonly limit?: number;
  readonly follow?: boolean;
  /** Called when the reader has been handed all there is. */
  readonly caughtUp?: () => void;
  /** A snapshot of all messages starts with the run of each, see `runNames`: for a reader without messages. */
  readonly named?: boolean;
}

/** How long a follower of an idle thread hears nothing before it reads the log, in ms. */
const SILENCE_MS = 10_000;

/**
 * The frames for a reader of a thread: what it lacks, then the live run, then (`follow`) each later run. Frames cover
 * consecutive seq ranges without gap or overlap.
 */
export async function* attach(
  context: AttachContext,
  options: AttachOptions,
  until: AbortSignal,
): AsyncGenerator<Frame, void> {
  const { parts } = context;
  const reading = abortWith(until, context.closed);
  const { signal } = reading;
  const { threadId, follow = false } = options;
  // Listens before the first read, so that a run that starts in between is not missed.
  const { bell, release } = context.bell(threadId);
  let at: Cursor | undefined = options.after;
  // A returning reader may have seen a run's last event but not that it was settled: that is sent again.
  let comesBack = true;
  let toldIdle = false;
  /** The reader shows something of the thread, whatever its cursor says. */
  let holds = options.holds === true || (at !== undefined && at.runIndex >= 0);
  /** The run that is over but still live in the log. */
  let lostRunId: string | undefined;
  /** Of the last run that the reader was handed, where it ended in an error. */
  let failedIndex: number | undefined;
  let toldRecovery: unknown;
  let mayRead = false;
  try {
    // A run that is being claimed is running for whoever asks (`isRunning`): a reader that ends must not miss it.
    if (!follow) await context.liveRun(threadId)?.claimed;
    while (!signal.aborted) {
      const seen = bell.count;
      const next = await steadily(parts.store, threadId, async (head) => {
        const isLost = lostRunId !== undefined && head?.live?.runId === lostRunId;
        return isLost ? "end" : nextStep(context, head, at, holds, options, comesBack);
      });
      comesBack = false;
      if (next === "again") continue;
      // A snapshot was decoded.
      const isDecoded = next !== "end" && "prelude" in next && next.prelude.gone === undefined;
      if (!mayRead && !isDecoded) await refuseLocked(context, threadId);
      mayRead = true;
      if (next !== "end") {
        lostRunId = undefined;
        if ("prelude" in next) {
          yield next.prelude;
          at = next.prelude.cursor;
          failedIndex = next.prelude.events.at(-1)?.type === EventType.RUN_ERROR ? at.runIndex : undefined;
          holds = at.runIndex >= 0;
          if (!next.isIdle || bell.count !== seen) continue;
        } else {
          holds = true;
          const { run, afterSeq, alone } = next;
          const feed = feedOf(context, run);
          const base = alone === true ? await wholeBaseline(context, run) : [];
          if (afterSeq < 0) yield { type: "run", run: toLiveRunInfo(run) };
          const { runIndex, runId, epoch } = run;
          const read = yield* tailRun(context, run, feed, afterSeq, signal, base);
          if (read?.is === "settled") {
            const { status, seq } = read;
            yield { type: "settled", runIndex, runId, status };
            at = { runIndex, seq, epoch };
            failedIndex = status === "broken" || status === "errored" ? runIndex : undefined;
            continue;
          }
          at = undefined;
          if (read === undefined) failedIndex = undefined;
          else if (read.is === "unreadable") {
            // If the run is over, a snapshot shows what is readable of it.
            if ((await parts.store.head(threadId))?.live?.runId === runId) throw read.error;
          } else {
            if (!follow) throw read.error;
            // Its end comes with a snapshot once it is written; until then it must not pass for live.
            yield { type: "lost", runIndex, runId, error: toErrorData(read.error) };
            lostRunId = runId;
          }
          continue;
        }
      }
      context.caughtUp();
      options.caughtUp?.();
      if (!follow) break;
      if (failedIndex !== undefined && parts.recovery.policyOf !== undefined) {
        const told = await recoveryState(parts.store, threadId, failedIndex);
        if (told !== undefined && !equalJson(told, toldRecovery)) {
          yield { type: "recovery", runIndex: failedIndex, ...told };
        }
        toldRecovery = told;
      }
      if (!toldIdle) yield { type: "idle" };
      toldIdle = true;
      await ringOrSilence(bell, seen, parts.clock, SILENCE_MS, signal);
    }
    if (!signal.aborted) yield { type: "end" };
  } catch (error) {
    // A read in flight fails when its host closes: the next host goes on.
    if (!signal.aborted) throw error;
  } finally {
    reading.abort();
    release();
  }
}

/**
 * Without the key no reader is told either that there is nothing more. A run that this host goes on with may be read.
 *
 * Errors: RunnerError `locked`, `wrong-key`, or a storage code
 */
export async function refuseLocked({ parts, liveRun }: AttachContext, threadId: string): Promise<void> {
  if (liveRun(threadId) === undefined) await parts.store.readable?.();
}

/** `alone`: nothing before the run is sent. */
type Position = { readonly run: RunRef; readonly afterSeq: number; readonly alone?: true };
type Prelude = Frame & { readonly type: "prelude" };
/** `isIdle`: no run was live when the thread was read, so nothing follows. */
type Shown = { readonly prelude: Prelude; readonly isIdle: boolean };

/** The next step for a reader at `at`; `again`: the thread is changing, read again. */
async function nextStep(
  context: AttachContext,
  head: ThreadHead | undefined,
  at: Cursor | undefined,
  holds: boolean,
  { threadId, replay, limit, named = false, holds: told }: AttachOptions,
  comesBack: boolean,
): Promise<Position | Shown | "again" | "end"> {
  // Also where its whole database was deleted.
  if (head === undefined || head.deleted === true) {
    if (!holds) return "end";
    const cursor = { runIndex: -1, seq: -1, epoch: head?.epoch ?? at?.epoch ?? 0 };
    const { dbName, makeId } = context.parts;
    // A deleted thread leaves its head, a deleted database none.
    const gone = toErrorData(new RunnerError(head ? "unknown-thread" : "storage-deleted", { threadId, dbName }));
    const events = emptyPrelude(threadId, makeId());
    return { prelude: { type: "prelude", events, cursor, gone }, isIdle: true };
  }
  context.recovery.watch(head.holder);
  const next =
    at === undefined && !holds && replay === "last-run"
      ? await lastRun(context, head)
      : await nextPosition(context, head, at, comesBack);
  if (next !== "snapshot") return next;
  // Compacted events would add again what a reader shows already.
  const prelude =
    replay === "events" && !holds
      ? await compacted(context, head)
      : await snapshot(context, head, limit, holds, {
          // A snapshot alone would leave the reasoning of another branch.
          forget: told === undefined && holds,
          named: named && !holds,
        });
  return prelude === undefined ? "again" : { prelude, isIdle: head.live === undefined };
}

/** The last run of the path, from its first event. No limit removes that run's events. */
async function lastRun({ history }: AttachContext, head: ThreadHead): Promise<Position | "snapshot" | "again"> {
  const run = await history.log.runIfThere(head, head.activeRunIndex);
  if (run === undefined) return "again";
  return hasNoRecord(run) ? "snapshot" : { run: refOf(run), afterSeq: -1, alone: true };
}

/** What a reader at `at` reads next; `snapshot` where its place is not on the active path. */
async function nextPosition(
  { history }: AttachContext,
  head: ThreadHead,
  at: Cursor | undefined,
  comesBack: boolean,
): Promise<Position | "snapshot" | "end"> {
  if (at === undefined || at.runIndex > head.activeRunIndex) return "snapshot";
  const path = head.branched === true ? await history.log.pathTo(head, head.activeRunIndex) : undefined;
  if (path !== undefined && !path.has(at.runIndex)) return "snapshot";
  const run = await history.log.runIfThere(head, at.runIndex);
  if (run === undefined || at.epoch > run.epoch || !isSameDatabase(at.epoch, run.epoch)) return "snapshot";
  if (isRevised(run, at)) return "snapshot";
  const complete = run.status !== "running" && at.seq >= (run.eventCount ?? 0) - 1;
  // Its events were cut off; the messages and state after them remain.
  if (!complete && head.cut === true && at.runIndex === head.first) return "snapshot";
  if (!complete || (comesBack && !hasNoRecord(run))) return { run: refOf(run), afterSeq: at.seq };
  const nextIndex =
    path === undefined ? at.runIndex + 1 : [...path].filter((index) => index > at.runIndex).sort((a, b) => a - b)[0];
  if (nextIndex === undefined || nextIndex > head.activeRunIndex) return "end";
  const next = await history.log.runIfThere(head, nextIndex);
  if (next === undefined) return "end";
  // A run before it was replaced, which the reader may have read as it was.
  return hasNoRecord(next) || isRevised(next, { seq: -1, epoch: at.epoch })
    ? "snapshot"
    : { run: refOf(next), afterSeq: -1 };
}

/** What the reader has seen does not count any more. A snapshot gives it the new epoch. */
const isRevised = ({ revised }: RunRow, { seq, epoch }: Pick<Cursor, "seq" | "epoch">): boolean =>
  revised !== undefined && epoch < revised.epoch && (revised.from === 0 || seq >= revised.from);

/** `live` is this run, not one of the same index in a recreated database. */
const isRun = (live: LiveRun | undefined, run: Pick<RunRef, "runIndex" | "epoch">): live is LiveRun =>
  live?.inLog?.runIndex === run.runIndex && isSameDatabase(live.inLog.epoch, run.epoch);

/** What a live run hands out, where that is in this context. */
export function feedOf({ parts, liveRun }: AttachContext, run: RunRef): RunFeed | undefined {
  const { threadId, runIndex, epoch } = run;
  const live = liveRun(threadId);
  if (isRun(live, run) && live.isHere) return live.feed;
  const written = parts.elsewhere.written?.(threadId);
  // One that was gone on with is read in the log by those who began before.
  return written?.runIndex === runIndex && written.epoch === epoch ? written.feed : undefined;
}

/** The settled history as compacted events, for plain AG-UI readers. */
async function compacted({ history }: AttachContext, head: ThreadHead): Promise<Prelude> {
  const { activeRunIndex, live } = head;
  const active = await history.log.run(head, activeRunIndex);
  const last = live === undefined ? active : await history.log.runBefore(head, active);
  const cursor =
    last === undefined
      ? { runIndex: activeRunIndex, seq: -1, epoch: active.epoch }
      : { runIndex: last.runIndex, seq: (last.eventCount ?? 0) - 1, epoch: last.epoch };
  const { compactLog } = await loaded(import("../../run/compact.js"));
  const events = last === undefined ? [] : compactLog(await history.pathEvents(head, last.runIndex));
  return { type: "prelude", events, cursor };
}

export const toLiveRunInfo = ({ threadId: _threadId, ...run }: RunRef): LiveRunInfo => run;

/** Events that rebuild everything up to now. Undefined: the thread is changing, read again. */
async function snapshot(
  { parts, history, liveRun }: AttachContext,
  head: ThreadHead,
  limit: number | undefined,
  holds: boolean,
  { forget, named }: { readonly forget: boolean; readonly named: boolean },
): Promise<Prelude | undefined> {
  const { threadId } = head;
  if (head.live === undefined) {
    const end =
      limit === undefined ? endOf(await history.base(head)) : await history.endAt(head, head.activeRunIndex, limit);
    const [last, names, settled] = await Promise.all([
      history.log.run(head, head.activeRunIndex),
      named ? history.namesOf(head, end) : [],
      history.settledEvents(head, end, forget),
    ]);
    return {
      type: "prelude",
      events: [...names, ...settled],
      cursor: { runIndex: last.runIndex, seq: (last.eventCount ?? 0) - 1, epoch: last.epoch },
      ...(end.earlier && { earlier: true }),
    };
  }

  const run = await history.log.run(head, head.live.runIndex);
  const local = liveRun(threadId);
  const isLocal = isRun(local, run);
  // A run of this host has its base in memory: the thread need not be read.
  const before =
    (isLocal ? local.view?.before(limit) : undefined) ?? (await history.endAt(head, run.prevRunIndex ?? -1, limit));
  const names = named ? await history.namesOf(head, before) : [];
  const settled = [...names, ...(await history.settledEvents(head, before, forget))];
  if (isLocal && !isListening(local.is)) {
    await local.ended;
    return undefined;
  }
  const view = isLocal ? local.view : await history.viewOf(head, run.runIndex);
  // The run was settled during the read: a prelude shows a live run without its end.
  if (view?.ended === true) return undefined;
  if (view?.started !== true) {
    // Nothing of the run is committed yet: the history, then the run from its first event.
    const cursor = { runIndex: run.runIndex, seq: -1, epoch: run.epoch };
    const live = toLiveRunInfo(refOf(run));
    // The reader holds messages of a deleted thread, or of another branch.
    const events = holds && settled.length === 0 ? emptyPrelude(threadId, parts.makeId()) : settled;
    return { type: "prelude", events, cursor, live, ...(before.earlier && { earlier: true }) };
  }
  const shown = view.prelude({ ...(limit !== undefined && { limit }), forget: forget && settled.length === 0 });
  return {
    type: "prelude",
    events: [...settled, ...shown.events],
    cursor: { runIndex: run.runIndex, seq: view.seq, epoch: run.epoch },
    live: toLiveRunInfo(refOf(run)),
    ...(shown.earlier && { earlier: true }),
  };
}
