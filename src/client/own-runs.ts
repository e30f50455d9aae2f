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

  /**
   * Runs a session of the pipeline.
   *
   * @param ended is called at its end, where something of it came to stand in the log
   */
  async session<T>(work: () => Promise<T>, ended: () => void): Promise<T> {
    const { accepted } = this;
    const session = work();
    this.sessions.add(session);
    let isWhole = false;
    try {
      const result = await session;
      isWhole = true;
      return result;
    } finally {
      this.sessions.delete(session);
      // What goes with a run that was refused was not sent.
      if (isWhole || this.accepted !== accepted) ended();
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
