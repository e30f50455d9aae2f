import { threadFreed } from "../../lock/claim.js";
import { RunnerError } from "../../run/errors.js";
import { isBusy } from "../../run/life.js";
import { stopForeign } from "../claim/stop-foreign.js";
import type { LiveRun } from "./live-run.js";
import type { RunnerParts } from "../parts.js";
import type { Recovery } from "../claim/recovery.js";
import type { ThreadRuns } from "./thread-runs.js";

/** Ends runs on request: this host's directly, those of others through the log. */
export class Stopping {
  constructor(
    readonly parts: RunnerParts,
    readonly recovery: Recovery,
    private readonly runs: ThreadRuns,
    private readonly closed: AbortSignal,
  ) {}

  /** See `AgentRunner.stop`. */
  async stop(threadId: string, runId: string | undefined): Promise<boolean> {
    const { store, clock } = this.parts;
    const own = this.runs.find(threadId, runId);
    if (own !== undefined && isBusy(own.is)) {
      // Still claiming: it is stopped as soon as it runs. Where it is refused, another run may be the live one.
      if (own.is.is === "claiming") {
        const isFirst = own.stop();
        const now = await own.claimed.then(() => own.is);
        if (isFirst && own.isCancelled) return true;
        if (now.is === "refused" && this.runs.find(threadId, runId) !== own) return this.stop(threadId, runId);
      }
      if (own.is.is === "queued") {
        return runId === undefined && !own.isElsewhere ? this.stopInLog(threadId, runId) : this.cancel(own);
      }
      const stopping = own.stop();
      if (stopping) await store.requestStop(threadId, own.runId, clock.now()).catch(() => undefined);
      return stopping;
    }
    // It has ended already; a request in the log would outlive it.
    if (own?.is.is === "settling" || own?.is.is === "settled") return false;
    return this.stopInLog(threadId, runId);
  }

  private cancel(own: LiveRun): boolean {
    const isFirst = own.stop();
    // It was just about to start, or to join the run of its id that is in the log by now.
    if (isFirst) own.started.then(() => this.stop(own.threadId, own.runId)).catch(() => undefined);
    return isFirst;
  }

  /** Ends all runs of this host. */
  async endAll(as: "stopped" | "broken"): Promise<void> {
    await Promise.all(this.runs.all().map((run) => endRun(run, as, new RunnerError("closed"))));
  }

  /** Ends this host's runs of a thread; else asks another host to end its run, and waits until it may have. */
  async endThread(threadId: string): Promise<void> {
    const own = this.runs.all().filter((run) => run.threadId === threadId);
    await Promise.all(own.map((run) => endRun(run, "stopped")));
    if (own.length > 0) return;
    // Listens first: the run may end before the request is written.
    const freed = threadFreed(this.parts, threadId, this.closed);
    await this.stop(threadId, undefined);
    await freed;
  }

  /** Stops the run that the log names as live, in whichever host it is. */
  private async stopInLog(threadId: string, runId: string | undefined): Promise<boolean> {
    const { store, clock, channel, reached } = this.parts;
    // Its holder need not wait until the request is written.
    if (runId !== undefined) channel.post({ type: "stop", threadId, runId });
    let asked: Awaited<ReturnType<typeof store.requestStop>>;
    try {
      asked = await store.requestStop(threadId, runId, clock.now());
    } catch (error) {
      return this.stopUnwritten(threadId, runId, error);
    }
    if (asked === undefined) return false;
    await reached?.("stopping.requested", threadId);
    // Sent again even if somebody asked before: that host may have died before it was heard. If it cannot be delivered,
    // whoever reads the head row finds the request.
    stopForeign(this, { threadId, runId: asked.runId, runIndex: asked.runIndex, supersede: false }).catch(
      () => undefined,
    );
    return asked.first;
  }

  /** If the request cannot be written, the holder must acknowledge the message or, if silent, lose its lock. */
  private async stopUnwritten(threadId: string, runId: string | undefined, error: unknown): Promise<boolean> {
    const live = (await this.parts.store.head(threadId))?.live;
    if (live === undefined || (runId !== undefined && live.runId !== runId)) return false;
    // The run is over, only its end is not written yet.
    if (this.recovery.owes(threadId, live) !== undefined) return false;
    return new Promise((resolve, reject) => {
      // A run taken from a silent holder is over as well, even if its end cannot be written.
      stopForeign(this, { threadId, ...live, supersede: false }, () => resolve(true)).then(
        () => resolve(true),
        () => (this.recovery.owes(threadId, live) === undefined ? reject(error) : resolve(true)),
      );
    });
  }
}

async function endRun(run: LiveRun, as: "stopped" | "broken", why?: RunnerError): Promise<void> {
  // Before it has started only one that is queued, or whose code does not come, can be stopped.
  run.stop(as, why);
  await run.started.catch(() => undefined);
  run.stop(as, why);
  await run.ended;
}
