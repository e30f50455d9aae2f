import type { RunAgentResult } from "@ag-ui/client";
import type { OnBusy, RunRequest } from "../wire/shapes.js";

/** What `runAgent` and `connectAgent` resolve with where they brought nothing. */
export const nothingNew = (): RunAgentResult => ({ result: undefined, newMessages: [] });

/** A run that this agent was asked for, until the call has ended. */
export interface OwnRun {
  readonly runId: string;
  /**
   * `asked`: not begun, or over. `waits`: it is in the log, and a host begins it. `unanswered`: the host was asked to run it;
   * `live`: the host does.
   */
  is: "asked" | "waits" | "unanswered" | "live";
  readonly onBusy?: OnBusy;
  /** It goes on with the results of tool calls, and with nothing else. */
  readonly afterToolCalls?: boolean;
  /** A stop was requested; while it is not in the log, it is requested again once it is. */
  isAbortAsked?: boolean;
  /** Of a run that may wait: what the host was asked for. */
  request?: RunRequest;
  /** A host has started it, after it waited: it is read, not asked for. */
  isStarted?: boolean;
  /** Of a run that may wait: called when it is known whether it does. */
  decide?: () => void;
}

/** The runs that an agent started itself, and the sessions of its pipeline. */
export class OwnRuns {
  /** In the order of the calls; an id may occur twice: the answer to an interrupt may reuse it. */
  private readonly runs = new Set<OwnRun>();
  private readonly sessions = new Set<Promise<unknown>>();
  /** How many of them were recorded in the log. */
  accepted = 0;
  /** The id of the one that was begun last. */
  last: string | undefined;

  /** A run is asked for: it can be aborted from now on. */
  ask(run: Omit<OwnRun, "is">): OwnRun {
    const own: OwnRun = { ...run, is: "asked" };
    this.runs.add(own);
    return own;
  }

  /** The call of it has ended. */
  settle(own: OwnRun): void {
    this.runs.delete(own);
  }

  /** The run of this id that was asked for last, and does not stream; a new one if nobody asked for it. */
  of(runId: string): OwnRun {
    return this.all.findLast((own) => own.runId === runId && !isLive(own)) ?? { runId, is: "asked" };
  }

  /** The host is asked for it. @returns call it when it streams no more */
  begin(own: OwnRun): () => void {
    const isAsked = this.runs.has(own);
    this.runs.add(own);
    own.is = "unanswered";
    this.last = own.runId;
    return () => {
      own.is = "asked";
      if (!isAsked) this.settle(own);
    };
  }

  get all(): readonly OwnRun[] {
    return [...this.runs];
  }

  /** Ids of runs that stream, or for which the host was asked. */
  get live(): readonly string[] {
    return this.all.filter(isLive).map(({ runId }) => runId);
  }

  /** Whether the host was asked for a run of this id, and has not answered: if it is refused, its caller has to know. */
  isUnanswered(runId: string): boolean {
    return this.all.some((own) => own.runId === runId && own.is === "unanswered");
  }

  /** A stop is requested of all. Those that wait are the log's. */
  askAbortOfAll(): void {
    for (const own of this.runs) if (own.is !== "waits") own.isAbortAsked = true;
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

const isLive = ({ is }: OwnRun): boolean => is === "unanswered" || is === "live";
