import { threadFreed } from "../lock/claim.js";
import { isBusy } from "../run/life.js";
import { stopForeign } from "./acquire.js";
import { checkId } from "./checks.js";
import type { LiveRun } from "./live-run.js";
import type { RunnerParts } from "./parts.js";
import type { Recovery } from "./recovery.js";
import type { Signals } from "./signals.js";
import type { ThreadRuns } from "./thread-runs.js";

/** Ends runs on request: those of this host, and through the log those of others. */
export class Stopping {
  constructor(
    private readonly parts: RunnerParts,
    private readonly recovery: Recovery,
    private readonly runs: ThreadRuns,
    private readonly signals: Signals,
    private readonly closed: AbortSignal,
  ) {}

  /** See `AgentRunner.stop`. */
  async stop(threadId: string, runId: string | undefined): Promise<boolean> {
    checkId("threadId", threadId);
    if (runId !== undefined) checkId("runId", runId);
    const { store, clock } = this.parts;
    const own = this.runs.find(threadId, runId);
    if (own !== undefined && isBusy(own.is)) {
      // Still claiming: it is stopped as soon as it runs, and a refused run has nothing to stop.
      if (own.is.is === "claiming") await own.claimed;
      if (own.is.is === "queued") return runId === undefined ? this.stopInLog(threadId, runId) : own.stop();
      const stopping = own.stop();
      if (stopping) await store.requestStop(threadId, own.runId, clock.now()).catch(() => undefined);
      return stopping;
    }
    // It has ended already; a request in the log would outlive it.
    if (own?.is.is === "settling" || own?.is.is === "settled") return false;
    return this.stopInLog(threadId, runId);
  }

  /** Ends all runs of this host. */
  async endAll(): Promise<void> {
    await Promise.all(this.runs.all().map(endRun));
  }

  /** Ends the runs of a thread here; asks for the end of another host's, and waits until it may have come. */
  async endThread(threadId: string): Promise<void> {
    const own = this.runs.all().filter((run) => run.threadId === threadId);
    await Promise.all(own.map(endRun));
    if (own.length > 0) return;
    await this.stop(threadId, undefined);
    await threadFreed(this.parts, threadId, this.closed);
  }

  /** Stops the run that the log names as live, in whichever host it is. */
  private async stopInLog(threadId: string, runId: string | undefined): Promise<boolean> {
    const { store, clock } = this.parts;
    const asked = await store.requestStop(threadId, runId, clock.now());
    if (asked === undefined) return false;
    // Said again even if somebody asked before: that one may have died before it was heard.
    // The request stands in the log: where it cannot be delivered, who reads the head row finds it.
    stopForeign({ parts: this.parts, recovery: this.recovery }, threadId, asked.runId, false).then(
      (ended) => ended && this.signals.touched(threadId),
      () => undefined,
    );
    return asked.first;
  }
}

async function endRun(run: LiveRun): Promise<void> {
  // Before it has started only a queued one can be stopped.
  run.stop();
  await run.started.catch(() => undefined);
  run.stop();
  await run.ended;
}
