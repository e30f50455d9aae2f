import { defined } from "../../platform/defined.js";
import type { HeldLock } from "../../platform/locks.js";
import { RunnerError } from "../../run/errors.js";
import type { FailurePoint } from "../../run/failure-points.js";
import { isAnswer, isThatRun } from "../../run/interrupts.js";
import { isBusy, Life, type RunLife } from "../../run/life.js";
import type { Claim, RunRow, StopRequest } from "../../storage/run-store.js";
import type { LiveRun as LiveRunInfo } from "../../wire/shapes.js";
import type { AcquireContext } from "../claim/acquire.js";
import type { RunStart } from "../history/baseline.js";
import type { Execution } from "./execution.js";
import type { FencedRun } from "../claim/fence.js";
import type { PlacedRequest } from "../request.js";
import type * as runCode from "./run-code.js";
import { RunFeed, type FedRun } from "../../run/run-feed.js";
import type { RecordedRun } from "../history/recorded-run.js";

/** How often a run waits for what other devices added. */
const MAX_WAITS = 4;

const NOT_IN_STEP = "What other devices have added to the thread is not written down here yet: ask again";

const details = ({ threadId, agentId }: PlacedRequest) => ({ threadId, ...(agentId !== undefined && { agentId }) });

/** Where a run stands in the log. `begins` is not said of runs found there. */
export type RunRef = Omit<LiveRunInfo, "unrecorded"> & { readonly threadId: string };

/** Loaded when it is needed. */
export type RunCode = Pick<typeof runCode, "acquire" | "fenceRun" | "Execution">;

export interface LiveRunContext extends AcquireContext {
  /** Errors: RunnerError `outdated`. */
  readonly code: () => Promise<RunCode>;
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
  /** Resolves when it is known whether the run starts, waits or is refused; replaced when one that waited has its turn. */
  claimed!: Promise<void>;
  /** Resolves when nothing of the run is left to do in this host. */
  readonly ended: Promise<void>;

  private readonly life = new Life();
  /** Its place in the log: as this host's run, or as an earlier run of this id. */
  private ref: RunRef | undefined;
  private execution: Execution | undefined;
  private fencedStart: RunStart | undefined;
  private readonly cancelled = new AbortController();
  /** Aborts when the code that runs agents is there. */
  private readonly codeArrived = new AbortController();
  private isLoadBounded = false;
  private asksElsewhere = false;
  /** No server has taken it, and it may be executed here. */
  private isLeft = false;
  /** The live run of another host that this one waited for or superseded. */
  private waitedFor: number | undefined;
  /** The interrupts that such runs answer. */
  private readonly answeredElsewhere: string[] = [];
  private waits: () => void = () => undefined;
  private over: () => void = () => undefined;

  constructor(
    private readonly request: PlacedRequest,
    private readonly context: LiveRunContext,
    /** The live run that it is to supersede; that one goes on where this one is refused. */
    private readonly replaces?: LiveRun,
  ) {
    this.runId = request.input.runId;
    this.threadId = request.threadId;
    this.fingerprint = request.fingerprint;
    this.answers = isAnswer(request.input);
    this.ended = new Promise((resolve) => (this.over = resolve));
    const waits = new Promise<void>((resolve) => (this.waits = resolve));
    if (request.queued === true) this.wait();
    this.started = this.begin();
    this.claimed = this.decided(waits);
  }

  get is(): RunLife {
    return this.life.now;
  }

  /** The run in the log, once it is there. */
  get inLog(): RunRef | undefined {
    return this.ref;
  }

  /** What it hands out, where it is executed here. */
  get fed(): FedRun | undefined {
    const { ref, feed, request } = this;
    return ref && this.isHere ? { ...ref, answerId: request.answerId, feed } : undefined;
  }

  /** Another device was asked to execute it. */
  get isElsewhere(): boolean {
    return this.asksElsewhere;
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
    return this.execution?.recorded.answered ?? [];
  }

  /** The run as rebuilt from its committed events; undefined before the first one and while it is settling. */
  get view(): RecordedRun | undefined {
    return this.execution?.view;
  }

  /**
   * Asks the agent to end; the run is settled within `stopGraceMs`, however the agent behaves. A queued run is removed
   * from the queue, and one whose code does not come within `stopGraceMs` is cancelled, too.
   *
   * @param why the reason of the signal that is given to whoever waits for it
   * @returns false where it is ending already. True while its code loads, too: it may start all the same, so ask again
   *   once it has started
   */
  stop(as: "stopped" | "broken" = "stopped", why?: RunnerError): boolean {
    return this.cancel(why) || this.boundLoading() || this.execution?.askToEnd(as) === true;
  }

  /** Nothing of it was started. */
  get isCancelled(): boolean {
    return this.cancelled.signal.aborted;
  }

  /** Follows a stop request from the log or from another host. */
  heed(as: StopRequest["as"]): void {
    this.execution?.heed(as);
  }

  /** The live run that this one was to supersede and did not. */
  get spared(): LiveRun | undefined {
    const { execution, replaces } = this;
    if (execution !== undefined || replaces === undefined) return undefined;
    return isBusy(replaces.is) ? replaces : replaces.spared;
  }

  /**
   * Ends the run at once, in favour of another one of this host.
   *
   * @returns the thread's lock; undefined where it has to be claimed. Errors: why the other run would be refused: this
   *   one goes on
   */
  async supersede(by: PlacedRequest): Promise<HeldLock | undefined> {
    if (this.cancel()) return undefined;
    await this.started.catch(() => undefined);
    const { execution } = this;
    if (execution === undefined) return this.spared?.supersede(by);
    const found = isBusy(this.is) ? execution.refusalOf(by) : undefined;
    const refusal = found instanceof Promise ? await found : found;
    if (refusal !== undefined) throw refusal;
    // It ended during the reading: its lock is not handed over any more.
    if (found instanceof Promise && !isBusy(this.is)) return this.ended.then(() => undefined);
    return execution.handOver();
  }

  private cancel(why?: RunnerError): boolean {
    if (this.life.now.is !== "queued" || this.cancelled.signal.aborted) return false;
    this.cancelled.abort(why);
    return true;
  }

  /** A server that hangs never ends an `import()` (L7, L13). @returns false where the code is there, or it is bounded */
  private boundLoading(): boolean {
    if (this.isLoadBounded || this.codeArrived.signal.aborted || this.life.now.is !== "claiming") return false;
    this.isLoadBounded = true;
    // It waits for this one, and for the same code.
    this.replaces?.boundLoading();
    const { clock, stopGraceMs } = this.context.parts;
    void clock.after(stopGraceMs, this.codeArrived.signal).then(() => {
      if (!this.codeArrived.signal.aborted) this.cancelled.abort();
    });
    return true;
  }

  private async begin(): Promise<RunRef> {
    let lock: HeldLock | undefined;
    /** What may stand in the log of this run; without its index until the fence is answered. */
    let sent: Pick<RunRef, "threadId" | "runId"> | Claim | undefined;
    let asked = 0;
    let isElsewhere = false;
    try {
      lock = await this.turn();
      const { acquire, fenceRun, Execution } = await this.unlessCancelled(this.context.code());
      this.codeArrived.abort();
      for (;;) {
        if (lock === undefined) {
          const claimed = await acquire(this.context, this, this.request, {
            busy: (runIndex, policy, answered) => {
              this.waitedFor ??= runIndex;
              this.answeredElsewhere.push(...answered);
              if (policy === "queue") this.wait();
            },
            signal: this.cancelled.signal,
          });
          if ("run" in claimed) return this.join(claimed.run);
          lock = claimed.lock;
        }
        await this.reached("claiming.locked");
        this.mustNotBeCancelled();
        if (isElsewhere) return await this.joinEnded(lock);
        const admission = await this.admitted(lock, ++asked);
        if (typeof admission === "string") {
          lock = undefined;
          isElsewhere = admission === "elsewhere";
          continue;
        }
        if (this.isCancelled) admission?.();
        this.mustNotBeCancelled();
        this.haveTurn();
        const { waitedFor, answeredElsewhere } = this;
        const request: PlacedRequest = {
          ...this.request,
          ...(waitedFor !== undefined && { unseen: () => waitedFor }),
          answered: () => [...(this.request.answered?.() ?? []), ...answeredElsewhere],
        };
        const fencing = fenceRun(this.context, request, async () => {
          await this.reached("claiming.read");
          sent = { threadId: request.threadId, runId: this.runId };
        });
        const result = await fencing.finally(admission);
        sent = result.is === "fenced" ? result.run.claim : undefined;
        if (result.is === "moved") throw new RunnerError("thread-busy", { threadId: this.threadId });
        if (result.is === "fenced") return await this.execute(Execution, result.run, lock);
        await lock.release();
        if (result.is === "exists") return this.join(result.run);
        lock = undefined;
      }
    } catch (error) {
      this.life.go({ to: "refuse" });
      await this.reached("claiming.refused");
      // The fence may be committed although its reply, or a later step, failed.
      if (sent !== undefined) await this.context.recovery.breakOff(sent, "broken", error);
      await lock?.release();
      this.leave();
      throw error;
    }
  }

  /**
   * Asks whether other devices let the run start.
   *
   * @returns the lock released: `again` where their runs had to be written down first, or none of them has taken this one;
   *   `elsewhere` where one of them executes the run, which is in the log now
   */
  private async admitted(lock: HeldLock, asked: number): Promise<(() => void) | "again" | "elsewhere" | undefined> {
    const { threadId } = this;
    const request = this.isLeft ? { ...this.request, placement: undefined } : this.request;
    // L7: nothing that others added keeps the thread from its next run for ever.
    const admission = asked > MAX_WAITS ? undefined : await this.context.parts.elsewhere.admit?.(request);
    switch (admission?.is) {
      case "admitted":
        return admission.release;
      case "behind":
        await lock.release();
        await this.unlessCancelled(admission.wait());
        return "again";
      case "elsewhere":
        await lock.release();
        this.asksElsewhere = true;
        // From now on it can be stopped.
        this.wait();
        this.isLeft = (await admission.wait(this.cancelled.signal)) === "here";
        return this.isLeft ? "again" : "elsewhere";
      case "busy": {
        const { runId: liveId, deviceName: device } = admission;
        throw new RunnerError("thread-busy", { threadId, runId: liveId, device });
      }
      case undefined:
        // A run that belongs to a server is executed nowhere else, and by one server only.
        if (request.placement !== "server" && request.asked === undefined) return undefined;
        throw new RunnerError("offline", details(request), { message: NOT_IN_STEP });
    }
  }

  /** The run was executed elsewhere, and is over. */
  private async joinEnded(lock: HeldLock): Promise<RunRef> {
    const { threadId, runId, fingerprint } = this;
    const run = await this.context.parts.store.runById(threadId, runId, fingerprint);
    await lock.release();
    if (run !== undefined && isThatRun(run, this)) return this.join(run);
    throw new RunnerError("deleted", { threadId, runId });
  }

  private wait(): void {
    if (!this.life.go({ to: "wait" })) return;
    void this.reached("claiming.queued");
    this.waits();
  }

  private haveTurn(): void {
    if (this.life.go({ to: "turn" })) this.claimed = this.decided(new Promise((resolve) => (this.waits = resolve)));
  }

  private decided(waits: Promise<void>): Promise<void> {
    const over = (): void => undefined;
    return Promise.race([waits, this.started.then(over, over)]);
  }

  /** Waits for the runs before it; returns the lock if one hands it over. */
  private async turn(): Promise<HeldLock | undefined> {
    const turn = Promise.resolve(this.request.turn?.());
    try {
      return await this.unlessCancelled(turn);
    } catch (error) {
      turn.then(
        (late) => late?.release(),
        () => undefined,
      );
      throw error;
    }
  }

  /** @throws RunnerError `cancelled` */
  private async unlessCancelled<T>(awaited: Promise<T>): Promise<T> {
    this.mustNotBeCancelled();
    const { threadId, runId } = this;
    const { signal } = this.cancelled;
    const cancelled = new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(new RunnerError("cancelled", { threadId, runId })), { once: true }),
    );
    return Promise.race([awaited, cancelled]);
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

  private async execute(Run: typeof Execution, fenced: FencedRun, lock: HeldLock): Promise<RunRef> {
    await this.reached("claiming.fenced");
    const { events } = this.context;
    const { agentId, attempt } = this.request;
    const { threadId, runId, runIndex, epoch } = fenced.claim;
    const begins = fenced.recorded.start.runIndex < 0 ? (true as const) : undefined;
    this.ref = { threadId, runId, runIndex, epoch, ...defined({ agentId, attempt, begins }) };
    this.fencedStart = fenced.start;
    this.execution = new Run(this.context, {
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

export const refOf = ({ threadId, runId, runIndex, epoch, agentId, attempt, device }: RunRow): RunRef => ({
  threadId,
  runId,
  runIndex,
  epoch,
  ...defined({ agentId, attempt, device: device?.name }),
});
