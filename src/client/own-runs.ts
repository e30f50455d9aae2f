/** An own run, which a follower passes over: until it is over and the follower has passed it (`passed`: not over yet). */
type OwnRun = "live" | "over" | "passed";

/** The runs that an agent started itself, and the sessions of its pipeline. */
export class OwnRuns {
  private readonly runs = new Map<string, OwnRun>();
  private readonly sessions = new Set<Promise<unknown>>();
  private readonly abortAsked = new Set<string>();
  /** How many of them came to stand in the log. */
  accepted = 0;

  begin(runId: string): void {
    this.runs.set(runId, "live");
  }

  /** Ids of those that it still keeps. */
  keys(): Iterable<string> {
    return this.runs.keys();
  }

  has(runId: string): boolean {
    return this.runs.has(runId);
  }

  /** @param isToPass a follower will come to its frames */
  end(runId: string, isToPass: boolean): void {
    if (isToPass && this.runs.get(runId) !== "passed") this.runs.set(runId, "over");
    else this.runs.delete(runId);
    this.abortAsked.delete(runId);
  }

  /** A follower has passed over its frames. */
  passed(runId: string): void {
    if (this.runs.get(runId) === "live") this.runs.set(runId, "passed");
    else this.runs.delete(runId);
  }

  /** No follower will come to the frames of those that are over. */
  forgetOver(): void {
    for (const [runId, is] of this.runs) if (is === "over") this.runs.delete(runId);
  }

  get live(): readonly string[] {
    return [...this.runs].filter(([, is]) => is === "live").map(([runId]) => runId);
  }

  /** One of them is not over. */
  get areUnderWay(): boolean {
    return [...this.runs.values()].some((is) => is !== "over");
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
