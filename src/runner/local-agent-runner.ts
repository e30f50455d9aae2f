import type { BaseEvent, Message, State } from "@ag-ui/client";
import { Observable } from "rxjs";
import { systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import type { HeldLock } from "../platform/locks.js";
import { hostChannelName, hostLifeLockName } from "../platform/names.js";
import type {
  AgentRunner,
  AgentRunnerConnectRequest,
  AgentRunnerIsRunningRequest,
  AgentRunnerRunRequest,
  AgentRunnerStopRequest,
} from "../run/contract.js";
import { RunnerError } from "../run/errors.js";
import { isBusy } from "../run/life.js";
import { unpackChunk, type PlacedEvent } from "../run/pack.js";
import { hostChannel, type LockMessage } from "../lock/protocol.js";
import { eventsOfFrame } from "../wire/frames.js";
import type { Frame, RunListQuery, RunSummary, ThreadChange, ThreadListQuery, ThreadSummary } from "../wire/shapes.js";
import { ownEvent } from "./accept.js";
import { isRunningAgent } from "./agent-pipeline.js";
import { attach, toLiveRunInfo, type AttachContext, type AttachOptions } from "./attach.js";
import { checkId, checkInput, checkMessages, fingerprint } from "./checks.js";
import type { LiveRunRequest } from "./fence.js";
import { History } from "./history.js";
import type { LiveRun } from "./live-run.js";
import { checkOptions, type LocalAgentRunnerOptions, type RunnerPreset } from "./options.js";
import type { RunnerParts } from "./parts.js";
import { ThreadReads, type RunEventsQuery, type RunName } from "./reads.js";
import { Recovery } from "./recovery.js";
import { Retention, type Eviction } from "./retention.js";
import { Signals } from "./signals.js";
import { Stopping } from "./stopping.js";
import { tailRun } from "./tail.js";
import { ThreadRuns } from "./thread-runs.js";
import { listThreads, threadChanges, threadSummary } from "./threads.js";

/**
 * Runs agents and keeps their threads in a store. What it hands out is in the store first; each thread has one live run
 * over all runners of the store. {@link IndexedDBAgentRunner} and {@link InMemoryAgentRunner} choose the store.
 */
export class LocalAgentRunner implements AgentRunner {
  /** This runner as other hosts see it; new with each runner. */
  readonly hostId: string;
  readonly dbName: string;
  /** What the limits cost. */
  readonly evicted$: Observable<Eviction>;

  private readonly parts: RunnerParts;
  private readonly history: History;
  private readonly recovery: Recovery;
  private readonly signals: Signals;
  private readonly runs: ThreadRuns;
  private readonly stopping: Stopping;
  private readonly reads: ThreadReads;
  private readonly retention: Retention;
  private readonly deleteStore: () => Promise<void>;
  private readonly threadChanges$: Observable<ThreadChange>;
  private readonly closed = new AbortController();
  private readonly ready: Promise<HeldLock>;
  private opening: Promise<void> | undefined;
  private closing: Promise<void> | undefined;

  protected constructor(preset: RunnerPreset, options: LocalAgentRunnerOptions) {
    const { dbName, locks, openChannel, openStore, deleteStore } = preset;
    const { clock = systemClock, makeId = randomId, maxRunMs, onConcurrentRun = "throw", limits = {} } = options;
    checkOptions(options);
    this.hostId = makeId();
    this.dbName = dbName;
    this.deleteStore = deleteStore;
    const { signal } = this.closed;
    this.parts = {
      dbName,
      hostId: this.hostId,
      locks,
      clock,
      makeId,
      stopGraceMs: options.stopGraceMs ?? 2_000,
      ...(maxRunMs !== undefined && { maxRunMs }),
      channel: hostChannel(openChannel(hostChannelName(dbName)), this.hostId),
      store: openStore(clock, async (deleted) => {
        await this.settleAll();
        // Its epochs begin anew, so what is remembered would be taken for true.
        if (deleted) this.history.forgetAll();
      }),
    };
    const { store, channel } = this.parts;
    this.history = new History(store);
    this.recovery = new Recovery(this.parts, signal);
    this.signals = new Signals(this.parts, signal);
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
    this.threadChanges$ = threadChanges(this.signals.changed$, (threadId) => threadSummary(store, threadId));
    const hearing = channel.messages$.subscribe((message) => this.hear(message));
    signal.addEventListener("abort", () => hearing.unsubscribe(), { once: true });
    // The life lock stands before anything is claimed, so that whoever reads this host's id can watch it.
    this.ready = locks.hold(hostLifeLockName(dbName, this.hostId));
    this.runs = new ThreadRuns(
      {
        parts: this.parts,
        history: this.history,
        recovery: this.recovery,
        onConcurrentRun,
        events: {
          started: (run) => this.signals.told(run, "started"),
          advanced: (run, seq) => this.signals.advanced(run, seq),
          ended: (run) => this.left(run),
        },
      },
      this.ready,
      options.maxQueuedRuns ?? 16,
    );
    this.stopping = new Stopping(this.parts, this.recovery, this.runs, this.signals, signal);
    this.opened.catch(() => undefined);
  }

  /**
   * Resolves when the store is open and the runs of dead hosts are being settled; rejects with why it is not. Whoever
   * asks after that lets it be tried again: another tab may have let go of the database in between.
   */
  get opened(): Promise<void> {
    this.opening ??= this.ready
      .then(() => this.recovery.start())
      .then(() => {
        // What a host left behind that ended while it deleted; whoever opens the store next tries again.
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
   * @param request `agent` runs as it is given: pass a clone where it is shared
   * @returns the run's events from its first, for each subscriber, each committed before it is handed out; completes
   *   when the run is settled and the thread is free. Unsubscribing does not stop the run. Errors with RunnerError
   *   `thread-busy` (a run of another host), `run-exists`, `cancelled` (a queued run), `deleted` (for who subscribes
   *   later than a limit allows), or a storage code.
   * @throws RunnerError `thread-busy` where this runner has a live run of the thread; `invalid-input` (also for an agent
   *   that is running already); `closed`
   */
  run(request: AgentRunnerRunRequest): Observable<BaseEvent> {
    const run = this.start({
      threadId: request.threadId,
      agentId: request.agent.agentId,
      agent: request.agent,
      input: request.input,
      persistedInputMessages: request.persistedInputMessages,
    });
    // Who never subscribes is not told of a refusal: that is no unhandled rejection.
    return new Observable<BaseEvent>((subscriber) =>
      pump(subscriber, async (signal) => {
        const ref = await run.started;
        const chunks = tailRun(this.parts, ref, run.feed, -1, signal);
        for (let next = await chunks.next(); ; next = await chunks.next()) {
          if (next.done !== true) {
            for (const { event } of unpackChunk(next.value)) subscriber.next(ownEvent(event));
          } else if (next.value === undefined && !signal.aborted) {
            throw new RunnerError("deleted", { threadId: ref.threadId, runId: ref.runId });
          } else return;
        }
      }),
    );
  }

  /**
   * The thread's history as a plain AG-UI reader gets it (compacted events), then its live run, then complete; nothing
   * for an unknown thread. Unsubscribing does not stop the run.
   */
  connect(request: AgentRunnerConnectRequest): Observable<BaseEvent> {
    checkId("threadId", request.threadId);
    return new Observable<BaseEvent>((subscriber) =>
      pump(subscriber, async (signal) => {
        for await (const frame of this.attach({ threadId: request.threadId, replay: "events" }, signal)) {
          for (const event of eventsOfFrame(frame)) subscriber.next(ownEvent(event));
        }
      }),
    );
  }

  async isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean> {
    checkId("threadId", request.threadId);
    const own = this.runs.current(request.threadId);
    if (own !== undefined && isBusy(own.is)) return true;
    return (await this.parts.store.head(request.threadId))?.live !== undefined;
  }

  /** Never waits for the end of the run. The request survives power loss. A queued run is stopped by its `runId` only. */
  stop({ threadId, runId }: AgentRunnerStopRequest): Promise<boolean> {
    return this.stopping.stop(threadId, runId);
  }

  /**
   * Starts a run as {@link run} does, for callers that want chunks: `started` tells where it stands in the log.
   *
   * @throws RunnerError as {@link run}
   */
  start(request: LiveRunRequest): LiveRun {
    if (this.closing !== undefined) throw new RunnerError("closed", { dbName: this.dbName });
    checkId("threadId", request.threadId);
    const persistedInputMessages = request.persistedInputMessages && checkMessages(request.persistedInputMessages);
    const input = checkInput(request.input);
    if (isRunningAgent(request.agent) && this.runs.current(request.threadId) === undefined) {
      throw new RunnerError(
        "invalid-input",
        { field: "agent" },
        { message: "The agent is running already: pass a clone" },
      );
    }
    return this.runs.start({ ...request, input, fingerprint: fingerprint(input), persistedInputMessages });
  }

  /** Frames of one run, from its first event to its settled end. */
  async *runFrames(run: LiveRun, signal: AbortSignal): AsyncGenerator<Frame, void> {
    const ref = await run.started;
    yield { type: "run", run: toLiveRunInfo(ref) };
    const { runIndex, runId } = ref;
    const chunks = tailRun(this.parts, ref, run.feed, -1, signal);
    for (;;) {
      const next = await chunks.next();
      if (next.done !== true) yield { type: "chunk", chunk: next.value };
      else {
        if (next.value !== undefined) yield { type: "settled", runIndex, runId, status: next.value };
        yield { type: "end" };
        return;
      }
    }
  }

  /**
   * Everything that a reader of a thread misses, then the live run, then each later one where it follows.
   *
   * @param signal ends the reading, never a run
   */
  attach(options: AttachOptions, signal: AbortSignal): AsyncGenerator<Frame, void> {
    checkId("threadId", options.threadId);
    return attach(this.attachContext(), options, AbortSignal.any([signal, this.closed.signal]));
  }

  private attachContext(): AttachContext {
    if (this.closed.signal.aborted) throw new RunnerError("closed", { dbName: this.dbName });
    return {
      parts: this.parts,
      history: this.history,
      recovery: this.recovery,
      liveRun: (threadId) => this.runs.current(threadId),
      bell: (threadId) => this.signals.bellOf(threadId),
    };
  }

  /** Threads, newest first. */
  listThreads(query: ThreadListQuery = {}): Promise<readonly ThreadSummary[]> {
    return listThreads(this.parts.store, query);
  }

  /** Changes of the list of threads, made in whichever host. Begins with the next change. */
  watchThreads(): Observable<ThreadChange> {
    return this.threadChanges$;
  }

  /** A thread's runs, newest first, those of other branches included. */
  listRuns(threadId: string, query: RunListQuery = {}): Promise<readonly RunSummary[]> {
    return this.reads.listRuns(threadId, query);
  }

  /**
   * A run by its id; undefined where there is none.
   *
   * Errors: RunnerError `invalid-input` where several threads have a run of this id and `threadId` names none.
   */
  getRun(runId: string, name: RunName = {}): Promise<RunSummary | undefined> {
    return this.reads.getRun(runId, name);
  }

  /**
   * The committed events of a run with their sequence numbers and arrival times (ms since the Unix epoch), each as it was
   * recorded; none for an unknown run, or one that a limit cut off. Errors as {@link getRun}.
   */
  getRunEvents(runId: string, query: RunEventsQuery = {}): Promise<readonly PlacedEvent[]> {
    return this.reads.getRunEvents(runId, query);
  }

  /** The messages of the active path, the live run's so far included; none for an unknown thread. */
  getThreadMessages(threadId: string): Promise<Message[]> {
    return this.reads.getThreadMessages(threadId);
  }

  /** The compacted events of the active path up to now; none for an unknown thread. */
  getThreadEvents(threadId: string): Promise<BaseEvent[]> {
    return this.reads.getThreadEvents(threadId);
  }

  /** The state of the active path, as the live run has changed it so far; undefined for an unknown thread. */
  getThreadState(threadId: string): Promise<State | undefined> {
    return this.reads.getThreadState(threadId);
  }

  /**
   * Deletes every thread, pinned ones too. Live runs are stopped first, those of other hosts as well.
   *
   * @returns how many were deleted. Errors: RunnerError `thread-busy` where a run could not be stopped in time
   */
  clearThreads(): Promise<number> {
    return this.retention.clear((threadId) => this.stopping.endThread(threadId));
  }

  /** Settles this host's live runs as stopped, then lets go of everything. Refuses further calls. Deletes nothing. */
  close(): Promise<void> {
    this.closing ??= this.closeNow();
    return this.closing;
  }

  /** Closes this runner and deletes everything in its store, what other runners put there included. */
  async destroy(): Promise<void> {
    await this.close();
    await this.deleteStore();
  }

  /** Calls `then` when this runner has let go of everything. */
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

  /** Settles this host's live runs as stopped, within `stopGraceMs`. */
  settleAll(): Promise<void> {
    return this.stopping.endAll();
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

  private left(run: LiveRun): void {
    // A run that was found in the log is told of by its holder.
    if (run.inLog === undefined || run.is.is === "refused") return;
    this.signals.told(run, "ended");
    this.retention.enforce(run.threadId);
  }
}

/** Runs `work` for one subscriber; its unsubscribing aborts the work. */
function pump(
  subscriber: { readonly complete: () => void; readonly error: (error: unknown) => void },
  work: (signal: AbortSignal) => Promise<void>,
): () => void {
  const reading = new AbortController();
  work(reading.signal).then(
    () => subscriber.complete(),
    (error: unknown) => subscriber.error(error),
  );
  return () => reading.abort();
}
