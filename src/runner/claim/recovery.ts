import { runsElsewhere } from "../../lock/claim.js";
import { hostLifeLockName, threadLockName } from "../../platform/names.js";
import { messageOf, RunnerError } from "../../run/errors.js";
import { closingEvents, startedEvent } from "../../run/finalize.js";
import { ChunkBuilder } from "../../run/pack.js";
import { askedAs } from "../../storage/decisions.js";
import type { StopRequest, ThreadHead } from "../../storage/run-store.js";
import type { RunnerParts } from "../parts.js";

/** How long until what could not be settled is tried again, at first and at most, in ms. */
const RETRY_MS = 250;
const RETRY_MAX_MS = 5_000;

/** What a run ends as that its host does not end. */
export type OrphanEnd = "broken" | StopRequest["as"];

/** The end of a run that nobody executes any more, and that could not be written. */
export interface OwedEnd {
  readonly as: OrphanEnd;
  /** Why the run ended. */
  readonly error: unknown;
}

/** What no further try mends. */
const isHopeless = (error: unknown): boolean =>
  RunnerError.is(error, "closed") || RunnerError.is(error, "outdated") || RunnerError.is(error, "corrupt-record");

/**
 * Settles the runs that other hosts left behind. A host holds a lock for life; when it falls, whoever watches it takes
 * each of its threads' locks and ends the run in the log.
 */
export class Recovery {
  private readonly watched = new Set<string>();
  private readonly owed = new Map<string, OwedEnd>();

  /** @param settled a run was ended here that this host did not execute */
  constructor(
    private readonly parts: RunnerParts,
    private readonly settled: (threadId: string) => void,
    private readonly signal: AbortSignal,
  ) {}

  /** Looks through the heads once: what a dead host left is settled, living hosts are watched. */
  async start(): Promise<void> {
    for (const head of await this.parts.store.liveHeads()) this.watch(head.holder);
  }

  /** Settles what `holder` left behind when it dies. Does nothing for this host itself. */
  watch(holder: string | undefined): void {
    if (this.parts.isOneProcess || holder === undefined || holder === this.parts.hostId) return;
    if (this.watched.has(holder)) return;
    this.watched.add(holder);
    void this.parts.locks
      .whenFree(hostLifeLockName(this.parts.dbName, holder), this.signal)
      .then((dead) => (dead ? this.settleRunsOf(holder) : undefined))
      // A storage failure here is met again, and told, by whoever next reads or claims the thread.
      .catch(() => undefined)
      .finally(() => this.watched.delete(holder));
  }

  /**
   * Ends the live run of `head`, whose lock the caller holds (so nobody executes it any more). What somebody asked it to
   * end as, and why this host could not end it itself, go before `given` and `saying`, where that is `broken`.
   *
   * @param saying what a person is told of a broken run
   * @returns the head after it
   */
  async settleOrphan(
    head: ThreadHead,
    given: OrphanEnd,
    saying = "The run was interrupted: its host ended",
  ): Promise<ThreadHead | undefined> {
    const { store, clock, channel, makeId, reached } = this.parts;
    const { threadId } = head;
    if (head.live !== undefined) {
      const owed = this.owed.get(keyOf(threadId, head.live.runId));
      const as = given === "broken" ? (askedAs(head) ?? owed?.as ?? given) : given;
      const why = owed === undefined ? saying : interrupted(owed.error);
      await reached?.("recovering.locked", threadId);
      const now = clock.now();
      const run = await store.settleForeign(threadId, head.live.runId, as, now, (row, nextSeq, open) => {
        const { runId, runIndex, epoch } = row;
        const builder = new ChunkBuilder({ threadId, runIndex, epoch, firstSeq: nextSeq });
        // Its input is added by whoever reads it: here nothing of the content is known.
        if (nextSeq === 0) builder.add(startedEvent(threadId, runId), now);
        const ending = { status: as, threadId, runId, ...(as === "broken" && { message: why }), ids: makeId };
        for (const event of closingEvents(open, ending)) {
          builder.add(event, now);
        }
        return builder.take()!;
      });
      await reached?.("recovering.settled", threadId);
      if (run !== undefined) {
        channel.post({ type: "ended", threadId, runId: run.runId, runIndex: run.runIndex });
        this.settled(threadId);
      }
    }
    return store.head(threadId);
  }

  /**
   * Ends a run in the log that this host gives up, where it stands there as live and as this host's; later, where that
   * cannot be written now.
   *
   * @param error why it is given up
   */
  async breakOff(
    { threadId, runId }: { readonly threadId: string; readonly runId: string },
    as: OrphanEnd,
    error: unknown,
  ): Promise<void> {
    try {
      const head = await this.parts.store.head(threadId);
      if (head?.live?.runId !== runId || head.holder !== this.parts.hostId) return;
      await this.settleOrphan(head, as, interrupted(error));
    } catch {
      this.settleLater(threadId, runId, { as, error });
    }
  }

  /** Why a run of this host has ended whose end is not in the log yet; undefined where nothing is owed. */
  owes(threadId: string, runId: string): { readonly error: unknown } | undefined {
    return this.owed.get(keyOf(threadId, runId));
  }

  /**
   * Ends a run that stands as live and that nobody executes: its thread's lock is free. For who has heard nothing of it
   * for long. Without Web Locks the lock tells nothing of other hosts, and only the end of their life does: see `watch`.
   *
   * @returns why its end cannot be written; undefined where it is written, or somebody executes the run, or may
   */
  async endAbandoned(threadId: string, runId: string): Promise<{ readonly error: unknown } | undefined> {
    const owed = this.owes(threadId, runId);
    if (owed !== undefined) return owed;
    let held = false;
    try {
      const isIt = (head: ThreadHead): OrphanVerdict =>
        head.live?.runId === runId && !runsElsewhere(this.parts, head) ? { as: "broken" } : undefined;
      await this.settleIf(isIt, threadId, () => (held = true));
      return undefined;
    } catch (error) {
      // A look that failed says nothing of the run: whoever executes it may go on.
      return held ? { error } : undefined;
    }
  }

  /** Settles a run that nobody executes any more and whose end could not be written, as soon as it can be. */
  settleLater(threadId: string, runId: string, end: OwedEnd): void {
    const key = keyOf(threadId, runId);
    if (this.owed.has(key)) return;
    this.owed.set(key, end);
    const isIt = (head: ThreadHead): OrphanVerdict =>
      head.live?.runId === runId ? { as: end.as, why: interrupted(end.error) } : undefined;
    void this.keepTrying(isIt, [threadId]).finally(() => {
      this.owed.delete(key);
      this.settled(threadId);
    });
  }

  private async settleRunsOf(holder: string): Promise<void> {
    const heads = (await this.parts.store.liveHeads()).filter((head) => head.holder === holder);
    await this.keepTrying(
      (head) => (head.holder === holder ? { as: "broken" } : undefined),
      heads.map((head) => head.threadId),
    );
  }

  /**
   * Settles what is live in the threads, as far as it is an orphan. What cannot be settled now (its lock is taken by
   * whoever claims it or settles it too, or the storage fails) is looked at again, less and less often.
   */
  private async keepTrying(orphan: (head: ThreadHead) => OrphanVerdict, threadIds: readonly string[]): Promise<void> {
    const { clock } = this.parts;
    let left = threadIds;
    for (let pause = RETRY_MS; ; pause = Math.min(2 * pause, RETRY_MAX_MS)) {
      const open: string[] = [];
      for (const threadId of left) {
        // One thread's trouble leaves the others alone.
        if (!(await this.settleIf(orphan, threadId).catch(isHopeless))) open.push(threadId);
      }
      left = open;
      if (left.length === 0 || this.signal.aborted) return;
      await clock.after(pause, this.signal);
      if (this.signal.aborted) return;
    }
  }

  /**
   * @param held called when the thread's lock is held: nobody executes its run
   * @returns false where it has to be tried again
   */
  private async settleIf(
    orphan: (head: ThreadHead) => OrphanVerdict,
    threadId: string,
    held?: () => void,
  ): Promise<boolean> {
    const { store, locks, dbName } = this.parts;
    const before = await store.head(threadId);
    if (before?.live === undefined || orphan(before) === undefined) return true;
    const lock = await locks.tryHold(threadLockName(dbName, threadId));
    if (lock === undefined) return false;
    held?.();
    try {
      const now = await store.head(threadId);
      const end = now && orphan(now);
      if (now !== undefined && end !== undefined) await this.settleOrphan(now, end.as, end.why);
      return true;
    } finally {
      await lock.release();
    }
  }
}

/** How an orphan ends, and what a person is told; undefined: it is none. */
type OrphanVerdict = { readonly as: OrphanEnd; readonly why?: string } | undefined;

const keyOf = (threadId: string, runId: string): string => JSON.stringify([threadId, runId]);

const interrupted = (error: unknown): string => `The run was interrupted: ${messageOf(error)}`;
