import { Lazy } from "../../platform/lazy.js";
import type { HeldLock } from "../../platform/locks.js";
import { RunnerError } from "../../run/errors.js";
import { isAnswer, isThatRun } from "../../run/interrupts.js";
import { isBusy } from "../../run/life.js";
import { loaded } from "../../run/loaded.js";
import { idKey } from "../../run/id-key.js";
import type { LiveRunRequest, PlacedRequest } from "../request.js";
import { LiveRun, type LiveRunContext, type RunCode } from "./live-run.js";

/** A request that the runner has checked. */
export type CheckedRequest = LiveRunRequest & Pick<PlacedRequest, "fingerprint" | "answerId">;

/** How many runs that are over are known. */
const MAX_LEFT = 1_000;

/** This host's runs that are not over: the current one of each thread, and those queued behind it. */
export class ThreadRuns {
  private readonly runs = new Map<string, LiveRun>();
  private readonly queues = new Map<string, LiveRun[]>();
  /** The latest runs that are over here: they may be sent again. */
  private readonly left = new Set<string>();
  private readonly context: LiveRunContext;
  private readonly code = new Lazy((): Promise<RunCode> => {
    const loading = import("./run-code.js");
    return loaded(loading.then(({ acquire, fenceRun, Execution }) => ({ acquire, fenceRun, Execution })));
  });

  /**
   * @param ready every run waits for it
   * @param maxQueuedRuns how many runs of a thread may wait
   */
  constructor(
    context: Omit<LiveRunContext, "code">,
    private readonly ready: Promise<unknown>,
    private readonly maxQueuedRuns: number,
  ) {
    this.context = {
      ...context,
      code: () => this.code.get(),
      events: {
        ...context.events,
        ended: (run) => {
          this.forget(run);
          context.events.ended(run);
        },
      },
    };
  }

  /** Loads what runs need ahead of the first one. If that fails, the first run tries again. */
  preload(): void {
    this.code.get().catch(() => undefined);
  }

  /** The thread's run that is next to end. */
  current(threadId: string): LiveRun | undefined {
    return this.runs.get(threadId);
  }

  /** The run of this id, or the current one where no id is given. */
  find(threadId: string, runId: string | undefined): LiveRun | undefined {
    const current = this.runs.get(threadId);
    if (runId === undefined || current?.runId === runId) return current;
    return this.queues.get(threadId)?.find((run) => run.runId === runId);
  }

  /** The current run of each thread, and the queued ones. A superseded run is over before its successor starts. */
  all(): readonly LiveRun[] {
    return [...this.runs.values(), ...[...this.queues.values()].flat()];
  }

  /**
   * Starts or queues a run.
   *
   * @throws RunnerError `thread-busy`, `run-exists`
   */
  start(request: CheckedRequest): LiveRun {
    const { threadId, input, fingerprint } = request;
    const same = this.find(threadId, input.runId);
    if (same !== undefined && isBusy(same.is)) {
      if (same.fingerprint === fingerprint) return same;
      if (!isAnswer(input)) throw new RunnerError("run-exists", { threadId, runId: same.runId });
    }
    const last = this.runs.get(threadId);
    // A run that was refused as it was to supersede the live one may not have left yet.
    if (last !== undefined && !isBusy(last.is)) this.restore(last);
    const before = this.runs.get(threadId);
    const queue = this.queues.get(threadId) ?? [];
    if (before === undefined) return this.add(request);
    if (!isBusy(before.is) && queue.length === 0) {
      return this.add({ ...request, turn: () => before.ended.then(() => undefined) });
    }
    // Not even where runs replace or follow one another: whatever runs has come first.
    if (request.afterToolCalls === true) throw new RunnerError("call-over", { threadId, runId: before.runId });
    const { parts } = this.context;
    const onConcurrentRun = request.onBusy ?? this.context.onConcurrentRun;
    const unseen = (): number | undefined => firstOf([before, ...queue]);
    if (onConcurrentRun === "supersede") {
      const turn = async (): Promise<HeldLock | undefined> => {
        // Asking the log first would let the live run go on meanwhile.
        if (!this.left.has(idKey(threadId, request.input.runId)) || !(await this.isKnown(request))) {
          try {
            return await before.supersede(request);
          } catch (refusal) {
            this.restore(run);
            if (!(await this.isKnown(request))) throw refusal;
          }
        }
        // Nothing is started: the live run goes on.
        this.restore(run);
        return undefined;
      };
      const run = this.add({ ...request, turn, unseen }, before);
      return run;
    }
    if (onConcurrentRun === "throw" || queue.length >= this.maxQueuedRuns) {
      throw new RunnerError("thread-busy", {
        threadId,
        runId: before.runId,
        holderId: parts.hostId,
        ...(queue.length > 0 && { queued: queue.length }),
      });
    }
    // All of them: when one leaves the queue, those behind it still wait for those before it.
    const ahead = Promise.all([before, ...queue].map((run) => run.ended));
    const answered = (): readonly string[] => [before, ...queue].flatMap((other) => other.answered);
    const run = this.make({ ...request, turn: () => ahead.then(() => undefined), queued: true, unseen, answered });
    this.queues.set(threadId, [...queue, run]);
    return run;
  }

  /** The log has a run of this id, which this request can only be attached to or refused for. */
  async isKnown({
    threadId,
    input,
    fingerprint,
  }: Pick<CheckedRequest, "threadId" | "input" | "fingerprint">): Promise<boolean> {
    const run = await this.context.parts.store.runById(threadId, input.runId, fingerprint);
    return run !== undefined && isThatRun(run, { fingerprint, answers: isAnswer(input) });
  }

  private add(request: PlacedRequest, replaces?: LiveRun): LiveRun {
    const run = this.make(request, replaces);
    this.runs.set(request.threadId, run);
    return run;
  }

  private make(request: PlacedRequest, replaces?: LiveRun): LiveRun {
    const turn = () => this.ready.then(() => request.turn?.());
    return new LiveRun({ ...request, turn }, this.context, replaces);
  }

  /** The live run that `run` has spared takes its place. @returns false where there is none */
  private restore(run: LiveRun): boolean {
    const { threadId, spared } = run;
    if (spared === undefined) return false;
    if (this.runs.get(threadId) === run) this.runs.set(threadId, spared);
    return true;
  }

  /** A run is over: the next in the queue takes its place. */
  private forget(run: LiveRun): void {
    const { threadId } = run;
    this.left.add(idKey(threadId, run.runId));
    for (const oldest of this.left) {
      if (this.left.size <= MAX_LEFT) break;
      this.left.delete(oldest);
    }
    const left = this.queues.get(threadId)?.filter((other) => other !== run) ?? [];
    if (this.runs.get(threadId) === run && !this.restore(run)) {
      const next = left.shift();
      if (next === undefined) this.runs.delete(threadId);
      else this.runs.set(threadId, next);
    }
    if (left.length > 0) this.queues.set(threadId, left);
    else this.queues.delete(threadId);
  }
}

/** The lowest index of those runs that are in the log. */
function firstOf(runs: readonly LiveRun[]): number | undefined {
  const indexes = runs.flatMap(({ inLog }) => inLog?.runIndex ?? []);
  return indexes.length === 0 ? undefined : Math.min(...indexes);
}
