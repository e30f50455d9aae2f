/** The runs that an agent started itself, and the sessions of its pipeline. */
export class OwnRuns {
  /** Ids of those that are not over; one may be there twice: the answer to a run may have its id. */
  private readonly runs: string[] = [];
  private readonly sessions = new Set<Promise<unknown>>();
  private readonly abortAsked = new Set<string>();
  /** How many of them came to stand in the log. */
  accepted = 0;

  begin(runId: string): void {
    this.runs.push(runId);
  }

  end(runId: string): void {
    this.runs.splice(this.runs.indexOf(runId), 1);
    this.abortAsked.delete(runId);
  }

  /** Those that are not over. */
  get live(): readonly string[] {
    return [...this.runs];
  }

  /** A stop was asked for; of a run that does not stand in the log yet, it is asked again once it does. */
  askAbort(runId: string): void {
    this.abortAsked.add(runId);
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

  /** A session of the pipeline is under way. */
  get isApplying(): boolean {
    return this.sessions.size > 0;
  }

  /** Resolves when the sessions that are under way now have ended, however they did. */
  async sessionsEnded(): Promise<void> {
    await Promise.allSettled(this.sessions);
  }
}
