import { Subject, type Observable } from "rxjs";
import { RunnerError } from "../run/errors.js";
import type { ThreadHead } from "../storage/run-store.js";
import type { History } from "./history.js";
import type { RunnerParts } from "./parts.js";
import type { Signals } from "./signals.js";

/** How much history is kept. What is over it goes, the oldest first; live and pinned threads never do. */
export interface RunnerLimits {
  /** Threads that are kept; those updated least recently go. Default: all. */
  readonly maxThreads?: number;
  /**
   * Runs of a thread whose events are kept (the cut is made in advance, so it may be a quarter fewer). Of the older ones
   * their messages and state are left. Default: all.
   */
  readonly maxRunsPerThread?: number;
}

/** What a limit cost. */
export type Eviction =
  | { readonly type: "thread"; readonly threadId: string }
  /** So many runs lost their events; messages and state at the cut are kept. */
  | { readonly type: "runs"; readonly threadId: string; readonly runs: number };

/** Threads that are listed at a time. */
const PAGE = 100;
/** How often a thread is found live again before it is left. */
const CLEAR_TRIES = 10;
/** A cut costs what the thread shows, so it is made for several runs at a time. */
const KEPT_AT_A_CUT = 0.75;

export function checkLimits(limits: RunnerLimits): RunnerLimits {
  for (const [field, value] of Object.entries(limits) as [string, unknown][]) {
    const valid = value === undefined || value === Infinity || (Number.isSafeInteger(value) && (value as number) > 0);
    if (!valid) {
      throw new RunnerError(
        "invalid-input",
        { field: `limits.${field}` },
        { message: `limits.${field} must be a whole number above 0, or Infinity` },
      );
    }
  }
  return limits;
}

/** Deletes threads, and keeps the log within its limits. */
export class Retention {
  private readonly evicted = new Subject<Eviction>();
  /** One after the other: each looks at what the one before left. */
  private working: Promise<void> = Promise.resolve();

  constructor(
    private readonly parts: Pick<RunnerParts, "store">,
    private readonly history: History,
    private readonly signals: Signals,
    private readonly limits: RunnerLimits,
    private readonly closed: AbortSignal,
  ) {
    closed.addEventListener("abort", () => this.evicted.complete(), { once: true });
  }

  get evicted$(): Observable<Eviction> {
    return this.evicted;
  }

  /** Looks after the limits, now that a run of the thread has ended. */
  enforce(threadId: string): void {
    const { maxThreads = Infinity, maxRunsPerThread = Infinity } = this.limits;
    if (maxThreads === Infinity && maxRunsPerThread === Infinity) return;
    this.working = this.working
      .then(async () => {
        if (this.closed.aborted) return;
        await this.cutRuns(threadId, maxRunsPerThread);
        await this.evictThreads(maxThreads);
        // What fails now is met again, and told, by whoever next reads or writes; the next run's end tries again.
      })
      .catch(() => undefined);
  }

  /** Resolves when nothing of it is under way. */
  async idle(): Promise<void> {
    await this.working;
  }

  /** @returns false where the thread is live or not there */
  async delete(threadId: string): Promise<boolean> {
    try {
      return await this.parts.store.deleteThread(threadId);
    } finally {
      // Also where it fails: the thread may be gone, and only some of what it leaves still be there.
      this.history.forget(threadId);
      this.signals.changedHere(threadId);
    }
  }

  /**
   * Deletes every thread.
   *
   * @param end ends the runs of a thread
   * @throws RunnerError `thread-busy`
   */
  async clear(end: (threadId: string) => Promise<void>): Promise<number> {
    let deleted = 0;
    for (const archived of [false, true]) {
      for (;;) {
        const page = await this.parts.store.threads({ limit: PAGE, archived });
        if (page.length === 0) break;
        for (const { threadId } of page) {
          await this.deleteEnded(threadId, end);
          deleted++;
        }
      }
    }
    return deleted;
  }

  private async deleteEnded(threadId: string, end: (threadId: string) => Promise<void>): Promise<void> {
    for (let tries = 0; tries < CLEAR_TRIES; tries++) {
      if (await this.delete(threadId)) return;
      if ((await this.parts.store.thread(threadId)) === undefined) return;
      await end(threadId);
    }
    throw new RunnerError("thread-busy", { threadId });
  }

  private async cutRuns(threadId: string, most: number): Promise<void> {
    const { store } = this.parts;
    const head = await store.head(threadId);
    if (head === undefined || head.live !== undefined || head.deleted === true) return;
    const path = await this.pathWithEvents(head);
    if (path.length <= most) return;
    const runIndex = path.at(-Math.max(1, Math.floor(most * KEPT_AT_A_CUT)) - 1)!;
    const { messages, state, interrupts } = await this.history.baseAt(head, runIndex);
    const runs = await store.cut(threadId, head.epoch, { runIndex, messages, state, interrupts });
    if (runs === undefined || runs === 0) return;
    this.history.forget(threadId);
    this.evicted.next({ type: "runs", threadId, runs });
  }

  /** Indexes of the runs of the active path that have events, in order. */
  private async pathWithEvents(head: ThreadHead): Promise<readonly number[]> {
    const { threadId, activeRunIndex, first = 0 } = head;
    const path =
      head.branched === true
        ? [...(await this.history.pathTo(threadId, activeRunIndex))].sort((a, b) => a - b)
        : Array.from({ length: activeRunIndex - first + 1 }, (_, n) => first + n);
    return head.cut === true && path[0] === first ? path.slice(1) : path;
  }

  private async evictThreads(most: number): Promise<void> {
    if (most === Infinity) return;
    for (const threadId of await this.parts.store.threadsBeyond(most)) {
      if (await this.delete(threadId)) this.evicted.next({ type: "thread", threadId });
    }
  }
}
