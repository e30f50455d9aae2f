import type { BaseEvent } from "@ag-ui/client";
import { Observable, Subject } from "rxjs";
import { Bell } from "../platform/bell.js";
import { openBroadcastChannel, type OpenChannel } from "../platform/channel.js";
import { systemClock, type Clock } from "../platform/clock.js";
import { randomId, type MakeId } from "../platform/ids.js";
import { defaultLocks, type HeldLock, type Locks } from "../platform/locks.js";
import { DEFAULT_DB_NAME, hostChannelName, hostLifeLockName } from "../platform/names.js";
import type {
  AgentRunner,
  AgentRunnerConnectRequest,
  AgentRunnerIsRunningRequest,
  AgentRunnerRunRequest,
  AgentRunnerStopRequest,
} from "../run/contract.js";
import { RunnerError } from "../run/errors.js";
import { isBusy } from "../run/life.js";
import { unpackEntry } from "../run/pack.js";
import { hostChannel, type LockMessage } from "../lock/protocol.js";
import { deliverStop } from "../lock/stop.js";
import { indexedDBRunStore } from "../storage/indexeddb/indexeddb-run-store.js";
import type { Frame, ThreadChange, ThreadListQuery, ThreadSummary } from "../wire/shapes.js";
import { checkId, checkInput, checkMessages } from "./checks.js";
import { attach, type AttachContext, type AttachOptions } from "./attach.js";
import { History } from "./history.js";
import type { LiveRunRequest } from "./fence.js";
import { LiveRun, type RunRef } from "./live-run.js";
import type { RunnerParts } from "./parts.js";
import { Recovery } from "./recovery.js";
import { tailRun } from "./tail.js";
import { listThreads, threadChanges, threadSummary } from "./threads.js";

export interface IndexedDBAgentRunnerOptions {
  /** Name of the database. All runners of one name, in whichever context, are one. Default "ag-ui-local-runtime". */
  readonly dbName?: string;
  /** How long an agent has to end after it was asked to stop, in ms. Default 2,000. */
  readonly stopGraceMs?: number;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly clock?: Clock;
  readonly makeId?: MakeId;
  readonly openChannel?: OpenChannel;
  readonly locks?: Locks;
}

/** How long a stop of another host's run waits for its acknowledgement beyond the grace, in ms. */
const STOP_ACK_MS = 2_000;
/** How often followers in other hosts are told of committed events, in ms. */
const ADVANCED_EVERY_MS = 20;

/**
 * Runs agents and keeps their threads in IndexedDB. What it hands out is committed first, so it survives the death of
 * the process; each thread has one live run over all runners of the origin with this `dbName`.
 *
 * In Node it works on `fake-indexeddb` (import "fake-indexeddb/auto" first).
 */
export class IndexedDBAgentRunner implements AgentRunner {
  /** This runner as other hosts see it; new with each runner. */
  readonly hostId: string;
  readonly dbName: string;

  private readonly parts: RunnerParts;
  private readonly history: History;
  private readonly recovery: Recovery;
  private readonly live = new Map<string, LiveRun>();
  private readonly bells = new Map<string, { bell: Bell; users: number }>();
  private readonly changed$ = new Subject<string>();
  private readonly threadChanges$ = threadChanges(this.changed$, (threadId) =>
    threadSummary(this.parts.store, threadId),
  );
  private readonly closed = new AbortController();
  private readonly ready: Promise<HeldLock>;
  private readonly advances = new Map<string, LockMessage>();
  private opening: Promise<void> | undefined;
  private closing: Promise<void> | undefined;

  /**
   * @param options see {@link IndexedDBAgentRunnerOptions}
   * @throws RunnerError `insecure-context` where the browser has no Web Locks
   */
  constructor(options: IndexedDBAgentRunnerOptions = {}) {
    const locks = options.locks ?? defaultLocks();
    if (locks === undefined) throw new RunnerError("insecure-context");
    const clock = options.clock ?? systemClock;
    const makeId = options.makeId ?? randomId;
    this.hostId = makeId();
    this.dbName = options.dbName ?? DEFAULT_DB_NAME;
    this.parts = {
      dbName: this.dbName,
      hostId: this.hostId,
      locks,
      clock,
      makeId,
      stopGraceMs: options.stopGraceMs ?? 2_000,
      channel: hostChannel((options.openChannel ?? openBroadcastChannel)(hostChannelName(this.dbName)), this.hostId),
      store: indexedDBRunStore({
        dbName: this.dbName,
        clock,
        ...(options.openTimeoutMs !== undefined && { openTimeoutMs: options.openTimeoutMs }),
        onOutdated: async (deleted) => {
          await this.settleAll();
          // Its epochs begin anew, so what is remembered would be taken for true.
          if (deleted) this.history.forgetAll();
        },
      }),
    };
    this.history = new History(this.parts.store);
    this.recovery = new Recovery(this.parts, this.closed.signal);
    const hearing = this.parts.channel.messages$.subscribe((message) => this.hear(message));
    this.closed.signal.addEventListener("abort", () => hearing.unsubscribe(), { once: true });
    // The life lock stands before anything is claimed, so that whoever reads this host's id can watch it.
    this.ready = locks.hold(hostLifeLockName(this.dbName, this.hostId));
    this.opened.catch(() => undefined);
  }

  /**
   * Resolves when the database is open and the runs of dead hosts are being settled; rejects with why it is not. Whoever
   * asks after that lets it be tried again: another tab may have let go of the database in between.
   */
  get opened(): Promise<void> {
    this.opening ??= this.ready
      .then(() => this.recovery.start())
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
   *   `thread-busy` (a run of another host), `run-exists`, or a storage code.
   * @throws RunnerError `thread-busy` where this runner has a live run of the thread; `invalid-input`; `closed`
   */
  run(request: AgentRunnerRunRequest): Observable<BaseEvent> {
    const run = this.start({
      threadId: request.threadId,
      agentId: request.agent.agentId,
      agent: request.agent,
      input: request.input,
      persistedInputMessages: request.persistedInputMessages,
    });
    return this.eventsOf(run);
  }

  /**
   * The thread's history as events (deltas joined), then its live run, then complete; nothing for an unknown thread.
   * Unsubscribing does not stop the run.
   */
  connect(request: AgentRunnerConnectRequest): Observable<BaseEvent> {
    checkId("threadId", request.threadId);
    return new Observable<BaseEvent>((subscriber) =>
      pump(subscriber, async (signal) => {
        for await (const frame of this.attach({ threadId: request.threadId, replay: "events" }, signal)) {
          if (frame.type === "chunk") for (const entry of frame.chunk.entries) subscriber.next(entry.event);
        }
      }),
    );
  }

  async isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean> {
    checkId("threadId", request.threadId);
    const own = this.live.get(request.threadId);
    if (own !== undefined && isBusy(own.is)) return true;
    return (await this.parts.store.head(request.threadId))?.live !== undefined;
  }

  /** Never waits for the end of the run. The request survives power loss. */
  async stop(request: AgentRunnerStopRequest): Promise<boolean> {
    const { threadId, runId } = request;
    checkId("threadId", threadId);
    if (runId !== undefined) checkId("runId", runId);
    const { store, clock, stopGraceMs } = this.parts;
    const own = this.live.get(threadId);
    if (own !== undefined && isBusy(own.is)) {
      if (runId !== undefined && own.runId !== runId) return false;
      // Still claiming: it is stopped as soon as it runs, and a refused run has nothing to stop.
      if (own.is.is === "claiming" && (await own.started.catch(() => undefined)) === undefined) return false;
      const stopping = own.stop();
      if (stopping) await store.requestStop(threadId, own.runId, clock.now()).catch(() => undefined);
      return stopping;
    }
    // It has ended already; a request in the log would outlive it.
    if (own?.is.is === "settling" || own?.is.is === "settled") return false;
    const asked = await store.requestStop(threadId, runId, clock.now());
    if (asked === undefined) return false;
    // Said again even if somebody asked before: that one may have died before it was heard.
    // The request stands in the log: where it cannot be delivered, who reads the head row finds it.
    this.stopForeign(threadId, asked.runId, stopGraceMs + STOP_ACK_MS).catch(() => undefined);
    return asked.first;
  }

  /**
   * Starts a run as {@link run} does, for callers that want chunks: `started` tells where it stands in the log.
   *
   * @throws RunnerError as {@link run}
   */
  start(request: LiveRunRequest): LiveRun {
    if (this.closing !== undefined) throw new RunnerError("closed", { dbName: this.dbName });
    const { threadId } = request;
    checkId("threadId", threadId);
    const input = checkInput(request.input);
    const persistedInputMessages = request.persistedInputMessages && checkMessages(request.persistedInputMessages);
    const before = this.live.get(threadId);
    if (before !== undefined && isBusy(before.is) && before.runId !== input.runId) {
      throw new RunnerError("thread-busy", { threadId, runId: before.runId, holderId: this.hostId });
    }
    if (before !== undefined && before.runId === input.runId && isBusy(before.is)) {
      if (before.matches(input)) return before;
      throw new RunnerError("run-exists", { threadId, runId: before.runId });
    }
    const run = new LiveRun(
      {
        ...request,
        input,
        persistedInputMessages,
        after: Promise.all([this.ready, before?.ended]).then(() => undefined),
      },
      {
        parts: this.parts,
        history: this.history,
        recovery: this.recovery,
        events: {
          started: (started) => this.tell(started, "started"),
          advanced: (advanced, seq) => this.tellAdvanced(advanced, seq),
          ended: (ended) => this.forget(ended),
        },
      },
    );
    this.live.set(threadId, run);
    return run;
  }

  /** The events of a run that this runner started, one by one, from the first. */
  private eventsOf(run: LiveRun): Observable<BaseEvent> {
    // Who never subscribes is not told of a refusal: that is no unhandled rejection.
    return new Observable<BaseEvent>((subscriber) =>
      pump(subscriber, async (signal) => {
        const ref = await run.started;
        for await (const chunk of tailRun(this.parts, ref, run.feed, -1, signal)) {
          for (const entry of chunk.entries) for (const event of unpackEntry(entry)) subscriber.next(event);
        }
      }),
    );
  }

  /** Frames of one run, from its first event to its settled end. */
  async *runFrames(run: LiveRun, signal: AbortSignal): AsyncGenerator<Frame, void> {
    const ref: RunRef = await run.started;
    const { runIndex, runId, epoch, agentId } = ref;
    yield { type: "run", run: { runIndex, runId, epoch, ...(agentId !== undefined && { agentId }) } };
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
    if (this.closed.signal.aborted) throw new RunnerError("closed", { dbName: this.dbName });
    const context: AttachContext = {
      parts: this.parts,
      history: this.history,
      recovery: this.recovery,
      liveRun: (threadId) => this.live.get(threadId),
      bell: (threadId) => this.bellOf(threadId),
    };
    return attach(context, options, AbortSignal.any([signal, this.closed.signal]));
  }

  /** Threads, newest first. */
  listThreads(query: ThreadListQuery = {}): Promise<readonly ThreadSummary[]> {
    return listThreads(this.parts.store, query);
  }

  /** Changes of the list of threads, made in whichever host. Begins with the next change. */
  watchThreads(): Observable<ThreadChange> {
    return this.threadChanges$;
  }

  /** Settles this host's live runs as stopped, then lets go of everything. Refuses further calls. */
  close(): Promise<void> {
    this.closing ??= this.closeNow();
    return this.closing;
  }

  private async closeNow(): Promise<void> {
    await this.settleAll();
    this.closed.abort();
    this.changed$.complete();
    this.parts.channel.close();
    await (await this.ready).release();
    await this.parts.store.close();
  }

  /** Settles this host's live runs as stopped, within `stopGraceMs`. */
  async settleAll(): Promise<void> {
    await Promise.all(
      [...this.live.values()].map(async (run) => {
        await run.started.catch(() => undefined);
        run.stop();
        await run.ended;
      }),
    );
  }

  private hear(message: LockMessage): void {
    const { type, threadId, runId, from } = message;
    if (type === "started") this.recovery.watch(from);
    const own = this.live.get(threadId);
    if (type === "claim" && own !== undefined && own.is.is !== "claiming") {
      this.parts.channel.post({ type: isBusy(own.is) ? "refused" : "wait", threadId, runId: own.runId });
    } else if (type === "stop" && own !== undefined && runId === own.runId && own.inLog !== undefined) {
      own.stop();
      this.parts.channel.post({ type: "stop-ack", threadId, runId });
    } else if (type === "started" || type === "ended" || type === "changed") this.changed$.next(threadId);
  }

  private tell(run: LiveRun, type: "started" | "ended"): void {
    const { threadId, runId, inLog } = run;
    this.parts.channel.post({ type, threadId, runId, ...(inLog !== undefined && { runIndex: inLog.runIndex }) });
    this.bells.get(threadId)?.bell.ring();
    this.changed$.next(threadId);
  }

  /** Other hosts are told of commits at most every few ms, and of the last one for sure. */
  private tellAdvanced(run: LiveRun, seq: number): void {
    const { threadId, runId } = run;
    const waiting = this.advances.has(threadId);
    this.advances.set(threadId, { type: "advanced", from: this.hostId, threadId, runId, seq });
    if (waiting) return;
    void this.parts.clock.after(ADVANCED_EVERY_MS, this.closed.signal).then(() => {
      const message = this.advances.get(threadId);
      this.advances.delete(threadId);
      if (message !== undefined) this.parts.channel.post(message);
    });
  }

  private forget(run: LiveRun): void {
    if (this.live.get(run.threadId) === run) this.live.delete(run.threadId);
    // A run that was found in the log is told of by its holder.
    if (run.inLog !== undefined && run.is.is !== "refused") this.tell(run, "ended");
  }

  private async stopForeign(threadId: string, runId: string, patienceMs: number): Promise<void> {
    const stolen = await deliverStop(this.parts, { threadId, runId }, patienceMs);
    if (stolen === undefined) return;
    try {
      const head = await this.parts.store.head(threadId);
      if (head?.live?.runId === runId) await this.recovery.settleOrphan(head, "stopped");
    } finally {
      await stolen.release();
      this.bells.get(threadId)?.bell.ring();
      this.changed$.next(threadId);
    }
  }

  private bellOf(threadId: string): { bell: Bell; release: () => void } {
    const entry = this.bells.get(threadId) ?? { bell: new Bell(), users: 0 };
    entry.users++;
    this.bells.set(threadId, entry);
    return {
      bell: entry.bell,
      release: () => {
        if (--entry.users === 0) this.bells.delete(threadId);
      },
    };
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
