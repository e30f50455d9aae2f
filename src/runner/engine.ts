import { filter, ReplaySubject, share, Subject, tap, type Observable } from "rxjs";
import { sharedController } from "../platform/abort.js";
import type { OpenChannel } from "../platform/channel.js";
import { systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import { Lazy } from "../platform/lazy.js";
import type { HeldLock } from "../platform/locks.js";
import { consoleLogger, safeLogger } from "../platform/log.js";
import { hostChannelName, hostLifeLockName } from "../platform/names.js";
import { releasableLocks, type ReleasableLocks } from "../platform/releasable-locks.js";
import { RunnerError } from "../run/errors.js";
import { isBusy } from "../run/life.js";
import { loaded } from "../run/loaded.js";
import { hostChannel, type LockMessage } from "../lock/protocol.js";
import type { RunRow } from "../storage/run-store.js";
import type { Passes } from "../storage/encryption/passes.js";
import type { ThreadChange } from "../wire/shapes.js";
import { eventLimits } from "./agent/event-limits.js";
import { Recovery } from "./claim/recovery.js";
import { History } from "./history/history.js";
import { areLimits, type Eviction } from "./keep/limits.js";
import { Repacking } from "./keep/repacking.js";
import type { Retention } from "./keep/retention.js";
import type { LiveRun, RunRef } from "./live/live-run.js";
import { Signals } from "./live/signals.js";
import { Stopping } from "./live/stopping.js";
import { ThreadRuns } from "./live/thread-runs.js";
import type { LocalAgentRunnerOptions, RunnerPreset } from "./options.js";
import type { RunnerParts } from "./parts.js";
import type { Recoveries } from "./recoveries.js";
import type { Outbox } from "./outbox.js";
import type { ToolCalls } from "./tool-calls.js";
import type { AttachContext } from "./read/attach.js";
import type { ThreadReads } from "./read/reads.js";
import { hasNoThreads, threadChanges, threadSummary } from "./read/threads.js";

/** Backoff after a failed attempt to reopen the store: first and longest wait (ms). */
const REOPEN_MS = 25;
const REOPEN_MAX_MS = 2_000;

/**
 * The parts of a runner put together, and their life: opened, told by other hosts and by the store, closed. Its callers
 * have checked what they hand in.
 */
export class RunnerEngine {
  readonly parts: RunnerParts;
  /** Aborts, with a RunnerError `outdated`, when a newer build has taken the database over. */
  readonly outdated: AbortSignal;
  /** Emits a RunnerError `storage-deleted` when the database was deleted, also before somebody listened. */
  readonly deleted$ = new ReplaySubject<RunnerError>(1);
  readonly threadChanges$: Observable<ThreadChange>;
  readonly signals: Signals;
  readonly runs: ThreadRuns;
  readonly stopping: Stopping;
  readonly reads: Lazy<ThreadReads>;
  readonly toolCalls: Lazy<ToolCalls>;
  readonly recoveries: Lazy<Recoveries>;
  readonly outbox: Lazy<Outbox>;
  readonly evicted$ = new Subject<Eviction>();
  private readonly history: History;
  private readonly recovery: Recovery;
  private readonly repacking: Repacking;
  private readonly retention: Lazy<Retention>;
  private readonly isLimited: boolean;
  /** Messages of other hosts, through one shared subscription. */
  private readonly heard$: Observable<LockMessage>;
  private readonly locks: ReleasableLocks;
  private readonly openChannel: OpenChannel;
  private readonly closed = sharedController();
  private readonly ready: Promise<HeldLock>;
  private opening: Promise<void> | undefined;
  /** They encrypt what was stored before the key, or without it. */
  private readonly passes: Lazy<Passes>;
  private closing: Promise<void> | undefined;

  constructor(preset: RunnerPreset, options: LocalAgentRunnerOptions) {
    const { dbName, locks, isOneProcess = false, openChannel, openStore } = preset;
    const { clock = systemClock, makeId = randomId, maxRunMs, onConcurrentRun = "throw", limits = {} } = options;
    const { atFailurePoint, logger = consoleLogger } = options;
    this.locks = releasableLocks(locks);
    this.openChannel = openChannel;
    const outdated = new AbortController();
    this.outdated = outdated.signal;
    const hostId = makeId();
    const { signal } = this.closed;
    this.parts = {
      dbName,
      hostId,
      locks: this.locks,
      isOneProcess,
      clock,
      makeId,
      logger: safeLogger(logger),
      recordInput: [...(options.recordInput ?? [])],
      recovery: { added: (threadId) => this.signals.waitingChangedHere(threadId) },
      elsewhere: { used: new Set(), live: (threadId) => this.runs.current(threadId)?.fed },
      stopGraceMs: options.stopGraceMs ?? 2_000,
      ...(maxRunMs !== undefined && { maxRunMs }),
      eventLimits: eventLimits(options.eventLimits),
      ...(atFailurePoint !== undefined && { reached: atFailurePoint }),
      channel: hostChannel(openChannel(hostChannelName(dbName)), hostId),
      store: openStore({
        onOutdated: async (deleted) => {
          // Nobody asked these runs to end: they are broken, not stopped.
          await this.stopping.endAll("broken");
          if (!deleted) outdated.abort(new RunnerError("outdated", { dbName }));
        },
        // Where the code cannot be loaded now, the next unlocking begins them.
        onKeys: (isLater) =>
          void this.passes.get().then(
            (passes) => (isLater ? passes.soon() : passes.begin()),
            () => undefined,
          ),
        onGone: (deleted) => void this.beginAnew(deleted),
      }),
    };
    const { store, channel } = this.parts;
    this.history = new History(store);
    this.heard$ = channel.messages$.pipe(
      tap((message) => this.hear(message)),
      share(),
    );
    this.signals = new Signals(this.parts, () => this.heard$.subscribe(), signal);
    this.recovery = new Recovery(this.parts, (threadId) => this.signals.touched(threadId), signal);
    this.reads = new Lazy(async () => {
      const { ThreadReads } = await loaded(import("./read/reads.js"));
      return new ThreadReads(this.parts, this.history, (threadId) => this.runs.current(threadId));
    });
    this.toolCalls = new Lazy(async () => {
      const { ToolCalls } = await loaded(import("./tool-calls.js"));
      return new ToolCalls(this.parts, this.signals);
    });
    this.recoveries = new Lazy(async () => {
      const { Recoveries } = await loaded(import("./recoveries.js"));
      return new Recoveries(this.parts, this.history, this.signals);
    });
    this.outbox = new Lazy(async () => {
      const { Outbox } = await loaded(import("./outbox.js"));
      return new Outbox(store, this.history, this.signals, (holder) => this.recovery.watch(holder));
    });
    this.passes = new Lazy(async () => {
      const { Passes } = await loaded(import("../storage/encryption/passes.js"));
      return new Passes(async () => (await store.encryptRest?.(signal)) === true, clock, signal);
    });
    this.isLimited = areLimits(limits);
    this.retention = new Lazy(async () => {
      const { Retention } = await loaded(import("./keep/retention.js"));
      const isUsed = (threadId: string): boolean => this.runs.current(threadId) !== undefined;
      return new Retention(this.parts, this.history, this.signals, limits, isUsed, this.evicted$, signal);
    });
    signal.addEventListener("abort", () => this.evicted$.complete(), { once: true });
    this.repacking = new Repacking(this.parts, () => this.runs.all().length === 0, signal);
    this.signals.anew$.pipe(filter((error) => error !== undefined)).subscribe(this.deleted$);
    this.threadChanges$ = threadChanges(this.signals, (threadId) => threadSummary(store, threadId, this.isOver));
    // An idle host listens to settle the runs of hosts that die. In one process none dies alone, so a runner listens
    // only while it has a run or a reader, and a server may make one for each request.
    if (!isOneProcess) this.heard$.subscribe();
    // The life lock is held before anything is claimed, so that any host that reads this host's id can watch it.
    this.ready = this.locks.hold(hostLifeLockName(dbName, hostId));
    this.runs = new ThreadRuns(
      {
        parts: this.parts,
        history: this.history,
        recovery: this.recovery,
        onConcurrentRun,
        events: {
          started: (run) => {
            this.repacking.yieldToRun();
            this.signals.told(run, "started");
          },
          advanced: (run, seq) => {
            this.parts.elsewhere.advanced?.(run.threadId);
            this.signals.advanced(run, seq);
          },
          ended: (run) => this.left(run),
        },
      },
      this.ready,
      options.maxQueuedRuns ?? 16,
    );
    this.stopping = new Stopping(this.parts, this.recovery, this.runs, signal);
  }

  /** See `LocalAgentRunner.opened`. */
  get opened(): Promise<void> {
    if (this.outdated.aborted) return Promise.reject(this.outdated.reason);
    if (this.closing !== undefined) return Promise.reject(new RunnerError("closed", { dbName: this.parts.dbName }));
    this.opening ??= this.ready
      .then(() => this.recovery.start())
      .then(() => {
        // Deletes what a host left when it died during a deletion; if this fails, the next host to open the store tries
        // again.
        this.parts.store.sweep().catch(() => undefined);
      })
      .catch((error: unknown) => {
        this.opening = undefined;
        throw error;
      });
    return this.opening;
  }

  /** Aborts when this runner is closed. */
  get closedSignal(): AbortSignal {
    return this.closed.signal;
  }

  /** @throws RunnerError `closed` */
  refuseIfClosing(): void {
    if (this.closing !== undefined) throw new RunnerError("closed", { dbName: this.parts.dbName });
  }

  /** The run is over but still live in the log, because its end cannot be written now. */
  readonly isOver = (threadId: string, run: Pick<RunRow, "runId" | "runIndex">): boolean =>
    this.recovery.owes(threadId, run) !== undefined;

  /** See `LocalAgentRunner.deleteThread`. */
  async deleteThread(threadId: string): Promise<boolean> {
    const end = (): Promise<void> => this.stopping.endThread(threadId);
    // A run that is claiming or queued would recreate the thread. One that begins while the code is loaded stays.
    const [retention, asked] = await Promise.all([
      this.retention.get(),
      // An invalid head must not prevent the deletion.
      this.parts.store.head(threadId).catch(() => undefined),
      // What waits would start when the live run has ended.
      this.runs.current(threadId) &&
        Promise.all([this.parts.store.clearWaiting(threadId).catch(() => undefined), end()]),
    ]);
    return retention.deleteEnded(threadId, asked, end);
  }

  /** See `LocalAgentRunner.clearThreads`. */
  async clearThreads(): Promise<number> {
    return (await this.retention.get()).clear((threadId) => this.deleteThread(threadId));
  }

  /** What readers of threads need. @throws RunnerError `closed` */
  attachContext(): AttachContext {
    if (this.closed.signal.aborted) throw new RunnerError("closed", { dbName: this.parts.dbName });
    return {
      parts: this.parts,
      history: this.history,
      recovery: this.recovery,
      liveRun: (threadId) => this.runs.current(threadId),
      bell: (threadId) => this.signals.bellOf(threadId),
      closed: this.closed.signal,
      caughtUp: () => this.runs.preload(),
    };
  }

  /**
   * The parts of another host on the same log, in this context: with an id, and a channel, of its own.
   *
   * @param takesOver the broken runs of other devices with which this host goes on
   */
  hostBeside(takesOver: RunnerParts["recovery"]["takesOver"]): RunnerParts {
    const { makeId, dbName } = this.parts;
    const hostId = makeId();
    return {
      ...this.parts,
      hostId,
      channel: hostChannel(this.openChannel(hostChannelName(dbName)), hostId),
      recovery:
        takesOver === undefined ? { added: () => undefined } : Object.assign(this.parts.recovery, { takesOver }),
      elsewhere: { used: new Set() },
    };
  }

  /** Hears other hosts for as long as the run goes on. */
  hearDuring(run: LiveRun): void {
    const hearing = this.heard$.subscribe();
    void run.ended.then(() => hearing.unsubscribe());
  }

  /** Settles this host's live runs as stopped, then releases everything. */
  close(): Promise<void> {
    this.closing ??= this.closeNow();
    return this.closing;
  }

  /** Releases everything at once, as if the context ended: the next host settles its live runs as broken. */
  letGo(): void {
    this.closing ??= Promise.resolve();
    void this.parts.store.close();
    // A run whose lock is gone asks its agent to end.
    this.locks.releaseAll();
    this.closed.abort();
    this.parts.channel.close();
  }

  private async closeNow(): Promise<void> {
    await this.stopping.endAll("stopped");
    await this.parts.elsewhere.leave?.();
    await (await this.retention.begun?.catch(() => undefined))?.idle();
    this.closed.abort();
    this.parts.channel.close();
    await (await this.ready).release();
    await this.parts.store.close();
  }

  private hear(message: LockMessage): void {
    const { type, threadId, from } = message;
    if (type === "started") this.recovery.watch(from);
    // It may have been that of a host without the key.
    if (type === "ended") this.passes.made?.again();
    const own = this.runs.current(threadId);
    if (type === "claim" && own !== undefined && own.is.is !== "claiming" && own.is.is !== "queued") {
      this.parts.channel.post({ type: isBusy(own.is) ? "refused" : "wait", threadId, runId: own.runId });
    } else if (type === "stop" && own?.inLog !== undefined && isOf(message, own.inLog)) {
      own.heed(message.supersede === true ? "superseded" : "stopped");
      this.parts.channel.post({ type: "stop-ack", threadId, runId: own.runId });
    } else if (type === "started" || type === "ended" || type === "changed") {
      this.signals.touched(threadId, message.deleted === true, message.waiting === true);
    }
  }

  /** All readers read again: the store's database may have been replaced. */
  private async beginAnew(deleted: boolean): Promise<void> {
    // A new database starts new epochs: what is cached would pass for valid.
    this.history.forgetAll();
    const { clock } = this.parts;
    const { signal } = this.closed;
    // Waits until the deletion is done: while a browser clears a site's data, no database can be opened.
    let hasNone: boolean | undefined;
    for (let pause = REOPEN_MS; hasNone === undefined && pause <= REOPEN_MAX_MS && !signal.aborted; pause *= 2) {
      hasNone = await hasNoThreads(this.parts.store).catch(() => undefined);
      if (hasNone === undefined) await clock.after(pause, signal);
    }
    const isGone = deleted || hasNone === true;
    this.signals.beganAnew(isGone ? new RunnerError("storage-deleted", { dbName: this.parts.dbName }) : undefined);
  }

  private left(run: LiveRun): void {
    // The holder announces a run that was found in the log.
    if (run.inLog === undefined || run.is.is === "refused") return;
    this.signals.told(run, "ended");
    // Where the code cannot be loaded now, the next run's end tries again.
    if (this.isLimited)
      void this.retention.get().then(
        (retention) => retention.enforce(run.threadId),
        () => undefined,
      );
    this.repacking.ended(run.inLog, run.feed.published, run.feed.publishedSeq + 1);
  }
}

/** A host that has not read the log does not know the run's index. */
const isOf = (message: LockMessage, { runId, runIndex }: RunRef): boolean =>
  message.runId === runId && (message.runIndex ?? runIndex) === runIndex;
