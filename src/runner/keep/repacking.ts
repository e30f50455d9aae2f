import type { RunnerParts } from "../parts.js";

/** A run with fewer chunk records is not repacked. */
const MANY = 64;
/** Nor is one with more events per record on average. */
const LARGE = 64;
/** How long after a run's end, and how often from then on, the host is checked for idleness, in ms. */
const IDLE_MS = 2_000;
/** Maximum number of runs that wait to be repacked; the oldest beyond it stay as they are. */
const MAX_WAITING = 256;

interface SettledRun {
  readonly threadId: string;
  readonly runIndex: number;
}

/**
 * Joins the many small records of runs that have ended in this host, one run at a time, while no run is live in it. A
 * failure leaves the run readable as before.
 */
export class Repacking {
  private waiting: SettledRun[] = [];
  private working = false;
  /** Aborts the repacking in flight. */
  private current: AbortController | undefined;

  constructor(
    private readonly parts: Pick<RunnerParts, "store" | "clock">,
    /** No run is live or queued in this host. */
    private readonly isIdle: () => boolean,
    private readonly closed: AbortSignal,
  ) {
    closed.addEventListener("abort", () => this.current?.abort(), { once: true });
  }

  /** A run starts here and takes precedence. */
  yieldToRun(): void {
    this.current?.abort();
  }

  /**
   * A run has ended here.
   *
   * @param records how many chunks its events were committed in
   */
  ended({ threadId, runIndex }: SettledRun, records: number, events: number): void {
    if (records < MANY || events > records * LARGE || this.closed.aborted) return;
    this.waiting.push({ threadId, runIndex });
    if (this.waiting.length > MAX_WAITING) this.waiting.shift();
    if (!this.working) void this.work();
  }

  private async work(): Promise<void> {
    this.working = true;
    while (this.waiting.length > 0) {
      await this.parts.clock.after(IDLE_MS, this.closed);
      if (this.closed.aborted) break;
      if (!this.isIdle()) continue;
      const next = this.waiting.shift()!;
      const current = new AbortController();
      this.current = current;
      await this.parts.store.repack(next.threadId, next.runIndex, current.signal).catch(() => undefined);
      this.current = undefined;
      if (current.signal.aborted) this.waiting.unshift(next);
    }
    this.working = false;
  }
}
