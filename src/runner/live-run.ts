import { EventType } from "@ag-ui/core";
import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { HeldLock } from "../platform/locks.js";
import { messageOf, RunnerError } from "../run/errors.js";
import { closingEvents } from "../run/finalize.js";
import { fingerprintOf } from "../run/input-plan.js";
import { isListening, nextLife, type AskedStatus, type RunLife, type RunTransition } from "../run/life.js";
import { lastSeq } from "../run/pack.js";
import type { Chunk, SettledStatus } from "../run/types.js";
import type { RunRow, StopRequest } from "../storage/run-store.js";
import { acceptEvent, startingEvents } from "./accept.js";
import { acquire, type AcquireContext } from "./acquire.js";
import { runAgent } from "./agent-pipeline.js";
import { fenceRun, type FencedRun, type LiveRunRequest } from "./fence.js";
import type { History } from "./history.js";
import { LogWriter } from "./log-writer.js";
import { RunFeed } from "./run-feed.js";
import type { RecordedRun } from "./recorded-run.js";

/** How often a live run that appends nothing looks into its head row, in ms. */
const HEAD_CHECK_MS = 1_000;

/** Where a run stands in the log. */
export interface RunRef {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  readonly epoch: number;
  readonly agentId?: string;
}

export interface LiveRunContext extends AcquireContext {
  readonly history: History;
  readonly events: {
    /** The run stands in the log and its agent starts. */
    started(run: LiveRun): void;
    /** Events up to `seq` are committed. */
    advanced(run: LiveRun, seq: number): void;
    /** Nothing of the run is left to do here: settled, lost or refused. */
    ended(run: LiveRun): void;
  };
}

type Ending =
  | { readonly status: "finished" | "errored"; readonly terminal: BaseEvent }
  | { readonly status: "finished" | "stopped" | "superseded" }
  | { readonly status: "errored"; readonly message: string; readonly code?: string };

/** The end of a run that was asked to end and did not end itself. */
const askedEnding = (as: AskedStatus): Ending =>
  as === "errored"
    ? { status: as, message: "The run took longer than it may (maxRunMs)", code: "RUN_TIMEOUT" }
    : { status: as };

/** A run that stands in the log, with what its host does it by. */
interface Standing extends FencedRun {
  readonly ref: RunRef;
  readonly lock: HeldLock;
  readonly writer: LogWriter;
}

/** One run in the host that executes it, from the claim to the settled end. */
export class LiveRun {
  readonly feed = new RunFeed();
  readonly runId: string;
  readonly threadId: string;
  readonly fingerprint: string;
  /** Where the run stands in the log; rejects with why it was refused. A run that was there already counts as started. */
  readonly started: Promise<RunRef>;
  /** Resolves when it is known whether the run starts, waits or is refused. */
  readonly claimed: Promise<void>;
  /** Resolves when nothing of the run is left to do in this host. */
  readonly ended: Promise<void>;

  private life: RunLife = { is: "claiming" };
  /** Set when the life is `running`, and from then on. */
  private run: Standing | undefined;
  /** Another run of this id, in whose place this one stands for its readers. */
  private joined: RunRef | undefined;
  private begun = false;
  private lastHeard = 0;
  private readonly over = new AbortController();
  private readonly cancelled = new AbortController();
  private waits: () => void = () => undefined;
  /** Takes the lock over when this run has ended. */
  private heir: ((lock: HeldLock | undefined) => void) | undefined;

  constructor(
    private readonly request: LiveRunRequest,
    private readonly context: LiveRunContext,
  ) {
    this.runId = request.input.runId;
    this.threadId = request.threadId;
    this.fingerprint = fingerprintOf(request.input);
    const waits = new Promise<void>((resolve) => (this.waits = resolve));
    if (request.queued === true) this.wait();
    this.started = this.start();
    const started = this.started.then(
      () => undefined,
      () => undefined,
    );
    this.claimed = Promise.race([started, waits]);
    this.ended = new Promise((resolve) => this.over.signal.addEventListener("abort", () => resolve(), { once: true }));
  }

  get is(): RunLife {
    return this.life;
  }

  /** Sent again with the same input. */
  matches(input: RunAgentInput): boolean {
    return fingerprintOf(input) === this.fingerprint;
  }

  /** The run in the log, once it is there. */
  get inLog(): RunRef | undefined {
    return this.run?.ref ?? this.joined;
  }

  /** What the committed events have rebuilt so far; undefined before the first is committed and while it is settling. */
  get view(): RecordedRun | undefined {
    const recorded = this.run?.recorded;
    return isListening(this.life) && recorded?.started === true ? recorded : undefined;
  }

  /**
   * Asks the agent to end; the run is settled within `stopGraceMs`, however the agent behaves. A queued run is taken out
   * of the queue.
   *
   * @returns false where it is ending already
   */
  stop(): boolean {
    return this.cancel() || this.askToEnd("stopped");
  }

  /**
   * Ends the run at once, in favour of another one of this host.
   *
   * @returns the thread's lock; undefined where it has to be claimed
   */
  async supersede(): Promise<HeldLock | undefined> {
    if (this.cancel()) return undefined;
    await this.started.catch(() => undefined);
    const handed = new Promise<HeldLock | undefined>((resolve) => (this.heir = resolve));
    void this.ended.then(() => this.heir?.(undefined));
    this.endSuperseded();
    return handed;
  }

  private endSuperseded(): void {
    // Settled first: what the agent emits while it is aborted is not heard any more.
    this.settle({ status: "superseded" });
    this.abortAgent();
  }

  private cancel(): boolean {
    if (this.life.is !== "queued") return false;
    this.cancelled.abort();
    return true;
  }

  private askToEnd(as: AskedStatus): boolean {
    if (!this.go({ to: "stop", as })) return false;
    const { clock, stopGraceMs } = this.context.parts;
    this.abortAgent();
    void clock.after(stopGraceMs, this.over.signal).then(() => this.settle(askedEnding(as)));
    return true;
  }

  /** Somebody else's request, which stands in the log or came from another host. */
  heed(as: StopRequest["as"]): void {
    if (as === "superseded") this.endSuperseded();
    else this.askToEnd(as);
  }

  private abortAgent(): void {
    try {
      this.request.agent.abortRun();
    } catch {
      // An agent that cannot even be asked to stop is not waited for any less.
    }
  }

  private go(transition: RunTransition): boolean {
    const life = nextLife(this.life, transition);
    if (life === undefined) return false;
    this.life = life;
    return true;
  }

  private async start(): Promise<RunRef> {
    let lock: HeldLock | undefined;
    let fenceSent = false;
    try {
      lock = await this.turn();
      if (lock === undefined) {
        const claimed = await acquire(this.context, this, {
          busy: () => this.wait(),
          signal: this.cancelled.signal,
        });
        if ("run" in claimed) return this.join(claimed.run);
        lock = claimed.lock;
      }
      this.mustNotBeCancelled();
      this.go({ to: "turn" });
      const result = await fenceRun(this.context, this.request, this.fingerprint, () => (fenceSent = true));
      if (result.is === "moved") throw new RunnerError("thread-busy", { threadId: this.threadId });
      if (result.is === "fenced") return this.begin(result.run, lock);
      await lock.release();
      return this.join(result.run);
    } catch (error) {
      this.go({ to: "refuse" });
      // The fence may stand although what came after it, or its own answer, failed.
      if (fenceSent) await this.breakOff();
      await lock?.release();
      this.leave();
      throw error;
    }
  }

  private wait(): void {
    if (this.go({ to: "wait" })) this.waits();
  }

  /** Waits for the runs before it; what that hands over. */
  private async turn(): Promise<HeldLock | undefined> {
    const { turn } = this.request;
    const { signal } = this.cancelled;
    const cancelled = new Promise<undefined>((resolve) =>
      signal.addEventListener("abort", () => resolve(undefined), { once: true }),
    );
    const lock = await Promise.race([turn, cancelled]);
    this.mustNotBeCancelled();
    return lock ?? undefined;
  }

  private mustNotBeCancelled(): void {
    const { threadId, runId } = this;
    if (this.cancelled.signal.aborted) throw new RunnerError("cancelled", { threadId, runId });
  }

  /** The run id was used before: equal input means that run, other input is refused. */
  private join(run: RunRow): RunRef {
    if (run.fingerprint !== this.fingerprint) {
      throw new RunnerError("run-exists", { threadId: this.threadId, runId: this.runId });
    }
    this.go({ to: "refuse" });
    this.joined = refOf(run);
    this.feed.lose();
    this.leave();
    return this.joined;
  }

  private begin(fenced: FencedRun, lock: HeldLock): RunRef {
    const { parts, events } = this.context;
    const { threadId, runId, runIndex, epoch } = fenced.claim;
    const { agentId, input } = this.request;
    const ref = { threadId, runId, runIndex, epoch, ...(agentId !== undefined && { agentId }) };
    const frontEndTools = new Set(input.tools.map((tool) => tool.name));
    const writer = new LogWriter(parts.store, fenced.claim, frontEndTools, {
      committed: (chunk) => {
        this.lastHeard = parts.clock.now();
        fenced.recorded.applyChunk(chunk);
        this.feed.publish(chunk);
        events.advanced(this, lastSeq(chunk));
      },
      stopRequested: (as) => this.heed(as),
      failed: (error) => this.lose(error),
    });
    const run = { ...fenced, ref, lock, writer };
    this.run = run;
    this.lastHeard = parts.clock.now();
    this.go({ to: "claimed" });
    // Stolen by a host that took us for dead: the log is not ours any more.
    void lock.gone.then(() => this.lose(new RunnerError("fenced", { threadId, runId })));
    events.started(this);
    this.execute(run);
    void this.watchHead(run);
    if (parts.maxRunMs !== undefined) {
      void parts.clock.after(parts.maxRunMs, this.over.signal).then(() => this.askToEnd("errored"));
    }
    return ref;
  }

  private execute(run: Standing): void {
    const { agent, input } = this.request;
    const { plan, state } = run;
    const whole = { ...input, threadId: this.threadId, messages: [...plan.messages], state };
    const settle = (ending: Ending): void => {
      this.settle(this.life.is === "stopping" ? askedEnding(this.life.as) : ending);
    };
    runAgent(agent, whole, {
      next: (event) => this.accept(run, event),
      open: () => run.writer.open,
      makeId: this.context.parts.makeId,
    }).then(
      () => settle({ status: "finished" }),
      (error: unknown) => settle({ status: "errored", message: messageOf(error) }),
    );
  }

  private accept(run: Standing, given: BaseEvent): void {
    if (!isListening(this.life)) return;
    const accepted = acceptEvent(given);
    if (accepted.is === "refused") {
      this.settle({ status: "errored", message: accepted.reason, code: "INVALID_EVENT" });
      return;
    }
    const { event } = accepted;
    if (!this.begun) this.record(run, event.type === EventType.RUN_STARTED ? event : undefined);
    if (event.type === EventType.RUN_STARTED) return;
    if (event.type === EventType.RUN_FINISHED || event.type === EventType.RUN_ERROR) {
      const terminal = {
        ...event,
        ...(event.type === EventType.RUN_FINISHED && { threadId: this.threadId, runId: this.runId }),
      };
      this.settle({ status: event.type === EventType.RUN_FINISHED ? "finished" : "errored", terminal });
      return;
    }
    run.writer.add(event, this.context.parts.clock.now());
  }

  /** RUN_STARTED, given or made, and what the run needs to replay true. */
  private record({ plan, state, stateIsThreads, writer }: Standing, given: BaseEvent | undefined): void {
    this.begun = true;
    const now = this.context.parts.clock.now();
    const events = startingEvents({
      given,
      request: { ...this.request.input, threadId: this.threadId },
      newMessages: plan.newMessages,
      ...(!stateIsThreads && { state }),
      ...(plan.is === "branch" && { branchMessages: plan.messages }),
    });
    for (const event of events) writer.add(event, now);
  }

  private settle(ending: Ending): void {
    const { run } = this;
    if (run === undefined || !this.go({ to: "settle", status: ending.status })) return;
    this.writeEnd(run, ending).catch((error: unknown) => this.lose(error));
  }

  private async writeEnd(run: Standing, ending: Ending): Promise<void> {
    const { parts, history } = this.context;
    const { claim, writer, recorded } = run;
    const { threadId, runId } = this;
    if (!this.begun) this.record(run, undefined);
    await writer.drain();
    if (this.life.is !== "settling") return;

    const events = closingEvents(writer.open, { threadId, runId, ids: parts.makeId, ...ending });
    const chunk = writer.finish(events, parts.clock.now());
    recorded.applyChunk(chunk);
    const result = await parts.store.settle(claim, {
      status: ending.status,
      endedAt: parts.clock.now(),
      chunk,
      ownTerminal: "terminal" in ending,
      closing: recorded.closing(),
      derived: recorded.derived(),
    });
    if (result === "stop-requested") return this.endAsStopped(run);
    history.remember(threadId, claim.epoch, recorded.base(claim.runIndex));
    await this.free(run, ending.status, [chunk]);
  }

  /** A stop request that was not heard yet stands in the log: it decides. */
  private async endAsStopped(run: Standing): Promise<void> {
    const { recovery, parts } = this.context;
    const head = await parts.store.head(this.threadId);
    const status = head?.stop?.as ?? "stopped";
    this.go({ to: "decide", status });
    if (head?.live?.runId === this.runId) await recovery.settleOrphan(head, status);
    const { publishedSeq } = this.feed;
    await this.free(run, status, await parts.store.chunks(this.threadId, run.ref.runIndex, publishedSeq, Infinity));
  }

  /** The lock is free before anybody sees the end: who starts a run on it is never refused. */
  private async free({ lock }: Standing, status: SettledStatus, end: readonly Chunk[]): Promise<void> {
    // Settled before the lock goes, which else looks stolen.
    this.go({ to: "settled" });
    if (this.heir === undefined) await lock.release();
    else this.heir(lock);
    for (const chunk of end) this.feed.publish(chunk);
    this.feed.settled(status);
    this.leave();
  }

  /** Another host ends the run, or the log cannot be written. Readers go on in the log. */
  private lose(error: unknown): void {
    if (!this.go({ to: "lose" })) return;
    // What failed may be the moment's trouble, and who took the lock may not have settled the run: it is ended if that
    // can be written.
    void this.breakOff()
      .then(() => this.run?.lock.release())
      .then(() => {
        this.feed.lose(RunnerError.is(error, "fenced") ? undefined : error);
        this.leave();
      });
  }

  /** Ends the run in the log where it stands there as live, and as this host's; later, where that cannot be written now. */
  private async breakOff(): Promise<void> {
    const { recovery, parts } = this.context;
    try {
      const head = await parts.store.head(this.threadId);
      if (head?.live?.runId !== this.runId || head.holder !== parts.hostId) return;
      await recovery.settleOrphan(head, head.stop?.runId === this.runId ? head.stop.as : "broken");
    } catch {
      recovery.settleLater(this.threadId, this.runId);
    }
  }

  private leave(): void {
    this.over.abort();
    this.context.events.ended(this);
    if (this.run === undefined) return;
    if (this.life.is === "lost") this.abortAgent();
    // An agent that still runs is let go; nothing of it is written or shown any more.
    try {
      void this.request.agent.detachActiveRun().catch(() => undefined);
    } catch {
      // Its own affair.
    }
  }

  /** A stop request or a takeover is noticed even if the run appends nothing and no message arrives. */
  private async watchHead({ claim }: Standing): Promise<void> {
    const { clock, store } = this.context.parts;
    while (!this.over.signal.aborted) {
      await clock.after(HEAD_CHECK_MS, this.over.signal);
      if (!isListening(this.life) || clock.now() - this.lastHeard < HEAD_CHECK_MS) continue;
      const head = await store.head(this.threadId).catch(() => undefined);
      if (head === undefined) continue;
      if (head.epoch !== claim.epoch) {
        this.lose(new RunnerError("fenced", { threadId: this.threadId, runId: this.runId }));
      } else if (head.stop?.runId === this.runId) this.heed(head.stop.as);
    }
  }
}

export function refOf(run: RunRow): RunRef {
  return {
    threadId: run.threadId,
    runId: run.runId,
    runIndex: run.runIndex,
    epoch: run.epoch,
    ...(run.agentId !== undefined && { agentId: run.agentId }),
  };
}
