import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { hostLifeLockName, threadLockName } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import { closingEvents } from "../run/finalize.js";
import { ChunkBuilder } from "../run/pack.js";
import type { StopRequest, ThreadHead } from "../storage/run-store.js";
import type { RunnerParts } from "./parts.js";

/** How long until what could not be settled is tried again, at first and at most, in ms. */
const RETRY_MS = 250;
const RETRY_MAX_MS = 30_000;

/** What no further try mends. */
const isHopeless = (error: unknown): boolean =>
  RunnerError.is(error, "closed") || RunnerError.is(error, "outdated") || RunnerError.is(error, "corrupt-record");

/**
 * Settles the runs that other hosts left behind. A host holds a Web Lock for life; when it falls, whoever watches it
 * takes each of its threads' locks and ends the run in the log.
 */
export class Recovery {
  private readonly watched = new Set<string>();
  private readonly owed = new Set<string>();

  constructor(
    private readonly parts: RunnerParts,
    private readonly signal: AbortSignal,
  ) {}

  /** Looks through the heads once: what a dead host left is settled, living hosts are watched. */
  async start(): Promise<void> {
    for (const head of await this.parts.store.liveHeads()) this.watch(head.holder);
  }

  /** Settles what `holder` left behind when it dies. Does nothing for this host itself. */
  watch(holder: string | undefined): void {
    if (holder === undefined || holder === this.parts.hostId || this.watched.has(holder)) return;
    this.watched.add(holder);
    void this.parts.locks
      .whenFree(hostLifeLockName(this.parts.dbName, holder), this.signal)
      .then((dead) => (dead ? this.settleRunsOf(holder) : undefined))
      // A storage failure here is met again, and told, by whoever next reads or claims the thread.
      .catch(() => undefined)
      .finally(() => this.watched.delete(holder));
  }

  /** Settles a run that nobody executes any more and whose end could not be written, as soon as it can be. */
  settleLater(threadId: string, runId: string): void {
    const key = JSON.stringify([threadId, runId]);
    if (this.owed.has(key)) return;
    this.owed.add(key);
    void this.keepTrying((head) => head.live?.runId === runId, [threadId]).finally(() => this.owed.delete(key));
  }

  /**
   * Ends the live run of `head`, whose lock the caller holds (so nobody executes it any more).
   *
   * @returns the head after it
   */
  async settleOrphan(head: ThreadHead, status: "broken" | StopRequest["as"]): Promise<ThreadHead | undefined> {
    const { store, clock, channel, makeId } = this.parts;
    const { threadId } = head;
    if (head.live !== undefined) {
      const now = clock.now();
      const run = await store.settleForeign(threadId, head.live.runId, status, now, (row, nextSeq, open) => {
        const { runId, runIndex, epoch } = row;
        const builder = new ChunkBuilder({ threadId, runIndex, epoch, firstSeq: nextSeq });
        // Its input is added by whoever reads it: here nothing of the content is known.
        if (nextSeq === 0) builder.add({ type: EventType.RUN_STARTED, threadId, runId } as BaseEvent, now);
        const message = status === "broken" ? "The run was interrupted: its host ended" : undefined;
        const ending = { status, threadId, runId, ...(message !== undefined && { message }), ids: makeId };
        for (const event of closingEvents(open, ending)) {
          builder.add(event, now);
        }
        return builder.take()!;
      });
      if (run !== undefined) channel.post({ type: "ended", threadId, runId: run.runId, runIndex: run.runIndex });
    }
    return store.head(threadId);
  }

  /**
   * Ends a run in the log that this host gives up, where it stands there as live and as this host's; later, where that
   * cannot be written now.
   */
  async breakOff({ threadId, runId }: { readonly threadId: string; readonly runId: string }): Promise<void> {
    try {
      const head = await this.parts.store.head(threadId);
      if (head?.live?.runId !== runId || head.holder !== this.parts.hostId) return;
      await this.settleOrphan(head, head.stop?.runId === runId ? head.stop.as : "broken");
    } catch {
      this.settleLater(threadId, runId);
    }
  }

  private async settleRunsOf(holder: string): Promise<void> {
    const heads = (await this.parts.store.liveHeads()).filter((head) => head.holder === holder);
    await this.keepTrying(
      (head) => head.holder === holder,
      heads.map((head) => head.threadId),
    );
  }

  /**
   * Settles as broken what is live in the threads, as far as `isOrphan` says so. What cannot be settled now (its lock is
   * taken by whoever claims it or settles it too, or the storage fails) is looked at again, less and less often.
   */
  private async keepTrying(isOrphan: (head: ThreadHead) => boolean, threadIds: readonly string[]): Promise<void> {
    const { clock } = this.parts;
    let left = threadIds;
    for (let pause = RETRY_MS; ; pause = Math.min(2 * pause, RETRY_MAX_MS)) {
      const open: string[] = [];
      for (const threadId of left) {
        // One thread's trouble leaves the others alone.
        if (!(await this.settleIf(isOrphan, threadId).catch(isHopeless))) open.push(threadId);
      }
      left = open;
      if (left.length === 0 || this.signal.aborted) return;
      await clock.after(pause, this.signal);
      if (this.signal.aborted) return;
    }
  }

  /** @returns false where it has to be tried again */
  private async settleIf(isOrphan: (head: ThreadHead) => boolean, threadId: string): Promise<boolean> {
    const { store, locks, dbName } = this.parts;
    const before = await store.head(threadId);
    if (before?.live === undefined || !isOrphan(before)) return true;
    const lock = await locks.tryHold(threadLockName(dbName, threadId));
    if (lock === undefined) return false;
    try {
      const now = await store.head(threadId);
      if (now !== undefined && isOrphan(now)) await this.settleOrphan(now, "broken");
      return true;
    } finally {
      await lock.release();
    }
  }
}
