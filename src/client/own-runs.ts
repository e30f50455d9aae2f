import type { RunAgentResult } from "@ag-ui/client";

/** What `runAgent` and `connectAgent` resolve with where they brought nothing. */
export const nothingNew = (): RunAgentResult => ({ result: undefined, newMessages: [] });

/** The runs that an agent started itself, and the sessions of its pipeline. */
export class OwnRuns {
  /** Ids of runs that are not over; an id may occur twice: the answer to an interrupt may reuse it. */
  private readonly runs: string[] = [];
  private readonly sessions = new Set<Promise<unknown>>();
  private readonly abortAsked = new Set<string>();
  /** Ids of runs that were asked for, also before they begin. */
  private readonly asked = new Set<string>();
  /** How many of them were recorded in the log. */
  accepted = 0;
  /** The id of the one that was begun last. */
  last: string | undefined;

  /** A run is asked for: it can be aborted from now on. */
  ask(runId: string): void {
    this.asked.add(runId);
  }

  /** It is over, was refused, or waits in the log. */
  settle(runId: string): void {
    this.asked.delete(runId);
    this.abortAsked.delete(runId);
  }

  begin(runId: string): void {
    this.last = runId;
    this.runs.push(runId);
  }

  end(runId: string): void {
    this.runs.splice(this.runs.indexOf(runId), 1);
    this.abortAsked.delete(runId);
  }

  /** Ids of runs that are not over. */
  get live(): readonly string[] {
    return [...this.runs];
  }

  /** A stop was requested of all; for a run that is not in the log yet it is requested again once it is. */
  askAbortOfAll(): void {
    for (const runId of [...this.asked, ...this.runs]) this.abortAsked.add(runId);
  }

  isAbortAsked(runId: string): boolean {
    return this.abortAsked.has(runId);
  }

  /** Runs a session of the pipeline. */
  async session<T>(work: () => Promise<T>): Promise<T> {
    const session = work();
    this.sessions.add(session);
    try {
      return await session;
    } finally {
      this.sessions.delete(session);
    }
  }

  /** Whether a session of the pipeline is active. */
  get isApplying(): boolean {
    return this.sessions.size > 0;
  }

  /** Resolves when the sessions that are active now have ended, in whichever way. */
  async sessionsEnded(): Promise<void> {
    await Promise.allSettled(this.sessions);
  }
}
