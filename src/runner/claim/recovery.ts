import { runsElsewhere } from "../../lock/claim.js";
import { hostLifeLockName, threadLockName } from "../../platform/names.js";
import { messageOf, RunnerError } from "../../run/errors.js";
import { closingEvents, startedEvent } from "../../run/finalize.js";
import { ChunkBuilder } from "../../run/pack.js";
import { askedAs } from "../../storage/decisions.js";
import type { BuildForeignEnd, DecideRecovery, RunRow, StopRequest, ThreadHead } from "../../storage/run-store.js";
import type { History } from "../history/history.js";
import type { RunnerParts } from "../parts.js";
import { recoveryOf } from "./recovery-record.js";

/** Backoff before settling is retried: first and longest wait (ms). */
const RETRY_MS = 250;
const RETRY_MAX_MS = 5_000;

/** The parts of a runner that its runs and their readers share. */
export interface RunnerContext {
  readonly parts: RunnerParts;
  readonly history: History;
  readonly recovery: Recovery;
}

/** How a run ends that its host does not end. */
export type OrphanEnd = "broken" | StopRequest["as"];

/** An end that could not be written, of a run that nobody executes any more. */
export interface OwedEnd {
  readonly as: OrphanEnd;
  /** Why the run ended. */
  readonly error: unknown;
}

/** A run of a thread. One that is deleted and made again may have the run ids that it had, never the indexes. */
type LiveRef = Pick<RunRow, "runId" | "runIndex">;
type GivenUp = Pick<RunRow, "runId"> & Partial<LiveRef>;

/** Errors that no retry fixes. */
const isHopeless = (error: unknown): boolean =>
  RunnerError.is(error, "closed") || RunnerError.is(error, "outdated") || RunnerError.is(error, "corrupt-record");

/**
 * Settles the orphaned runs of other hosts. A host holds a lock for life; when it is freed, its watchers take the locks
 * of that host's threads and end their runs in the log.
 */
export class Recovery {
  private readonly watched = new Set<string>();
  private readonly owed = new Map<string, OwedEnd>();

  /** @param settled called when a run was ended here that this host does not execute */
  constructor(
    private readonly parts: RunnerParts,
    private readonly settled: (threadId: string) => void,
    private readonly signal: AbortSignal,
  ) {}

  /** Watches the holder of each live run; the runs of dead holders are settled. */
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
      // Whoever next reads or claims the thread meets a storage failure again and reports it.
      .catch(() => undefined)
      .finally(() => this.watched.delete(holder));
  }

  /**
   * Ends the live run of `head`. The caller holds the thread's lock, so nobody executes it any more. Where `given` is
   * `broken`, a stop request and then an end that this host owes take precedence over `given` and `saying`.
   *
   * @param saying message of a broken run
   * @returns the head afterwards
   */
  async settleOrphan(
    head: ThreadHead,
    given: OrphanEnd,
    saying = "The run was interrupted: its host ended",
  ): Promise<ThreadHead | undefined> {
    const { store, clock, channel, makeId, reached, recovery } = this.parts;
    const { threadId } = head;
    // L9: whoever notices that a run's host is gone settles the run, once.
    if (head.live !== undefined) {
      const owed = this.owes(threadId, head.live);
      const here = given === "broken" ? (askedAs(head) ?? owed?.as ?? given) : given;
      // How it really ended, its own device says.
      const as = head.live.device === undefined ? here : "broken";
      const why = owed === undefined ? saying : interrupted(owed.error);
      await reached?.("recovering.locked", threadId);
      const now = clock.now();
      const build: BuildForeignEnd = (row, nextSeq, open) => {
        const { runId, runIndex, epoch } = row;
        const builder = new ChunkBuilder({ threadId, runIndex, epoch, firstSeq: nextSeq });
        // Readers add its input: the content is not known here.
        if (nextSeq === 0) builder.add(startedEvent(threadId, runId), now);
        const ending = { status: as, threadId, runId, ...(as === "broken" && { message: why }), ids: makeId };
        for (const event of closingEvents(open, ending)) {
          builder.add(event, now);
        }
        return builder.take()!;
      };
      let waits = false;
      const decide: DecideRecovery = (row) => {
        const next = recoveryOf(this.parts, row, { status: as });
        waits = next !== undefined;
        return next;
      };
      const recovers = as === "broken" && recovery.policyOf !== undefined;
      const run = await store.settleForeign(threadId, head.live.runId, as, now, build, recovers ? decide : undefined);
      await reached?.("recovering.settled", threadId);
      if (run !== undefined) {
        channel.post({ type: "ended", threadId, runId: run.runId, runIndex: run.runIndex });
        this.settled(threadId);
        if (waits) recovery.added(threadId);
      }
    }
    return store.head(threadId);
  }

  /**
   * Ends a run that this host gives up, if it is still live and this host's in the log; later, if that cannot be
   * written now.
   *
   * @param run without `runIndex` where it is not known whether its fence was committed
   * @param error why it is given up
   */
  async breakOff(run: GivenUp & { readonly threadId: string }, as: OrphanEnd, error: unknown): Promise<void> {
    const { threadId } = run;
    try {
      const head = await this.parts.store.head(threadId);
      if (!isLive(head, run) || head.holder !== this.parts.hostId) return;
      await this.settleOrphan(head, as, interrupted(error));
    } catch {
      this.settleLater(threadId, run, { as, error });
    }
  }

  /** Why a run has ended whose end this host still has to write; undefined where it owes none. */
  owes(threadId: string, { runId, runIndex }: LiveRef): OwedEnd | undefined {
    return this.owed.get(keyOf(threadId, { runId, runIndex })) ?? this.owed.get(keyOf(threadId, { runId }));
  }

  /**
   * Ends a live run that nobody executes: its thread's lock is free. For readers that have heard nothing of it for
   * long. Without Web Locks the thread's lock says nothing about other hosts, only their life lock does: see `watch`.
   *
   * @returns why its end cannot be written; undefined where it is written, or somebody may execute the run
   */
  async endAbandoned(threadId: string, run: LiveRef): Promise<{ readonly error: unknown } | undefined> {
    const owed = this.owes(threadId, run);
    if (owed !== undefined) return owed;
    let held = false;
    try {
      const isIt = (head: ThreadHead): OrphanVerdict =>
        isLive(head, run) && !runsElsewhere(this.parts, head) ? { as: "broken" } : undefined;
      await this.settleIf(isIt, threadId, () => (held = true));
      return undefined;
    } catch (error) {
      // A failed read says nothing about the run: its holder may still execute it.
      return held ? { error } : undefined;
    }
  }

  /** A run of this id was claimed here: what an earlier claim of it may have left was settled before that. */
  claimed(threadId: string, runId: string): void {
    this.owed.delete(keyOf(threadId, { runId }));
  }

  /** Settles a run that nobody executes any more as soon as its end can be written. */
  settleLater(threadId: string, run: GivenUp, end: OwedEnd): void {
    const key = keyOf(threadId, run);
    if (this.owed.has(key)) return;
    this.owed.set(key, end);
    const isOwed = (): boolean => this.owed.get(key) === end;
    const isIt = (head: ThreadHead): OrphanVerdict => {
      // Without its index it is told from a run that another host has started under its id by the holder.
      const isOurs = run.runIndex !== undefined || head.holder === this.parts.hostId;
      return isOwed() && isOurs && isLive(head, run) ? { as: end.as, why: interrupted(end.error) } : undefined;
    };
    void this.keepTrying(isIt, [threadId]).finally(() => {
      if (isOwed()) this.owed.delete(key);
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
   * Settles the orphaned runs of the threads. What cannot be settled now (its lock is held by somebody who claims or
   * settles it, or the storage fails) is retried with backoff.
   */
  private async keepTrying(orphan: (head: ThreadHead) => OrphanVerdict, threadIds: readonly string[]): Promise<void> {
    const { clock } = this.parts;
    let left = threadIds;
    for (let pause = RETRY_MS; ; pause = Math.min(2 * pause, RETRY_MAX_MS)) {
      const open: string[] = [];
      for (const threadId of left) {
        // A failure in one thread does not affect the others.
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
   * @returns false where it must be retried
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

/** How an orphaned run ends, and its message; undefined: the run is no orphan. */
type OrphanVerdict = { readonly as: OrphanEnd; readonly why?: string } | undefined;

const keyOf = (threadId: string, { runId, runIndex }: GivenUp): string =>
  JSON.stringify([threadId, runId, runIndex ?? null]);

const isLive = (head: ThreadHead | undefined, { runId, runIndex }: GivenUp): head is ThreadHead =>
  head?.live?.runId === runId && (runIndex ?? head.live.runIndex) === head.live.runIndex;

const interrupted = (error: unknown): string => `The run was interrupted: ${messageOf(error)}`;
