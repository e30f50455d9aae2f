import type { HeldLock } from "../../platform/locks.js";
import { RunnerError } from "../../run/errors.js";
import type { FailurePoint } from "../../run/failure-points.js";
import { isAnswer } from "../../run/interrupts.js";
import { Life, type RunLife } from "../../run/life.js";
import type { RunRow, StopRequest } from "../../storage/run-store.js";
import { acquire, type AcquireContext } from "../claim/acquire.js";
import type { RunStart } from "../history/baseline.js";
import { Execution, type ExecutionContext } from "./execution.js";
import { fenceRun, type FencedRun, type PlacedRequest } from "../claim/fence.js";
import { RunFeed } from "./run-feed.js";
import type { RecordedRun } from "../history/recorded-run.js";

/** Where a run stands in the log. */
export interface RunRef {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  readonly epoch: number;
  readonly agentId?: string;
}

export interface LiveRunContext extends AcquireContext, ExecutionContext {
  readonly events: {
    /** The run stands in the log and its agent starts. */
    started(run: LiveRun): void;
    /** Events up to `seq` are committed. */
    advanced(run: LiveRun, seq: number): void;
    /** Nothing of the run is left to do here: settled, lost or refused. */
    ended(run: LiveRun): void;
  };
}

/** One run in the host that executes it, from its request to its settled end. */
export class LiveRun {
  readonly feed = new RunFeed();
  readonly runId: string;
  readonly threadId: string;
  readonly fingerprint: string;
  /** It may reuse the id of a settled run: see {@link isAnswer}. */
  readonly answers: boolean;
  /** The run's place in the log; rejects with the reason for a refusal. A run found in the log counts as started. */
  readonly started: Promise<RunRef>;
  /** Resolves when it is known whether the run starts, waits or is refused. */
  readonly claimed: Promise<void>;
  /** Resolves when nothing of the run is left to do in this host. */
  readonly ended: Promise<void>;

  private readonly life = new Life();
  /** Its place in the log: as this host's run, or as an earlier run of this id. */
  private ref: RunRef | undefined;
  private execution: Execution | undefined;
  private fencedStart: RunStart | undefined;
  private answeredIds: readonly string[] = [];
  private readonly cancelled = new AbortController();
  /** The live run of another host that this one waited for or superseded. */
  private waitedFor: number | undefined;
  private waits: () => void = () => undefined;
  private over: () => void = () => undefined;

  constructor(
    private readonly request: PlacedRequest,
    private readonly context: LiveRunContext,
  ) {
    this.runId = request.input.runId;
    this.threadId = request.threadId;
    this.fingerprint = request.fingerprint;
    this.answers = isAnswer(request.input);
    this.ended = new Promise((resolve) => (this.over = resolve));
    const waits = new Promise<void>((resolve) => (this.waits = resolve));
    if (request.queued === true) this.wait();
    this.started = this.begin();
    const started = this.started.then(
      () => undefined,
      () => undefined,
    );
    this.claimed = Promise.race([started, waits]);
  }

  get is(): RunLife {
    return this.life.now;
  }

  /** The run in the log, once it is there. */
  get inLog(): RunRef | undefined {
    return this.ref;
  }

  /** It runs, or ran, in this host. */
  get isHere(): boolean {
    return this.execution !== undefined;
  }

  /** What it starts from; undefined where the log has it, and for a run found in the log. */
  get start(): RunStart | undefined {
    return this.fencedStart;
  }

  /** The interrupts that were open when it started: it answers them. */
  get answered(): readonly string[] {
    return this.answeredIds;
  }

  /** The run as rebuilt from its committed events; undefined before the first one and while it is settling. */
  get view(): RecordedRun | undefined {
    return this.execution?.view;
  }

  /**
   * Asks the agent to end; the run is settled within `stopGraceMs`, however the agent behaves. A queued run is removed
   * from the queue.
   *
   * @returns false where it is ending already
   */
  stop(as: "stopped" | "broken" = "stopped"): boolean {
    return this.cancel() || this.execution?.askToEnd(as) === true;
  }

  /** Follows a stop request from the log or from another host. */
  heed(as: StopRequest["as"]): void {
    this.execution?.heed(as);
  }

  /**
   * Ends the run at once, in favour of another one of this host.
   *
   * @returns the thread's lock; undefined where it has to be claimed
   */
  async supersede(): Promise<HeldLock | undefined> {
    if (this.cancel()) return undefined;
    await this.started.catch(() => undefined);
    return this.execution?.handOver();
  }

  private cancel(): boolean {
    if (this.life.now.is !== "queued" || this.cancelled.signal.aborted) return false;
    this.cancelled.abort();
    return true;
  }

  private async begin(): Promise<RunRef> {
    let lock: HeldLock | undefined;
    let fenceSent = false;
    try {
      lock = await this.turn();
      for (;;) {
        if (lock === undefined) {
          const claimed = await acquire(this.context, this, {
            busy: (runIndex, policy) => {
              this.waitedFor ??= runIndex;
              if (policy === "queue") this.wait();
            },
            signal: this.cancelled.signal,
          });
          if ("run" in claimed) return this.join(claimed.run);
          lock = claimed.lock;
        }
        await this.reached("claiming.locked");
        this.mustNotBeCancelled();
        this.life.go({ to: "turn" });
        const unseen = this.waitedFor;
        const request = unseen === undefined ? this.request : { ...this.request, unseen: () => unseen };
        const result = await fenceRun(this.context, request, async () => {
          await this.reached("claiming.read");
          fenceSent = true;
        });
        if (result.is === "moved") throw new RunnerError("thread-busy", { threadId: this.threadId });
        if (result.is === "fenced") return await this.execute(result.run, lock);
        await lock.release();
        if (result.is === "exists") return this.join(result.run);
        lock = undefined;
      }
    } catch (error) {
      this.life.go({ to: "refuse" });
      await this.reached("claiming.refused");
      // The fence may be committed although its reply, or a later step, failed.
      if (fenceSent) await this.context.recovery.breakOff(this, "broken", error);
      await lock?.release();
      this.leave();
      throw error;
    }
  }

  private wait(): void {
    if (!this.life.go({ to: "wait" })) return;
    void this.reached("claiming.queued");
    this.waits();
  }

  /** Waits for the runs before it; returns the lock if one hands it over. */
  private async turn(): Promise<HeldLock | undefined> {
    const { turn } = this.request;
    const { signal } = this.cancelled;
    const cancelled = new Promise<undefined>((resolve) =>
      signal.addEventListener("abort", () => resolve(undefined), { once: true }),
    );
    const lock = await Promise.race([turn?.(), cancelled]);
    this.mustNotBeCancelled();
    return lock;
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
    this.life.go({ to: "refuse" });
    this.ref = refOf(run);
    this.feed.lose();
    this.leave();
    return this.ref;
  }

  private async execute(fenced: FencedRun, lock: HeldLock): Promise<RunRef> {
    await this.reached("claiming.fenced");
    const { events } = this.context;
    const { agentId } = this.request;
    const { threadId, runId, runIndex, epoch } = fenced.claim;
    this.ref = { threadId, runId, runIndex, epoch, ...(agentId !== undefined && { agentId }) };
    this.fencedStart = fenced.start;
    this.answeredIds = fenced.answered;
    this.execution = new Execution(this.context, {
      request: this.request,
      fenced,
      lock,
      life: this.life,
      feed: this.feed,
      advanced: (seq) => events.advanced(this, seq),
      over: () => this.leave(),
    });
    this.life.go({ to: "claimed" });
    events.started(this);
    const { reached } = this.context.parts;
    if (reached !== undefined) await reached("claiming.told", threadId);
    this.execution.begin();
    return this.ref;
  }

  private async reached(point: FailurePoint): Promise<void> {
    await this.context.parts.reached?.(point, this.threadId);
  }

  private leave(): void {
    this.over();
    this.context.events.ended(this);
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
