import type { Subject } from "rxjs";
import { loggable, warnOnce, type Logger } from "../../platform/log.js";
import { messageOf, RunnerError } from "../../run/errors.js";
import { quoted } from "../../run/printable.js";
import { beganAnew } from "../../storage/decisions.js";
import type { ListedThread, RunRow, ThreadHead, ThreadRow } from "../../storage/run-store.js";
import type { History } from "../history/history.js";
import { hasNoRecord, isUnreadable } from "../history/run-log.js";
import { here } from "../history/here.js";
import type { RunnerParts } from "../parts.js";
import type { Signals } from "../live/signals.js";
import type { Eviction, MemoryLimits } from "./limits.js";

/** Threads per page of the list. */
const PAGE = 100;
/** Attempts to delete a thread that is found live again. */
const DELETE_TRIES = 10;
/** A cut costs as much as a snapshot of the thread, so it covers several runs. */
const KEPT_AT_A_CUT = 0.75;

/** The thread failed, not the store: others may be deleted. */
const isOfThread = (error: unknown): boolean =>
  isUnreadable(error) || RunnerError.is(error, "thread-busy") || RunnerError.is(error, "offline");

/** Deletes threads, and keeps the log within its limits. */
export class Retention {
  /** Serializes the work: each pass sees what the one before left. */
  private working: Promise<void> = Promise.resolve();
  private readonly warnOnce: Logger["warn"];

  constructor(
    private readonly parts: Pick<RunnerParts, "store" | "logger" | "elsewhere">,
    private readonly history: History,
    private readonly signals: Signals,
    private readonly limits: MemoryLimits,
    /** Runs of the thread are live or queued here. */
    private readonly isBusy: (threadId: string) => boolean,
    /** Told what a limit removed. */
    private readonly evicted: Subject<Eviction>,
    private readonly closed: AbortSignal,
  ) {
    this.warnOnce = warnOnce(parts.logger);
  }

  /** Enforces the limits after a run of the thread has ended. */
  enforce(threadId: string): void {
    const { maxThreads = Infinity, maxRunsPerThread = Infinity, maxBytes = Infinity } = this.limits;
    this.working = this.working
      .then(async () => {
        if (this.closed.aborted) return;
        if (maxRunsPerThread !== Infinity) {
          await this.cutRuns(threadId, maxRunsPerThread).catch((error: unknown) => this.failed(error, threadId));
        }
        if (Math.min(maxThreads, maxBytes) !== Infinity) await this.evictThreads(maxThreads, maxBytes);
      })
      .catch((error: unknown) => this.failed(error));
  }

  /** Warns once for each thread; the next run's end tries again. */
  private failed(error: unknown, threadId?: string): void {
    if (this.closed.aborted) return;
    const what = threadId === undefined ? "The threads are" : `Thread ${quoted(threadId)} is`;
    const code = error instanceof RunnerError ? `${error.code}: ` : "";
    this.warnOnce(`${what} not kept within its limits: ${code}${messageOf(error)}`, loggable(error));
  }

  /** Resolves when no enforcement is in flight. */
  async idle(): Promise<void> {
    await this.working;
  }

  /** @returns false where the thread is live or not there, or has begun anew since `asked` */
  private async delete(threadId: string, asked?: ThreadHead, listed?: ListedThread): Promise<boolean> {
    // Also on failure: the thread may be gone and only leftovers remain.
    let isGone: boolean | undefined;
    try {
      return (isGone = await this.parts.store.deleteThread(threadId, asked, listed));
    } finally {
      if (isGone !== false) {
        this.history.forget(threadId);
        this.signals.changedHere(threadId, isGone);
      }
    }
  }

  /**
   * Deletes every thread. Errors: of those that cannot be deleted, after all others; of the store, at once.
   *
   * @param deleteThread deletes one
   */
  async clear(deleteThread: (threadId: string) => Promise<boolean>): Promise<number> {
    const failed = new Map<string, unknown>();
    let deleted = 0;
    let before: number;
    do {
      before = deleted;
      for await (const threadId of this.threadIds()) {
        if (failed.has(threadId)) continue;
        try {
          if (await deleteThread(threadId)) deleted++;
        } catch (error) {
          if (!isOfThread(error)) throw error;
          failed.set(threadId, error);
        }
      }
      // A thread whose run ends meanwhile moves up in the list.
    } while (deleted > before);
    for (const error of failed.values()) throw error;
    return deleted;
  }

  private async *threadIds(): AsyncGenerator<string> {
    const { store } = this.parts;
    for (const archived of [false, true]) {
      let last: ThreadRow | undefined;
      do {
        const page = await store.threads({ limit: PAGE, archived, ...(last !== undefined && { before: last }) });
        for (const { threadId } of page) yield threadId;
        last = page.at(-1);
      } while (last !== undefined);
    }
    // Those that never ran are in no list.
    yield* await store.waitingThreads();
  }

  /**
   * Deletes a thread whose runs were ended. One that has begun anew meanwhile stays.
   *
   * @param asked its head when the deletion was asked for
   * @param end ends the runs of the thread
   * @returns false where it is not there, or somebody else deleted it
   * @throws RunnerError `thread-busy`; `offline` where the thread is not on this device, and cannot come now
   */
  async deleteEnded(threadId: string, asked: ThreadHead | undefined, end: () => Promise<void>): Promise<boolean> {
    const { store } = this.parts;
    await here(this.parts, threadId);
    for (let tries = 0; ; tries++) {
      if (await this.delete(threadId, asked)) return true;
      const head = await store.head(threadId);
      const live = head?.live;
      if (beganAnew(head, asked)) return false;
      // A live thread's row is not read: an invalid row must not prevent the deletion.
      if (live === undefined && (await store.thread(threadId)) === undefined) return false;
      if (tries === DELETE_TRIES) {
        const { device, ...run } = live ?? {};
        throw new RunnerError("thread-busy", {
          threadId,
          ...run,
          ...(device !== undefined && { device: device.name }),
        });
      }
      // Else the next of them would start when this one ends.
      await store.clearWaiting(threadId);
      await end();
    }
  }

  private async cutRuns(threadId: string, most: number): Promise<void> {
    const { store } = this.parts;
    const [head, thread] = await Promise.all([store.head(threadId), store.thread(threadId)]);
    if (head === undefined || head.live !== undefined || head.deleted === true || thread?.pinned === true) return;
    const emptied = head.cut === true ? 1 : 0;
    if (head.runCount - (head.first ?? 0) - emptied <= most) return;
    const runs = await this.history.log.runs(head);
    if (runs.length - emptied <= most) return;
    const runIndex = baseOf(runs, head.activeRunIndex, Math.ceil(most * KEPT_AT_A_CUT));
    if (runIndex === undefined) throw new RunnerError("corrupt-record", { threadId, store: "runs" });
    const { messages, state, interrupts } = await this.history.baseAt(head, runIndex);
    const lost = await store.cut(threadId, head.epoch, { runIndex, messages, state, interrupts });
    if (lost === undefined || lost === 0) return;
    this.history.forget(threadId);
    this.evicted.next({ type: "runs", threadId, runs: lost });
  }

  private async evictThreads(most: number, mostBytes: number): Promise<void> {
    for (const listed of await this.parts.store.threadsBeyond(most, mostBytes)) {
      const { threadId } = listed;
      if (this.isBusy(threadId)) continue;
      const isGone = await this.delete(threadId, undefined, listed).catch((error: unknown) =>
        this.failed(error, threadId),
      );
      if (isGone === true) this.evicted.next({ type: "thread", threadId });
    }
  }
}

/**
 * The first run of the path to `active` with at most `keep` descendants, on any branch; undefined where no such run has
 * a readable record.
 */
function baseOf(runs: readonly RunRow[], active: number, keep: number): number | undefined {
  const prevOf = new Map(runs.map(({ runIndex, prevRunIndex }) => [runIndex, prevRunIndex]));
  const following = new Map<number, number>();
  for (const { runIndex, prevRunIndex } of runs.toReversed()) {
    if (prevRunIndex === null) continue;
    following.set(prevRunIndex, (following.get(prevRunIndex) ?? 0) + 1 + (following.get(runIndex) ?? 0));
  }
  const unreadable = new Set(runs.filter(hasNoRecord).map(({ runIndex }) => runIndex));
  let base: number | undefined;
  for (let at: number | null | undefined = active; at !== null && at !== undefined; at = prevOf.get(at)) {
    if ((following.get(at) ?? 0) > keep) break;
    if (!unreadable.has(at)) base = at;
  }
  return base;
}
