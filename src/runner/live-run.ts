import { EventType } from "@ag-ui/core";
import type { AbstractAgent, BaseEvent, Message, RunAgentInput } from "@ag-ui/client";
import type { HeldLock } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import { closingEvents } from "../run/finalize.js";
import { fingerprintOf, planInput, titleOf, type InputPlan, type ThreadBase } from "../run/input-plan.js";
import { isListening, nextLife, type RunLife, type RunTransition } from "../run/life.js";
import type { SettledStatus } from "../run/types.js";
import { claimThread } from "../lock/claim.js";
import type { Claim, ClaimResult, PersistedInput, RunRow } from "../storage/run-store.js";
import { runAgent } from "./agent-pipeline.js";
import { acceptEvent, startingEvents } from "./accept.js";
import { NEW_THREAD, type History } from "./history.js";
import { LogWriter } from "./log-writer.js";
import type { RunnerParts } from "./parts.js";
import type { Recovery } from "./recovery.js";
import { lastSeq, RunFeed } from "./run-feed.js";
import { RecordedRun } from "./recorded-run.js";

/** How often a live run that appends nothing looks into its head row, in ms. */
const HEAD_CHECK_MS = 1_000;
/** How often the base is read again when the thread went on under it. */
const CLAIM_TRIES = 3;

/** What is asked of a run. `input.messages` and `input.state` are only what is new where `partial` is given. */
export interface LiveRunRequest {
  readonly threadId: string;
  readonly agentId: string | undefined;
  readonly agent: AbstractAgent;
  readonly input: RunAgentInput;
  readonly partial?: { readonly stateSet: boolean } | undefined;
  readonly persistedInputMessages?: readonly Message[] | undefined;
  /** The run of this host that is settling: the claim waits for it. */
  readonly after?: Promise<void> | undefined;
}

/** Where a run stands in the log. */
export interface RunRef {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  readonly epoch: number;
  readonly agentId?: string;
}

export interface LiveRunContext {
  readonly parts: RunnerParts;
  readonly history: History;
  readonly recovery: Recovery;
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
  | { readonly status: "finished" | "stopped" }
  | { readonly status: "errored"; readonly message: string; readonly code?: string };

/** One run in the host that executes it, from the claim to the settled end. */
export class LiveRun {
  readonly feed = new RunFeed();
  readonly runId: string;
  readonly threadId: string;
  readonly fingerprint: string;
  /** Where the run stands in the log; rejects with why it was refused. A run that was there already counts as started. */
  readonly started: Promise<RunRef>;
  /** Resolves when nothing of the run is left to do in this host. */
  readonly ended: Promise<void>;

  private life: RunLife = { is: "claiming" };
  private lock: HeldLock | undefined;
  private ref: RunRef | undefined;
  private claim: Claim | undefined;
  private writer: LogWriter | undefined;
  private runView: RecordedRun | undefined;
  private plan: InputPlan | undefined;
  private threadState: unknown;
  private runState: unknown;
  /** The fence was sent to the log, and may stand there. */
  private fenceSent = false;
  private begun = false;
  private lastHeard = 0;
  private readonly over = new AbortController();

  constructor(
    private readonly request: LiveRunRequest,
    private readonly context: LiveRunContext,
  ) {
    this.runId = request.input.runId;
    this.threadId = request.threadId;
    this.fingerprint = fingerprintOf(request.input);
    this.started = this.start();
    this.started.catch(() => undefined);
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
    return this.ref;
  }

  /** What the committed events have rebuilt so far; undefined before the first is committed and while it is settling. */
  get view(): RecordedRun | undefined {
    return isListening(this.life) && this.runView?.started === true ? this.runView : undefined;
  }

  /**
   * Asks the agent to end; the run is settled as stopped within `stopGraceMs`, however the agent behaves.
   *
   * @returns false where it is ending already
   */
  stop(): boolean {
    if (!this.go({ to: "stop" })) return false;
    const { clock, stopGraceMs } = this.context.parts;
    try {
      this.request.agent.abortRun();
    } catch {
      // An agent that cannot even be asked to stop is not waited for any less.
    }
    void clock.after(stopGraceMs, this.over.signal).then(() => this.settle({ status: "stopped" }));
    return true;
  }

  private go(transition: RunTransition): boolean {
    const life = nextLife(this.life, transition);
    if (life === undefined) return false;
    this.life = life;
    return true;
  }

  private async start(): Promise<RunRef> {
    try {
      await this.request.after;
      const claimed = await this.claimLock();
      if ("run" in claimed) return await this.joinExisting(claimed.run);
      this.lock = claimed.lock;
      const result = await this.fence();
      if (result.is === "exists") return await this.joinExisting(result.run);
      if (result.is === "moved") throw new RunnerError("thread-busy", { threadId: this.threadId });
      return await this.begin(result.claim);
    } catch (error) {
      this.go({ to: "refuse" });
      // The fence may stand although what came after it, or its own answer, failed.
      if (this.fenceSent) await this.breakOff();
      await this.lock?.release();
      this.over.abort();
      this.context.events.ended(this);
      throw error;
    }
  }

  /** The thread's lock, or this very run where it is live in another host. */
  private async claimLock(): Promise<{ readonly lock: HeldLock } | { readonly run: RunRow }> {
    const { parts, recovery } = this.context;
    try {
      return { lock: await claimThread(parts, this.threadId, this.runId) };
    } catch (error) {
      const isThis = RunnerError.is(error, "thread-busy") && error.details.runId === this.runId;
      const run = isThis ? await parts.store.runById(this.threadId, this.runId) : undefined;
      if (run === undefined) throw error;
      recovery.watch((error as RunnerError).details.holderId);
      return { run };
    }
  }

  /** Reads what the run starts from and writes the fence, again where the thread went on in between. */
  private async fence(): Promise<ClaimResult> {
    const { parts, history, recovery } = this.context;
    const { input, agentId, partial } = this.request;
    for (let tries = 1; ; tries++) {
      let head = await parts.store.head(this.threadId);
      // The lock is ours, so whoever held it is gone.
      if (head?.live !== undefined) head = await recovery.settleOrphan(head, "broken");
      const base = head === undefined ? NEW_THREAD : await history.base(head);
      const plan = planInput(base, input, partial !== undefined);
      const start: ThreadBase =
        plan.is === "continue" || head === undefined ? base : await history.baseAt(head, plan.afterRunIndex);
      this.plan = plan;
      this.threadState = start.state;
      this.runState = isStateSet(this.request) ? input.state : start.state;
      const persisted: PersistedInput = {
        messages: this.request.persistedInputMessages ?? plan.newMessages,
        ...(input.resume !== undefined && { resume: input.resume }),
      };
      const frontEndTools = new Set(input.tools.map((tool) => tool.name));
      this.fenceSent = true;
      const result = await parts.store.claim({
        threadId: this.threadId,
        runId: this.runId,
        ...(agentId !== undefined && { agentId }),
        ...(input.parentRunId !== undefined && { parentRunId: input.parentRunId }),
        holder: parts.hostId,
        startedAt: parts.clock.now(),
        base: head && { activeRunIndex: head.activeRunIndex, epoch: head.epoch },
        prevRunIndex: start.runIndex < 0 ? null : start.runIndex,
        input: persisted,
        fingerprint: this.fingerprint,
        title: titleOf(persisted.messages),
      });
      if (result.is === "claimed") {
        this.runView = new RecordedRun(start, persisted);
        this.writer = new LogWriter(parts.store, result.claim, frontEndTools, {
          committed: (chunk) => {
            this.lastHeard = parts.clock.now();
            this.runView!.applyChunk(chunk);
            this.feed.publish(chunk);
            this.context.events.advanced(this, lastSeq(chunk));
          },
          stopRequested: () => this.stop(),
          failed: (error) => this.lose(error),
        });
      }
      if (result.is !== "moved" || tries === CLAIM_TRIES) return result;
    }
  }

  /** The run id was used before: equal input means that run, other input is refused. */
  private async joinExisting(run: RunRow): Promise<RunRef> {
    if (run.fingerprint !== this.fingerprint) {
      throw new RunnerError("run-exists", { threadId: this.threadId, runId: this.runId });
    }
    this.go({ to: "refuse" });
    await this.lock?.release();
    this.feed.lose();
    this.ref = refOf(run);
    this.over.abort();
    this.context.events.ended(this);
    return this.ref;
  }

  private async begin(claim: Claim): Promise<RunRef> {
    const { threadId, runId, runIndex, epoch } = claim;
    const { agentId } = this.request;
    this.claim = claim;
    this.ref = { threadId, runId, runIndex, epoch, ...(agentId !== undefined && { agentId }) };
    this.lastHeard = this.context.parts.clock.now();
    this.go({ to: "claimed" });
    // Stolen by a host that took us for dead: the log is not ours any more.
    void this.lock!.gone.then(() => this.lose(new RunnerError("fenced", { threadId, runId })));
    this.context.events.started(this);
    this.execute();
    void this.watchHead();
    return this.ref;
  }

  private execute(): void {
    const { agent, input } = this.request;
    runAgent(
      agent,
      {
        ...input,
        threadId: this.threadId,
        messages: [...this.plan!.messages],
        state: this.runState,
      },
      (event) => this.accept(event),
    ).then(
      () => this.settle({ status: this.life.is === "stopping" ? "stopped" : "finished" }),
      (error: unknown) =>
        this.settle(
          this.life.is === "stopping"
            ? { status: "stopped" }
            : { status: "errored", message: error instanceof Error ? error.message : String(error) },
        ),
    );
  }

  private accept(given: BaseEvent): void {
    if (!isListening(this.life)) return;
    const accepted = acceptEvent(given, this.begun);
    if (accepted.is === "refused") {
      this.settle({ status: "errored", message: accepted.reason, code: "INVALID_EVENT" });
      return;
    }
    if (accepted.is === "dropped") return;
    const { event } = accepted;
    if (!this.begun) this.record(event.type === EventType.RUN_STARTED ? event : undefined);
    if (event.type === EventType.RUN_STARTED) return;
    if (event.type === EventType.RUN_FINISHED || event.type === EventType.RUN_ERROR) {
      const terminal = {
        ...event,
        ...(event.type === EventType.RUN_FINISHED && { threadId: this.threadId, runId: this.runId }),
      };
      this.settle({ status: event.type === EventType.RUN_FINISHED ? "finished" : "errored", terminal });
      return;
    }
    this.writer!.add(event, this.context.parts.clock.now());
  }

  /** RUN_STARTED, given or made, and what the run needs to replay true. */
  private record(given: BaseEvent | undefined): void {
    this.begun = true;
    const now = this.context.parts.clock.now();
    const events = startingEvents({
      given,
      request: { ...this.request.input, threadId: this.threadId },
      newMessages: this.plan!.newMessages,
      ...(this.runState !== this.threadState && { state: this.runState }),
      ...(this.plan!.is === "branch" && { branchMessages: this.plan!.messages }),
    });
    for (const event of events) this.writer!.add(event, now);
  }

  private settle(ending: Ending): void {
    if (!this.go({ to: "settle", status: ending.status })) return;
    this.writeEnd(ending).catch((error: unknown) => this.lose(error));
  }

  private async writeEnd(ending: Ending): Promise<void> {
    const { parts, history } = this.context;
    const { clock, store } = parts;
    if (!this.begun) this.record(undefined);
    await this.writer!.drain();
    if (this.life.is !== "settling") return;

    const head = await store.head(this.threadId);
    const ownTerminal = "terminal" in ending;
    const stopAsked = head?.stop?.runId === this.runId && !ownTerminal;
    const status: SettledStatus = stopAsked ? "stopped" : ending.status;
    const end = stopAsked ? ({ status: "stopped" } as const) : ending;
    this.go({ to: "decide", status });

    const events = closingEvents(this.writer!.open, {
      threadId: this.threadId,
      runId: this.runId,
      ids: parts.makeId,
      ...end,
    });
    const chunk = this.writer!.finish(events, clock.now());
    const view = this.runView!;
    view.applyChunk(chunk);
    const result = await store.settle(this.claim!, {
      status,
      endedAt: clock.now(),
      chunk,
      ownTerminal,
      closing: view.closing(),
      derived: view.derived(),
    });
    if (result === "stop-requested") return this.endAsStopped();
    const thread = await store.head(this.threadId);
    if (thread !== undefined) history.remember(this.threadId, thread.epoch, view.base(this.ref!.runIndex));
    await this.free(status, () => this.feed.publish(chunk));
  }

  /** A stop request came between the last look at the head and the settling transaction: it decides. */
  private async endAsStopped(): Promise<void> {
    const { recovery, parts } = this.context;
    const head = await parts.store.head(this.threadId);
    if (head?.live?.runId === this.runId) await recovery.settleOrphan(head, "stopped");
    const chunks = await parts.store.chunks(this.threadId, this.ref!.runIndex, this.feed.publishedSeq, Infinity);
    await this.free("stopped", () => chunks.forEach((chunk) => this.feed.publish(chunk)));
  }

  /** The lock is free before anybody sees the end: who starts a run on it is never refused. */
  private async free(status: SettledStatus, publishEnd: () => void): Promise<void> {
    // Settled before the lock goes, which else looks stolen.
    this.go({ to: "settled" });
    await this.lock!.release();
    publishEnd();
    this.feed.settled(status);
    this.leave();
  }

  /** Another host ends the run, or the log cannot be written. Readers go on in the log. */
  private lose(error: unknown): void {
    if (!this.go({ to: "lose" })) return;
    // What failed may be the moment's trouble, and who took the lock may not have settled the run: it is ended if that
    // can be written.
    void this.breakOff()
      .then(() => this.lock!.release())
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
      await recovery.settleOrphan(head, head.stop?.runId === this.runId ? "stopped" : "broken");
    } catch {
      recovery.settleLater(this.threadId, this.runId);
    }
  }

  private leave(): void {
    this.over.abort();
    this.context.events.ended(this);
    const { agent } = this.request;
    // An agent that still runs is let go; nothing of it is written or shown any more.
    try {
      if (this.life.is === "lost") agent.abortRun();
      void agent.detachActiveRun().catch(() => undefined);
    } catch {
      // Its own affair.
    }
  }

  /** A stop request or a takeover is noticed even if the run appends nothing and no message arrives. */
  private async watchHead(): Promise<void> {
    const { clock, store } = this.context.parts;
    while (!this.over.signal.aborted) {
      await clock.after(HEAD_CHECK_MS, this.over.signal);
      if (!isListening(this.life) || clock.now() - this.lastHeard < HEAD_CHECK_MS) continue;
      const head = await store.head(this.threadId).catch(() => undefined);
      if (head === undefined) continue;
      if (head.epoch !== this.claim!.epoch) {
        this.lose(new RunnerError("fenced", { threadId: this.threadId, runId: this.runId }));
      } else if (head.stop?.runId === this.runId) this.stop();
    }
  }
}

/** `{}` is what a fresh AG-UI agent always sends: over the bare contract it counts as not set. */
function isStateSet({ input, partial }: LiveRunRequest): boolean {
  if (partial !== undefined) return partial.stateSet;
  const { state } = input;
  if (state === undefined || state === null) return false;
  return typeof state !== "object" || Array.isArray(state) || Object.keys(state).length > 0;
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
