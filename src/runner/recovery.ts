import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { hostLifeLockName, threadLockName } from "../platform/names.js";
import { closingEvents } from "../run/finalize.js";
import { ChunkBuilder } from "../run/pack.js";
import type { ThreadHead } from "../storage/run-store.js";
import type { RunnerParts } from "./parts.js";

/**
 * Settles the runs that other hosts left behind. A host holds a Web Lock for life; when it falls, whoever watches it
 * takes each of its threads' locks and ends the run in the log.
 */
export class Recovery {
  private readonly watched = new Set<string>();

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
      .then(async (dead) => {
        this.watched.delete(holder);
        if (dead) await this.settleRunsOf(holder);
      })
      // A storage failure here is met again, and told, by whoever next reads or claims the thread.
      .catch(() => undefined);
  }

  /**
   * Ends the live run of `head`, whose lock the caller holds (so nobody executes it any more).
   *
   * @returns the head after it
   */
  async settleOrphan(head: ThreadHead, status: "broken" | "stopped"): Promise<ThreadHead | undefined> {
    const { store, clock, channel, makeId } = this.parts;
    const { threadId } = head;
    if (head.live !== undefined) {
      const now = clock.now();
      const run = await store.settleForeign(threadId, head.live.runId, status, now, (row, nextSeq, open) => {
        const { runId, runIndex, epoch } = row;
        const builder = new ChunkBuilder({ threadId, runIndex, epoch, firstSeq: nextSeq });
        // Its input is added by whoever reads it: here nothing of the content is known.
        if (nextSeq === 0) builder.add({ type: EventType.RUN_STARTED, threadId, runId } as BaseEvent, now);
        const message = "The run was interrupted: its host ended";
        for (const event of closingEvents(open, { status, threadId, runId, message, ids: makeId })) {
          builder.add(event, now);
        }
        return builder.take()!;
      });
      if (run !== undefined) channel.post({ type: "ended", threadId, runId: run.runId, runIndex: run.runIndex });
    }
    return store.head(threadId);
  }

  private async settleRunsOf(holder: string): Promise<void> {
    const { store, locks, dbName } = this.parts;
    for (const head of await store.liveHeads()) {
      if (head.holder !== holder) continue;
      const lock = await locks.tryHold(threadLockName(dbName, head.threadId));
      // Taken: another host settles it, or claims the thread and settles it first.
      if (lock === undefined) continue;
      try {
        const now = await store.head(head.threadId);
        if (now?.holder === holder) await this.settleOrphan(now, "broken");
      } finally {
        await lock.release();
      }
    }
  }
}
