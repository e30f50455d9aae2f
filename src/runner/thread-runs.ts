import type { HeldLock } from "../platform/locks.js";
import { RunnerError } from "../run/errors.js";
import { isBusy } from "../run/life.js";
import type { LiveRunRequest } from "./fence.js";
import { LiveRun, type LiveRunContext } from "./live-run.js";

/** The runs of this host that are not over: of each thread the current one, and those that wait behind it. */
export class ThreadRuns {
  private readonly runs = new Map<string, LiveRun>();
  private readonly queues = new Map<string, LiveRun[]>();
  private readonly context: LiveRunContext;

  /**
   * @param ready what every run waits for
   * @param maxQueuedRuns how many runs of a thread may wait
   */
  constructor(
    context: LiveRunContext,
    private readonly ready: Promise<unknown>,
    private readonly maxQueuedRuns: number,
  ) {
    this.context = {
      ...context,
      events: {
        ...context.events,
        ended: (run) => {
          this.forget(run);
          context.events.ended(run);
        },
      },
    };
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

  /** Every run that is not over. */
  all(): readonly LiveRun[] {
    return [...this.runs.values(), ...[...this.queues.values()].flat()];
  }

  /**
   * Starts a run, or lets it wait.
   *
   * @throws RunnerError `thread-busy`, `run-exists`
   */
  start(request: LiveRunRequest): LiveRun {
    const { threadId, input } = request;
    const same = this.find(threadId, input.runId);
    if (same !== undefined && isBusy(same.is)) {
      if (same.matches(input)) return same;
      throw new RunnerError("run-exists", { threadId, runId: same.runId });
    }
    const before = this.runs.get(threadId);
    const queue = this.queues.get(threadId) ?? [];
    if (before === undefined || (!isBusy(before.is) && queue.length === 0)) {
      return this.startNow(
        request,
        before?.ended.then(() => undefined),
      );
    }
    const { onConcurrentRun, parts } = this.context;
    if (onConcurrentRun === "supersede") return this.startNow(request, before.supersede());
    if (onConcurrentRun === "throw" || queue.length >= this.maxQueuedRuns) {
      throw new RunnerError("thread-busy", {
        threadId,
        runId: before.runId,
        holderId: parts.hostId,
        ...(queue.length > 0 && { queued: queue.length }),
      });
    }
    return this.enqueue(request, [before, ...queue]);
  }

  private startNow(request: LiveRunRequest, turn: Promise<HeldLock | undefined> | undefined): LiveRun {
    const run = this.make(request, turn);
    this.runs.set(request.threadId, run);
    return run;
  }

  private enqueue(request: LiveRunRequest, ahead: readonly LiveRun[]): LiveRun {
    const { threadId } = request;
    // All of them: one that is taken out of the queue lets nobody past those before it.
    const turn = Promise.all(ahead.map((run) => run.ended)).then(() => {
      if (!this.unqueue(run)) return;
      this.runs.set(threadId, run);
    });
    const run = this.make(
      { ...request, queued: true },
      turn.then(() => undefined),
    );
    this.queues.set(threadId, [...(this.queues.get(threadId) ?? []), run]);
    return run;
  }

  private make(request: LiveRunRequest, turn: Promise<HeldLock | undefined> | undefined): LiveRun {
    return new LiveRun({ ...request, turn: this.ready.then(() => turn) }, this.context);
  }

  /** @returns false where it was not in the queue any more */
  private unqueue(run: LiveRun): boolean {
    const queue = this.queues.get(run.threadId);
    if (queue?.includes(run) !== true) return false;
    const left = queue.filter((other) => other !== run);
    if (left.length > 0) this.queues.set(run.threadId, left);
    else this.queues.delete(run.threadId);
    return true;
  }

  private forget(run: LiveRun): void {
    this.unqueue(run);
    if (this.runs.get(run.threadId) === run) this.runs.delete(run.threadId);
  }
}
