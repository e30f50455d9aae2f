import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import { mergeMap, type Observable } from "rxjs";
import type { Clock } from "../platform/clock.js";
import type { Lazy } from "../platform/lazy.js";
import type { Lives } from "../platform/locks.js";
import { warnOnce, type Logger } from "../platform/log.js";
import { userOf } from "../platform/names.js";
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
import { isAnswer } from "../run/interrupts.js";
import { isBusy } from "../run/life.js";
import { checkKind, OBJECT, TEXT, whole } from "../run/options.js";
import type { Cursor, LockState, ThreadUpdate } from "../run/types.js";
import { lostTo, type Lost } from "../wire/lost.js";
import { checkAttach, checkStop, checkThread } from "../wire/checks.js";
import type {
  Durability,
  Frame,
  ThreadSummary,
  ThreadToolCalls,
  ToolCallAnswer,
  ToolCallClaim,
} from "../wire/shapes.js";
import type { Outbox } from "./outbox.js";
import { runningAgents } from "./agent/running.js";
import { attach, refuseLocked, type AttachContext, type AttachOptions } from "./read/attach.js";
import { checkId, checkInput, checkMessages, checkThreadUpdate, fingerprint } from "./checks.js";
import { checkRequestWeight } from "./agent/event-limits.js";
import type { Asked } from "./history/baseline.js";
import type { LiveRunRequest } from "./request.js";
import type { Recoveries } from "./recoveries.js";
import type { RecoveryPolicy } from "../run/recovery.js";
import { RunnerEngine } from "./engine.js";
import type { Eviction } from "./keep/limits.js";
import type { LiveRun } from "./live/live-run.js";
import { connectsForOlder, runsForOlder, streamFor } from "./older-callers.js";
import type { LocalAgentRunnerOptions, RunnerPreset } from "./options.js";
import type { ElsewhereParts, RunnerParts } from "./parts.js";
import { eventsOfFrames, eventsOfRun, framesOfRecorded, framesOfRun } from "./read/run-streams.js";
import { ThreadReader } from "./thread-reader.js";
import { isEmpty, updateThread } from "./read/threads.js";

/** See {@link LocalAgentRunner.waiting}. */
export interface WaitingThreads {
  readonly list: () => Promise<readonly string[]>;
  readonly changed$: Observable<string>;
  /** No other host can have added any. */
  readonly isOneProcess: boolean;
  readonly clock: Clock;
  readonly closed: AbortSignal;
}

/**
 * Runs agents and keeps their threads in a store. Events are in the store before they are handed out; each thread has
 * one live run across all runners of the store. {@link IndexedDBAgentRunner} and {@link InMemoryAgentRunner} choose the
 * store.
 */
export abstract class LocalAgentRunner extends ThreadReader implements AgentRunner {
  /** Identifies this runner to other hosts; new with each runner. */
  readonly hostId: string;
  readonly dbName: string;
  /** Undefined: none. */
  readonly user: string | undefined;
  readonly durability: Durability;
  /** Aborts, with a RunnerError `outdated`, when a newer build has taken the database over. */
  readonly outdated: AbortSignal;
  /** Emits a RunnerError `storage-deleted` when the database was deleted. */
  readonly deleted$: Observable<RunnerError>;
  /** Emits what the limits removed. */
  readonly evicted$: Observable<Eviction>;

  /** @internal */
  protected readonly engine: RunnerEngine;
  private readonly deleteStore: () => Promise<void>;
  private readonly warnOnce: Logger["warn"];
  /**
   * Called with what callers of older protocol versions cannot be given.
   *
   * @internal
   */
  protected readonly lost: Lost;

  /** @internal */
  protected constructor(preset: RunnerPreset, options: LocalAgentRunnerOptions) {
    checkKind("preset", preset, [OBJECT[0], "a runner's own: make an IndexedDBAgentRunner or an InMemoryAgentRunner"]);
    super();
    this.engine = new RunnerEngine(preset, options);
    const { parts, outdated, deleted$, evicted$ } = this.engine;
    this.hostId = parts.hostId;
    this.dbName = parts.dbName;
    this.user = options.user && userOf(options.user);
    this.durability = preset.durability;
    this.outdated = outdated;
    this.deleted$ = deleted$;
    this.evicted$ = evicted$;
    this.deleteStore = preset.deleteStore;
    this.lost = lostTo(parts.logger);
    this.warnOnce = warnOnce(parts.logger);
    this.opened.catch(() => undefined);
  }

  /**
   * Resolves when the store is open and the runs of dead hosts are being settled; rejects with the reason if it cannot
   * be opened. Reading it again retries: another tab may have released the database in between.
   */
  get opened(): Promise<void> {
    return this.engine.opened;
  }

  /**
   * Claims the thread and starts the agent at the call.
   *
   * @param request `agent` itself is run: pass a clone where it is shared
   * @returns the run's events from the first one, for each subscriber, each committed before it is handed out;
   *   completes when the run is settled and the thread is free. Unsubscribing does not stop the run. Errors with
   *   RunnerError `thread-busy` (a run of another host), `run-exists`, `cancelled` (a queued run, or one whose code does
   *   not load), `deleted` (for those who subscribe later than a limit allows), or a storage code.
   * @throws RunnerError `thread-busy` where this runner has a live run of the thread; `invalid-input` (also for an
   *   agent that is running already); `closed`
   */
  run(request: ThreadRunRequest): Observable<BaseEvent> {
    checkKind("request", request, OBJECT);
    checkKind("agent", request.agent, ["run"]);
    const run = this.start({
      threadId: request.threadId,
      agentId: request.agent.agentId,
      agent: request.agent,
      input: request.input,
      persistedInputMessages: request.persistedInputMessages,
      branchBefore: request.branchBefore,
    });
    return streamFor(runsForOlder(request), eventsOfRun(this.engine.attachContext(), run, request), this.lost);
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
    checkThread(request);
    const own = this.engine.runs.current(request.threadId);
    if (own !== undefined && isBusy(own.is)) return true;
    const live = (await this.engine.parts.store.head(request.threadId))?.live;
    return live !== undefined && !this.engine.isOver(request.threadId, live);
  }

  /** Never waits for the run's end. The request survives power loss. A queued run is stopped by its `runId` only. */
  async stop(request: AgentRunnerStopRequest): Promise<boolean> {
    const { threadId, runId } = checkStop(request);
    return this.engine.stopping.stop(threadId, runId);
  }

  /**
   * Starts a run as {@link run} does, for callers that want chunks: `started` gives its place in the log.
   *
   * @throws RunnerError as {@link run}
   * @internal
   */
  start(request: LiveRunRequest): LiveRun {
    const { input, persistedInputMessages } = this.checkRequest(request);
    if (runningAgents.has(request.agent) && this.engine.runs.current(request.threadId) === undefined) {
      throw invalidInput("agent", "The agent is running already: pass a clone");
    }
    const run = this.engine.runs.start({
      ...request,
      input,
      fingerprint: request.asked?.fingerprint ?? fingerprint(input),
      answerId: request.asked === undefined ? this.answerIdOf(request) : request.asked.answerId,
      persistedInputMessages,
    });
    this.engine.hearDuring(run);
    // It may leave calls, and the code that leases them could not be loaded any more when the network is gone.
    if (input.tools.length > 0) this.engine.toolCalls.get().catch(() => undefined);
    return run;
  }

  /** An attempt has an id of its own, whatever the run answers that it goes on with. */
  private answerIdOf({ input, attempt }: LiveRunRequest): string | undefined {
    return isAnswer(input) && attempt === undefined ? this.engine.parts.makeId() : undefined;
  }

  /**
   * What is known of a request's faults before it runs.
   *
   * @returns the input and messages with copies of what the log keeps
   * @throws RunnerError `invalid-input`, `closed`
   * @internal
   */
  checkRequest(
    request: Pick<LiveRunRequest, "threadId" | "input" | "persistedInputMessages" | "branchBefore">,
  ): Pick<LiveRunRequest, "input" | "persistedInputMessages"> {
    this.engine.refuseIfClosing();
    checkId("threadId", request.threadId);
    checkKind("input", request.input, OBJECT);
    const weighed = checkRequestWeight(request.input, request.persistedInputMessages, this.engine.parts.eventLimits);
    // AG-UI lets a message have any string for its id, "" too.
    if (request.branchBefore !== undefined) checkKind("branchBefore", request.branchBefore, TEXT);
    const persisted = weighed.persisted ?? undefined;
    const persistedInputMessages =
      persisted === undefined ? persisted : checkMessages(persisted, "persistedInputMessages");
    const leftOut = new LeftOut();
    const input = checkInput(weighed.input, leftOut.note);
    leftOut.tell(this.warnOnce);
    return { input, persistedInputMessages };
  }

  /**
   * Whether the log has the run that a request asks for. An answer may have the id of the run that asked.
   *
   * @internal
   */
  async hasRun(threadId: string, given: RunAgentInput): Promise<boolean> {
    await this.here(threadId);
    const input = checkInput(given);
    return this.engine.runs.isKnown({ threadId, input, fingerprint: fingerprint(input) });
  }

  /**
   * Whether what is stored can be read; undefined where it is not encrypted. Errors: RunnerError `wrong-key`, or a storage
   * code.
   */
  async lockState(): Promise<LockState | undefined> {
    return this.engine.parts.store.lockState?.();
  }

  /**
   * How often somebody has locked the database in all hosts.
   *
   * @internal
   */
  async locks(): Promise<number> {
    return this.engine.parts.store.locks?.() ?? 0;
  }

  /**
   * The runs that wait for their turn.
   *
   * @internal
   */
  get outbox(): Lazy<Outbox> {
    return this.engine.outbox;
  }

  /**
   * Which threads have waiting runs, for whoever starts them: those of the log, those of later changes, and when to look
   * into the log again. The outbox's code is not needed for it.
   *
   * @internal
   */
  get waiting(): WaitingThreads {
    const { parts, signals, closedSignal } = this.engine;
    const { isOneProcess, clock, store } = parts;
    return {
      isOneProcess,
      clock,
      changed$: signals.waiting$,
      list: () => store.waitingThreads(),
      closed: closedSignal,
    };
  }

  /**
   * Frames of one run, from its first event to its settled end, for a caller who made this request.
   *
   * @internal
   */
  runFrames(run: LiveRun, asked: Asked, signal: AbortSignal): AsyncGenerator<Frame, void> {
    return framesOfRun(this.engine.attachContext(), run, asked, signal);
  }

  /**
   * Frames of everything that a reader lacks, then of the live run and, with `follow`, of each later run.
   *
   * @param signal ends the reading, never a run
   * @internal
   */
  attach(options: AttachOptions, signal: AbortSignal): AsyncGenerator<Frame, void> {
    checkId("threadId", options.threadId);
    return this.attachHere(this.engine.attachContext(), options, signal);
  }

  /**
   * Rejects where {@link attach} fails at once, for whoever cannot wait for the first frame.
   *
   * Errors: RunnerError `locked`, `wrong-key`, `closed`, `offline`, or a storage code
   *
   * @internal
   */
  async mayAttach(threadId: string): Promise<void> {
    const context = this.engine.attachContext();
    await this.here(threadId);
    await refuseLocked(context, threadId);
  }

  private async *attachHere(context: AttachContext, options: AttachOptions, signal: AbortSignal) {
    await this.here(options.threadId);
    yield* attach(context, options, signal);
  }

  /**
   * The calls of front-end tools that a thread's last run left without a result, now and after each change.
   *
   * @param lives where tabs hold their life locks: the end of a tab ends its claims
   * @internal
   */
  async *watchToolCalls(threadId: string, lives: Lives, signal: AbortSignal): AsyncGenerator<ThreadToolCalls, void> {
    checkId("threadId", threadId);
    await this.here(threadId);
    yield* (await this.engine.toolCalls.get()).watch(threadId, lives, signal);
  }

  /** @internal See `ToolCalls`. */
  async claimToolCall(claim: ToolCallClaim, tabId: string): Promise<boolean> {
    return (await this.engine.toolCalls.get()).claim(claim, tabId);
  }

  /** @internal See `ToolCalls`. */
  async answerToolCall(answer: ToolCallAnswer): Promise<void> {
    return (await this.engine.toolCalls.get()).answer(answer);
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
    return framesOfRecorded(this.engine.attachContext(), run, signal);
  }

  /**
   * The limits of every run of this runner.
   *
   * @internal
   */
  get bounds(): Pick<RunnerParts, "stopGraceMs" | "maxRunMs" | "eventLimits"> {
    const { stopGraceMs, maxRunMs, eventLimits: bounds } = this.engine.parts;
    return { stopGraceMs, eventLimits: bounds, ...(maxRunMs !== undefined && { maxRunMs }) };
  }

  /**
   * From now on broken runs go on by themselves, by the policy of their agent; undefined: not those of this agent. For
   * whoever starts the runs that wait.
   *
   * @internal
   */
  recoverBy(policyOf: (agentId: string | undefined) => RecoveryPolicy | undefined): void {
    this.engine.parts.recovery.policyOf = policyOf;
  }

  /**
   * The parts of a host that keeps this runner's log in step with those of other devices, and what its runs ask it. Only
   * this host may start no run.
   *
   * @param takesOver the broken runs of other devices with which this one goes on
   * @internal
   */
  joinDevices(takesOver?: RunnerParts["recovery"]["takesOver"]): {
    readonly parts: RunnerParts;
    readonly elsewhere: ElsewhereParts;
    readonly listChanged: () => void;
  } {
    const { parts, signals } = this.engine;
    return {
      parts: this.engine.hostBeside(takesOver),
      elsewhere: parts.elsewhere,
      listChanged: () => signals.beganAnew(undefined),
    };
  }

  /**
   * Aborts when this runner is closed.
   *
   * @internal
   */
  get closedSignal(): AbortSignal {
    return this.engine.closedSignal;
  }

  /**
   * Whoever asks for a thread that is not here waits for this, then asks the other devices.
   *
   * @internal
   */
  awaitDevices(known: Promise<unknown>): void {
    this.engine.parts.elsewhere.known = known;
  }

  /** @internal */
  recoveries(): Promise<Recoveries> {
    return this.engine.recoveries.get();
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
    await this.here(threadId);
    const thread = await updateThread(this.engine.parts.store, threadId, checked, this.engine.isOver);
    if (!isEmpty(checked)) this.engine.signals.changedHere(threadId);
    return thread;
  }

  /**
   * Takes up another branch: the path to a settled run becomes the active one. Readers that follow get it as a snapshot.
   *
   * @param runIndex tells runs of one id apart (answers may have that of the run that asked). Default: the newest one
   *
   * Errors: RunnerError `unknown-thread`; `invalid-input` for a run that the thread does not have; `thread-busy` while a
   * run is live.
   */
  async activateRun(threadId: string, runId: string, runIndex?: number): Promise<void> {
    checkId("threadId", threadId);
    checkId("runId", runId);
    if (runIndex !== undefined) checkKind("runIndex", runIndex, whole(0, { endless: false }));
    await this.here(threadId);
    const { store } = this.engine.parts;
    await store.readable?.();
    const found = runIndex === undefined ? store.runById(threadId, runId) : store.run(threadId, runIndex);
    const [head, run] = await Promise.all([store.head(threadId), found]);
    if (head === undefined || head.deleted === true) throw new RunnerError("unknown-thread", { threadId });
    if (run?.runId !== runId) throw invalidInput("runId", "The thread has no such run");
    if (!(await store.activate(threadId, run.runIndex))) {
      throw new RunnerError("thread-busy", { threadId, runId: head.live?.runId ?? runId });
    }
    this.engine.signals.changedHere(threadId);
  }

  /**
   * Deletes a thread, even a pinned one. Its live run is stopped first, also one of another host, and so are runs that
   * are queued here.
   *
   * @returns false for an unknown thread. Errors: RunnerError `thread-busy` where a run could not be stopped in time
   */
  async deleteThread(threadId: string): Promise<boolean> {
    checkId("threadId", threadId);
    return this.engine.deleteThread(threadId);
  }

  /**
   * Deletes every thread, even pinned ones. Live runs are stopped first, also those of other hosts.
   *
   * @returns how many were deleted. Errors, after all other threads were deleted: RunnerError `thread-busy` where a run could
   *   not be stopped in time
   */
  clearThreads(): Promise<number> {
    return this.engine.clearThreads();
  }

  /** Settles this host's live runs as stopped, then releases everything. Refuses further calls. Deletes nothing. */
  close(): Promise<void> {
    return this.engine.close();
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
    this.engine.closedSignal.addEventListener("abort", then, { once: true });
  }

  /**
   * Settles this host's live runs, within `stopGraceMs`.
   *
   * @internal
   */
  settleAll(as: "stopped" | "broken" = "stopped"): Promise<void> {
    return this.engine.stopping.endAll(as);
  }

  /**
   * Releases everything at once, as if the context ended: the next host settles its live runs as broken. For a page
   * that the browser freezes, which must not keep locks that others wait for. Refuses further calls.
   *
   * @internal
   */
  letGo(): void {
    this.engine.letGo();
  }
}
