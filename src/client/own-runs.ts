/** The own runs of one id, which a follower passes over: an answer to a run may be a run of the same id. */
interface OwnRun {
  /** One of them is not over; `passed`: the follower has come by its frames already. */
  live: false | "not passed" | "passed";
  /** How many are over and still to be passed by the follower. They come before the live one. */
  toPass: number;
}

/** The runs that an agent started itself, and the sessions of its pipeline. */
export class OwnRuns {
  private readonly runs = new Map<string, OwnRun>();
  private readonly sessions = new Set<Promise<unknown>>();
  private readonly abortAsked = new Set<string>();
  /** How many of them came to stand in the log. */
  accepted = 0;

  begin(runId: string): void {
    this.runs.set(runId, { live: "not passed", toPass: this.runs.get(runId)?.toPass ?? 0 });
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
    const run = this.runs.get(runId);
    if (run === undefined) return;
    if (isToPass && run.live === "not passed") run.toPass++;
    run.live = false;
    this.forget(runId, run);
    this.abortAsked.delete(runId);
  }

  /** A follower has passed over its frames. */
  passed(runId: string): void {
    const run = this.runs.get(runId);
    if (run === undefined) return;
    if (run.toPass > 0) run.toPass--;
    else if (run.live !== false) run.live = "passed";
    this.forget(runId, run);
  }

  /** No follower will come to the frames of those that are over. */
  forgetOver(): void {
    for (const [runId, run] of this.runs) {
      run.toPass = 0;
      this.forget(runId, run);
    }
  }

  private forget(runId: string, { live, toPass }: OwnRun): void {
    if (live === false && toPass === 0) this.runs.delete(runId);
  }

  get live(): readonly string[] {
    return [...this.runs].filter(([, { live }]) => live === "not passed").map(([runId]) => runId);
  }

  /** One of them is not over. */
  get areUnderWay(): boolean {
    return [...this.runs.values()].some(({ live }) => live !== false);
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
