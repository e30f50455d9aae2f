import type { BaseEvent } from "@ag-ui/client";
import { filter, mergeMap, share, tap, type Observable } from "rxjs";
import { sharedController } from "../platform/abort.js";
import { systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import type { HeldLock } from "../platform/locks.js";
import { consoleLogger, safeLogger, warnOnce, type Logger } from "../platform/log.js";
import { releasableLocks, type ReleasableLocks } from "../platform/releasable-locks.js";
import { hostChannelName, hostLifeLockName } from "../platform/names.js";
import type {
  AgentRunner,
  AgentRunnerIsRunningRequest,
  AgentRunnerStopRequest,
  ConnectedEvents,
  ThreadConnectRequest,
  ThreadRunRequest,
} from "../run/contract.js";
import { invalidInput, RunnerError } from "../run/errors.js";
import { LeftOut } from "../run/input-shape.js";
import { isBusy } from "../run/life.js";
import type { Cursor, ThreadUpdate } from "../run/types.js";
import { hostChannel, type LockMessage } from "../lock/protocol.js";
import { lostTo, type Lost } from "../wire/protocol-versions.js";
import { checkAttach } from "../wire/checks.js";
import type { RunStore } from "../storage/run-store.js";
import type { Durability, Frame, ThreadChange, ThreadSummary } from "../wire/shapes.js";
import { isRunningAgent } from "./agent/agent-pipeline.js";
import { attach, type AttachContext, type AttachOptions } from "./read/attach.js";
import { checkId, checkInput, checkMessageId, checkMessages, checkThreadUpdate, fingerprint } from "./checks.js";
import { checkRequestWeight, eventLimits } from "./agent/event-limits.js";
import type { Asked } from "./history/baseline.js";
import type { LiveRunRequest } from "./claim/fence.js";
import { History } from "./history/history.js";
import type { LiveRun } from "./live/live-run.js";
import { connectsForOlder, runsForOlder, streamFor } from "./older-callers.js";
import { checkOptions, type LocalAgentRunnerOptions, type RunnerPreset } from "./options.js";
import type { RunnerParts } from "./parts.js";
import { ThreadReads } from "./read/reads.js";
import { Recovery } from "./claim/recovery.js";
import { Repacking } from "./keep/repacking.js";
import { Retention, type Eviction } from "./keep/retention.js";
import { eventsOfFrames, eventsOfRun, framesOfRecorded, framesOfRun } from "./read/run-streams.js";
import { Signals } from "./live/signals.js";
import { Stopping } from "./live/stopping.js";
import { ThreadRuns } from "./live/thread-runs.js";
import { ThreadReader } from "./thread-reader.js";
import { hasNoThreads, isEmpty, threadChanges, threadSummary, updateThread } from "./read/threads.js";

/** Backoff after a failed attempt to reopen the store: first and longest wait (ms). */
const REOPEN_MS = 25;
const REOPEN_MAX_MS = 2_000;

/**
 * Runs agents and keeps their threads in a store. Events are in the store before they are handed out; each thread has
 * one live run across all runners of the store. {@link IndexedDBAgentRunner} and {@link InMemoryAgentRunner} choose the
 * store.
 */
export abstract class LocalAgentRunner extends ThreadReader implements AgentRunner {
  /** Identifies this runner to other hosts; new with each runner. */
  readonly hostId: string;
  readonly dbName: string;
  readonly durability: Durability;
  /** Aborts, with a RunnerError `outdated`, when a newer build has taken the database over. */
  readonly outdated: AbortSignal;
  /** Emits a RunnerError `storage-deleted` when the database was deleted. */
  readonly deleted$: Observable<RunnerError>;
  /** Emits what the limits removed. */
  readonly evicted$: Observable<Eviction>;

  private readonly parts: RunnerParts;
  /**
   * Called with what callers of older protocol versions cannot be given.
   *
   * @internal
   */
  protected readonly lost: Lost;
  private readonly warnOnce: Logger["warn"];
  private readonly history: History;
  private readonly recovery: Recovery;
  private readonly signals: Signals;
  /** Messages of other hosts, through one shared subscription. */
  private readonly heard$: Observable<LockMessage>;
  private readonly runs: ThreadRuns;
  private readonly stopping: Stopping;
  /** @internal */
  protected readonly reads: ThreadReads;
  private readonly retention: Retention;
  private readonly repacking: Repacking;
  private readonly deleteStore: () => Promise<void>;
  /** @internal */
  protected readonly threadChanges$: Observable<ThreadChange>;
  private readonly locks: ReleasableLocks;
  private readonly closed = sharedController();
  private readonly ready: Promise<HeldLock>;
  private opening: Promise<void> | undefined;
  private closing: Promise<void> | undefined;

  /** @internal */
  protected constructor(preset: RunnerPreset, options: LocalAgentRunnerOptions) {
    const { dbName, durability, locks, isOneProcess = false, openChannel, openStore, deleteStore } = preset;
    const { clock = systemClock, makeId = randomId, maxRunMs, onConcurrentRun = "throw", limits = {} } = options;
    const { atFailurePoint, logger = consoleLogger } = options;
    super();
    checkOptions(options);
    this.hostId = makeId();
    this.dbName = dbName;
    this.durability = durability;
    this.locks = releasableLocks(locks);
    const outdated = new AbortController();
    this.outdated = outdated.signal;
    this.deleteStore = deleteStore;
    const { signal } = this.closed;
    this.parts = {
      dbName,
      hostId: this.hostId,
      locks: this.locks,
      isOneProcess,
      clock,
      makeId,
      logger: safeLogger(logger),
      recordInput: [...(options.recordInput ?? [])],
      stopGraceMs: options.stopGraceMs ?? 2_000,
      ...(maxRunMs !== undefined && { maxRunMs }),
      eventLimits: eventLimits(options.eventLimits),
      ...(atFailurePoint !== undefined && { reached: atFailurePoint }),
      channel: hostChannel(openChannel(hostChannelName(dbName)), this.hostId),
      store: openStore({
        onOutdated: async (deleted) => {
          // Nobody asked these runs to end: they are broken, not stopped.
          await this.settleAll("broken");
          if (!deleted) outdated.abort(new RunnerError("outdated", { dbName }));
        },
        onGone: (deleted) => void this.beginAnew(deleted),
      }),
    };
    const { store, channel } = this.parts;
    this.lost = lostTo(this.parts.logger);
    this.warnOnce = warnOnce(this.parts.logger);
    this.history = new History(store);
    this.heard$ = channel.messages$.pipe(
      tap((message) => this.hear(message)),
      share(),
    );
    this.signals = new Signals(this.parts, () => this.heard$.subscribe(), signal);
    this.recovery = new Recovery(this.parts, (threadId) => this.signals.touched(threadId), signal);
    this.reads = new ThreadReads(this.parts, this.history, (threadId) => this.runs.current(threadId));
    this.retention = new Retention(
      this.parts,
      this.history,
      this.signals,
      limits,
      (threadId) => this.runs.current(threadId) !== undefined,
      signal,
    );
    this.evicted$ = this.retention.evicted$;
    this.repacking = new Repacking(this.parts, () => this.runs.all().length === 0, signal);
    this.deleted$ = this.signals.anew$.pipe(filter((error) => error !== undefined));
    this.threadChanges$ = threadChanges(this.signals, (threadId) => threadSummary(store, threadId, this.isOver));
    // An idle host listens to settle the runs of hosts that die. In one process none dies alone, so a runner listens
    // only while it has a run or a reader, and a server may make one for each request.
    if (!isOneProcess) this.heard$.subscribe();
    // The life lock is held before anything is claimed, so that any host that reads this host's id can watch it.
    this.ready = this.locks.hold(hostLifeLockName(dbName, this.hostId));
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
          advanced: (run, seq) => this.signals.advanced(run, seq),
          ended: (run) => this.left(run),
        },
      },
      this.ready,
      options.maxQueuedRuns ?? 16,
    );
    this.stopping = new Stopping(this.parts, this.recovery, this.runs, signal);
    this.opened.catch(() => undefined);
  }

  /**
   * Resolves when the store is open and the runs of dead hosts are being settled; rejects with the reason if it cannot
   * be opened. Reading it again retries: another tab may have released the database in between.
   */
  get opened(): Promise<void> {
    if (this.outdated.aborted) return Promise.reject(this.outdated.reason);
    if (this.closing !== undefined) return Promise.reject(new RunnerError("closed", { dbName: this.dbName }));
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

  /**
   * Claims the thread and starts the agent at the call.
   *
   * @param request `agent` itself is run: pass a clone where it is shared
   * @returns the run's events from the first one, for each subscriber, each committed before it is handed out;
   *   completes when the run is settled and the thread is free. Unsubscribing does not stop the run. Errors with
   *   RunnerError `thread-busy` (a run of another host), `run-exists`, `cancelled` (a queued run), `deleted` (for those
   *   who subscribe later than a limit allows), or a storage code.
   * @throws RunnerError `thread-busy` where this runner has a live run of the thread; `invalid-input` (also for an
   *   agent that is running already); `closed`
   */
  run(request: ThreadRunRequest): Observable<BaseEvent> {
    const run = this.start({
      threadId: request.threadId,
      agentId: request.agent.agentId,
      agent: request.agent,
      input: request.input,
      persistedInputMessages: request.persistedInputMessages,
      branchBefore: request.branchBefore,
    });
    return streamFor(runsForOlder(request), eventsOfRun(this.attachContext(), run, request), this.lost);
  }

  /**
   * The thread's history as compacted events, then its live run, then completes; empty for an unknown thread.
   * Unsubscribing does not stop the run. The request may ask for less, or for later runs too.
   *
   * Errors: RunnerError `deleted` or `fenced` where the live run is deleted, or the thread continues without it, before
   * its end was handed out (connect again); or the reason why the end of the run cannot be written.
   * @throws RunnerError `invalid-input`
   */
  connect(request: ThreadConnectRequest): Observable<BaseEvent> {
    const events$ = this.connectWithCursor(request).pipe(mergeMap(({ events }) => events));
    return streamFor(connectsForOlder(request), events$, this.lost);
  }

  /** As {@link connect}, for readers that reconnect: the last cursor they keep is the `after` of their next connect. */
  connectWithCursor(request: ThreadConnectRequest): Observable<ConnectedEvents> {
    const { threadId, after, replay = "events", follow = false } = checkAttach(request);
    const options: AttachOptions = { threadId, replay, follow, ...(after !== undefined && { after }) };
    return eventsOfFrames(threadId, (signal) => this.attach(options, signal));
  }

  async isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean> {
    checkId("threadId", request.threadId);
    const own = this.runs.current(request.threadId);
    if (own !== undefined && isBusy(own.is)) return true;
    const live = (await this.parts.store.head(request.threadId))?.live;
    return live !== undefined && !this.isOver(request.threadId, live.runId);
  }

  /** Never waits for the run's end. The request survives power loss. A queued run is stopped by its `runId` only. */
  stop({ threadId, runId }: AgentRunnerStopRequest): Promise<boolean> {
    return this.stopping.stop(threadId, runId);
  }

  /**
   * Starts a run as {@link run} does, for callers that want chunks: `started` gives its place in the log.
   *
   * @throws RunnerError as {@link run}
   * @internal
   */
  start(request: LiveRunRequest): LiveRun {
    if (this.closing !== undefined) throw new RunnerError("closed", { dbName: this.dbName });
    checkId("threadId", request.threadId);
    const weighed = checkRequestWeight(request.input, request.persistedInputMessages, this.parts.eventLimits);
    if (request.branchBefore !== undefined) checkMessageId("branchBefore", request.branchBefore);
    const persistedInputMessages = weighed.persisted && checkMessages(weighed.persisted);
    const leftOut = new LeftOut();
    const input = checkInput(weighed.input, leftOut.note);
    leftOut.tell(this.warnOnce);
    if (isRunningAgent(request.agent) && this.runs.current(request.threadId) === undefined) {
      throw invalidInput("agent", "The agent is running already: pass a clone");
    }
    const run = this.runs.start({ ...request, input, fingerprint: fingerprint(input), persistedInputMessages });
    const hearing = this.heard$.subscribe();
    void run.ended.then(() => hearing.unsubscribe());
    return run;
  }

  /**
   * Frames of one run, from its first event to its settled end, for a caller who made this request.
   *
   * @internal
   */
  runFrames(run: LiveRun, asked: Asked, signal: AbortSignal): AsyncGenerator<Frame, void> {
    return framesOfRun(this.attachContext(), run, asked, signal);
  }

  /**
   * Frames of everything that a reader lacks, then of the live run and, with `follow`, of each later run.
   *
   * @param signal ends the reading, never a run
   * @internal
   */
  attach(options: AttachOptions, signal: AbortSignal): AsyncGenerator<Frame, void> {
    checkId("threadId", options.threadId);
    return attach(this.attachContext(), options, signal);
  }

  /**
   * Frames of one run in the log, on any branch, from its first event or from `after` to its settled end.
   *
   * @internal
   */
  attachRun(
    run: { readonly threadId: string; readonly runId: string; readonly after?: Cursor },
    signal: AbortSignal,
  ): AsyncGenerator<Frame, void> {
    return framesOfRecorded(this.attachContext(), run, signal);
  }

  /**
   * The limits of every run of this runner.
   *
   * @internal
   */
  get bounds(): Pick<RunnerParts, "stopGraceMs" | "maxRunMs" | "eventLimits"> {
    const { stopGraceMs, maxRunMs, eventLimits: bounds } = this.parts;
    return { stopGraceMs, eventLimits: bounds, ...(maxRunMs !== undefined && { maxRunMs }) };
  }

  /** @internal */
  protected get store(): RunStore {
    return this.parts.store;
  }

  private attachContext(): AttachContext {
    if (this.closed.signal.aborted) throw new RunnerError("closed", { dbName: this.dbName });
    return {
      parts: this.parts,
      history: this.history,
      recovery: this.recovery,
      liveRun: (threadId) => this.runs.current(threadId),
      bell: (threadId) => this.signals.bellOf(threadId),
      closed: this.closed.signal,
    };
  }

  /**
   * Renames, archives or pins a thread, or undoes that; also while a run is live. `updatedAt` stays: a thread keeps its
   * place in the list.
   *
   * @param update what changes. `title`: 1 to 200 characters after trimming
   * @returns the updated thread. Errors: RunnerError `unknown-thread`; `invalid-input`, also for other fields
   */
  async updateThread(threadId: string, update: ThreadUpdate): Promise<ThreadSummary> {
    checkId("threadId", threadId);
    const checked = checkThreadUpdate(update);
    const thread = await updateThread(this.parts.store, threadId, checked, this.isOver);
    if (!isEmpty(checked)) this.signals.changedHere(threadId);
    return thread;
  }

  /**
   * Deletes a thread, even a pinned one. Its live run is stopped first, also one of another host, and so are runs that
   * are queued here.
   *
   * @returns false for an unknown thread. Errors: RunnerError `thread-busy` where a run could not be stopped in time
   */
  async deleteThread(threadId: string): Promise<boolean> {
    checkId("threadId", threadId);
    // A run that is claiming or queued would recreate the thread.
    if (this.runs.current(threadId) !== undefined) await this.stopping.endThread(threadId);
    return this.retention.deleteEnded(threadId, () => this.stopping.endThread(threadId));
  }

  /**
   * Deletes every thread, even pinned ones. Live runs are stopped first, also those of other hosts.
   *
   * @returns how many were deleted. Errors: RunnerError `thread-busy` where a run could not be stopped in time
   */
  clearThreads(): Promise<number> {
    return this.retention.clear((threadId) => this.stopping.endThread(threadId));
  }

  /** Settles this host's live runs as stopped, then releases everything. Refuses further calls. Deletes nothing. */
  close(): Promise<void> {
    this.closing ??= this.closeNow();
    return this.closing;
  }

  /** Closes this runner and deletes everything in its store, including the threads of other runners. */
  async destroy(): Promise<void> {
    await this.close();
    await this.deleteStore();
  }

  /**
   * Calls `then` when this runner is closed.
   *
   * @internal
   */
  protected onClosed(then: () => void): void {
    this.closed.signal.addEventListener("abort", then, { once: true });
  }

  private async closeNow(): Promise<void> {
    await this.settleAll();
    await this.retention.idle();
    this.closed.abort();
    this.parts.channel.close();
    await (await this.ready).release();
    await this.parts.store.close();
  }

  /**
   * Settles this host's live runs, within `stopGraceMs`.
   *
   * @internal
   */
  settleAll(as: "stopped" | "broken" = "stopped"): Promise<void> {
    return this.stopping.endAll(as);
  }

  /**
   * Releases everything at once, as if the context ended: the next host settles its live runs as broken. For a page
   * that the browser freezes, which must not keep locks that others wait for. Refuses further calls.
   *
   * @internal
   */
  letGo(): void {
    this.closing ??= Promise.resolve();
    void this.parts.store.close();
    // A run whose lock is gone asks its agent to end.
    this.locks.releaseAll();
    this.closed.abort();
    this.parts.channel.close();
  }

  private hear(message: LockMessage): void {
    const { type, threadId, runId, from } = message;
    if (type === "started") this.recovery.watch(from);
    const own = this.runs.current(threadId);
    if (type === "claim" && own !== undefined && own.is.is !== "claiming" && own.is.is !== "queued") {
      this.parts.channel.post({ type: isBusy(own.is) ? "refused" : "wait", threadId, runId: own.runId });
    } else if (type === "stop" && own !== undefined && runId === own.runId && own.inLog !== undefined) {
      own.heed(message.supersede === true ? "superseded" : "stopped");
      this.parts.channel.post({ type: "stop-ack", threadId, runId });
    } else if (type === "started" || type === "ended" || type === "changed") this.signals.touched(threadId);
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
      hasNone = await hasNoThreads(this.store).catch(() => undefined);
      if (hasNone === undefined) await clock.after(pause, signal);
    }
    const isGone = deleted || hasNone === true;
    this.signals.beganAnew(isGone ? new RunnerError("storage-deleted", { dbName: this.dbName }) : undefined);
  }

  /** @internal */
  protected readonly isOver = (threadId: string, runId: string): boolean =>
    this.recovery.owes(threadId, runId) !== undefined;

  private left(run: LiveRun): void {
    // The holder announces a run that was found in the log.
    if (run.inLog === undefined || run.is.is === "refused") return;
    this.signals.told(run, "ended");
    this.retention.enforce(run.threadId);
    this.repacking.ended(run.inLog, run.feed.published, run.feed.publishedSeq + 1);
  }
}
