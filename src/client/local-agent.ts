import {
  AbstractAgent,
  type AgentConfig,
  type AgentStateMutation,
  type AgentSubscriber,
  type BaseEvent,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
} from "@ag-ui/client";
import { BehaviorSubject, defer, finalize, mergeMap, Observable, tap, throwError } from "rxjs";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import { eventsOfFrame } from "../wire/frames.js";
import type { Frame, LiveRun, RunRequest } from "../wire/shapes.js";
import { ThreadFollower } from "./follower.js";
import { attachFrames, cursorBehind, runFrames } from "./frames.js";
import type { HostLink } from "./host-link.js";
import { KnownMessages } from "./known-messages.js";
import { threadRunAfter, type ThreadRun } from "./thread-run.js";

export interface LocalAgentConfig extends AgentConfig {
  readonly agentId: string;
}

/**
 * An agent that runs in the host, for any AG-UI front end. Its messages and state are those of the thread, whoever runs
 * it, as far as this agent was told: by its own runs, by {@link connectAgent}, or all the time by {@link follow}.
 */
export class LocalAgent extends AbstractAgent {
  /** The thread's run as this agent knows it; replays the latest. */
  declare readonly run$: Observable<ThreadRun>;

  // Set in `adopt`, not by initialisers: `clone` makes its copy without running a constructor.
  declare private link: HostLink;
  declare private runState$: BehaviorSubject<ThreadRun>;
  declare private known: KnownMessages;
  /** Behind the last settled run that this agent has seen whole; undefined: it has to begin with a snapshot. */
  declare private cursor: Cursor | undefined;
  /** How far the own run was seen. */
  declare private ownCursor: Cursor | undefined;
  /** The pipeline reads the thread and runs nothing. */
  declare private reading: boolean;
  /** The state that the host gave; another one was set by the caller. */
  declare private hostState: unknown;
  declare private follower: ThreadFollower | undefined;
  declare private follows: number;
  /** Own runs, which the follower passes over: until they are over and it has passed them (`passed`: not over yet). */
  declare private ownRuns: Map<string, "live" | "over" | "passed">;
  declare private ownSessions: Set<Promise<unknown>>;
  declare private abortAsked: Set<string>;
  /** What the next `connect` of the pipeline subscribes to. */
  declare private session$: Observable<BaseEvent> | undefined;

  constructor(link: HostLink, config: LocalAgentConfig) {
    super(config);
    this.adopt(link, new KnownMessages(), undefined);
    if (config.initialState !== undefined) this.hostState = undefined;
  }

  private adopt(link: HostLink, known: KnownMessages, cursor: Cursor | undefined): void {
    this.link = link;
    this.runState$ = new BehaviorSubject<ThreadRun>({ is: "idle" });
    (this as { run$: Observable<ThreadRun> }).run$ = this.runState$.asObservable();
    this.known = known;
    this.cursor = cursor;
    this.hostState = this.state;
    this.follower = undefined;
    this.follows = 0;
    this.ownRuns = new Map();
    this.ownSessions = new Set();
    this.abortAsked = new Set();
    this.session$ = undefined;
    this.ownCursor = undefined;
    this.reading = false;
  }

  /** A copy with the same history and subscribers that follows nothing yet. */
  override clone(): LocalAgent {
    const copy = super.clone() as LocalAgent;
    const stateSet = this.hostState !== this.state;
    // In the middle of a run a copy has part of it: only a snapshot brings the rest.
    copy.adopt(this.link, this.known.copy(), this.runState$.value.is === "running" ? undefined : this.cursor);
    if (stateSet) copy.hostState = undefined;
    copy.isRunning = false;
    return copy;
  }

  /**
   * Runs the agent in the host, sending the messages that the thread does not have yet, and state only where it was set.
   *
   * Rejects with RunnerError: `thread-busy` while another run of the thread is live (nothing is lost, run again when it
   * has ended), `unknown-agent`, `invalid-input`, a storage code, or one of the connection.
   */
  override async runAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const { value: run } = this.runState$;
    if (run.is === "running" && run.runId !== parameters?.runId) {
      throw new RunnerError("thread-busy", { threadId: this.threadId, runId: run.runId });
    }
    return this.ownSession(super.runAgent(parameters, subscriber));
  }

  /** The history, or what is missing of it, then the live run if there is one; resolves at its end. */
  override async connectAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    if (this.follower === undefined) {
      this.reading = true;
      return this.ownSession(super.connectAgent(parameters, subscriber)).finally(() => (this.reading = false));
    }
    // A follower does that already.
    await this.follower.caughtUp();
    return { result: undefined, newMessages: [] };
  }

  /** Stops the run that this agent is running or following, in whichever host it is. */
  override abortRun(): void {
    const { value: run } = this.runState$;
    const own = [...this.ownRuns].filter(([, is]) => is === "live").map(([runId]) => runId);
    for (const runId of run.is === "running" ? [run.runId] : own) {
      this.abortAsked.add(runId);
      this.requestStop(runId);
    }
  }

  /**
   * Stays attached: the history first, then every run of the thread, whoever starts it in whichever tab. Hooks and
   * subscribers are called as for an own run. Goes on after the death of a host.
   *
   * @returns ends it, and no run
   */
  follow(): () => void {
    this.follows++;
    this.follower ??= this.startFollower();
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      if (--this.follows > 0) return;
      this.follower?.close();
      this.follower = undefined;
      for (const [runId, is] of this.ownRuns) if (is === "over") this.ownRuns.delete(runId);
    };
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return defer(() => {
      const { runId } = input;
      this.ownRuns.set(runId, "live");
      const before = this.cursor;
      let settled = false;
      let run: LiveRun | undefined;
      const frames$ = runFrames(this.link, this.requestOf(input), (accepted) => {
        run = accepted;
        if (this.abortAsked.has(runId)) this.requestStop(runId);
      });
      return frames$.pipe(
        tap((frame) => {
          this.noteRun(frame);
          if (frame.type !== "settled" || run === undefined) return;
          settled = true;
          // Runs in between that this agent was not told of: it has to look at the whole again.
          const whole = run.runIndex === (before?.runIndex ?? -1) + 1;
          this.cursor = whole ? this.ownCursor : undefined;
        }),
        mergeMap((frame) => {
          this.ownCursor = cursorBehind(frame, this.ownCursor);
          return this.eventsOf(frame);
        }),
        finalize(() => {
          if (settled && this.follower !== undefined && this.ownRuns.get(runId) !== "passed") {
            this.ownRuns.set(runId, "over");
          } else this.ownRuns.delete(runId);
          this.abortAsked.delete(runId);
          if (settled || run === undefined) return;
          this.leftMidRun();
          this.follower?.restart();
        }),
      );
    });
  }

  protected override connect(): Observable<BaseEvent> {
    return this.session$ ?? this.historyEvents();
  }

  /** Reading a thread answers no interrupt, so open ones are no reason to refuse it. */
  protected override async onInitialize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void> {
    if (this.ownRuns.has(input.runId) || !this.reading) return super.onInitialize(input, subscribers);
    const { pendingInterrupts } = this;
    this.pendingInterrupts = [];
    try {
      await super.onInitialize(input, subscribers);
    } finally {
      this.pendingInterrupts = pendingInterrupts;
    }
  }

  protected override processApplyEvents(
    input: RunAgentInput,
    mutations$: Observable<AgentStateMutation>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    return super.processApplyEvents(input, mutations$, subscribers).pipe(
      tap((mutation) => {
        if (mutation.state !== undefined) this.hostState = this.state;
      }),
    );
  }

  /** As the base class, but a refusal that the caller is told of anyway is not printed to the console as well. */
  protected override onError(
    input: RunAgentInput,
    error: Error,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    if (!RunnerError.is(error)) return super.onError(input, error, subscribers);
    let unhandled = false;
    const last: AgentSubscriber = {
      // The base class prints and throws unless somebody stops it; its type does not name what it reads.
      onRunFailed: () => {
        unhandled = true;
        const mutation: AgentStateMutation = { stopPropagation: true };
        return mutation;
      },
    };
    return super
      .onError(input, error, [...subscribers, last])
      .pipe(mergeMap((mutation) => (unhandled ? throwError(() => error) : [mutation])));
  }

  private requestOf(input: RunAgentInput): RunRequest {
    const { threadId } = this;
    const agentId = this.agentId!;
    const news = this.known.news(input.messages);
    if (news === undefined) return { threadId, agentId, input };
    const stateSet = this.state !== this.hostState;
    return {
      threadId,
      agentId,
      input: { ...input, messages: [...news], ...(!stateSet && { state: {} }) },
      partial: { stateSet },
    };
  }

  private requestStop(runId: string): void {
    // Whether it arrived shows in the run's end; a host that dies now has ended the run anyway.
    this.link.call(({ api }) => api.stop({ threadId: this.threadId, runId })).catch(() => undefined);
  }

  /** Everything that this agent has not seen, up to the end of the live run. */
  private historyEvents(): Observable<BaseEvent> {
    return attachFrames(this.link, { threadId: this.threadId, after: this.cursor, follow: false }).pipe(
      tap((frame) => {
        this.noteRun(frame);
        this.cursor = cursorBehind(frame, this.cursor);
      }),
      mergeMap((frame) => this.eventsOf(frame)),
      finalize(() => {
        if (this.runState$.value.is === "running") this.leftMidRun();
      }),
    );
  }

  /** Nothing tells of the run any more that this agent has seen part of: only a snapshot brings the rest. */
  private leftMidRun(): void {
    this.cursor = undefined;
    if ([...this.ownRuns.values()].some((is) => is !== "over")) return;
    // Whether it still runs is not known here any more; the host knows, and refuses a second one.
    this.runState$.next({ is: "idle" });
  }

  private eventsOf(frame: Frame): readonly BaseEvent[] {
    const events = eventsOfFrame(frame);
    for (const event of events) this.known.note(event);
    return events;
  }

  /** Keeps `run$` true. A run is over for who sees its terminal event: a follow-up run may be started on it. */
  private noteRun(frame: Frame): void {
    const state = threadRunAfter(this.runState$.value, frame);
    if (state !== this.runState$.value) this.runState$.next(state);
  }

  private async ownSession<T>(session: Promise<T>): Promise<T> {
    this.ownSessions.add(session);
    try {
      return await session;
    } finally {
      this.ownSessions.delete(session);
      this.known.show(this.messages);
    }
  }

  private startFollower(): ThreadFollower {
    return new ThreadFollower({
      frames: (after) => attachFrames(this.link, { threadId: this.threadId, after, follow: true }),
      // The cursor of a reading that is under way stands in the middle of a run.
      cursor: () => (this.reading ? undefined : this.cursor),
      cut: () => this.leftMidRun(),
      has: async ({ runIndex, seq, epoch }) => {
        await Promise.allSettled(this.ownSessions);
        const { cursor } = this;
        return cursor?.runIndex === runIndex && cursor.epoch === epoch && cursor.seq >= seq;
      },
      isOwn: (runId) => this.ownRuns.has(runId),
      passed: (runId) => {
        if (this.ownRuns.get(runId) === "live") this.ownRuns.set(runId, "passed");
        else this.ownRuns.delete(runId);
      },
      note: (frame) => {
        // Looked up before the own run stood in the log.
        const older =
          frame.type === "prelude" && frame.live === undefined && [...this.ownRuns.values()].includes("live");
        if (!older) this.noteRun(frame);
      },
      eventsOf: (frame) => this.eventsOf(frame),
      settled: (cursor) => (this.cursor = cursor),
      session: async (events$) => {
        await Promise.allSettled(this.ownSessions);
        this.session$ = events$;
        this.reading = true;
        try {
          await super.connectAgent();
        } finally {
          this.session$ = undefined;
          this.reading = false;
          this.known.show(this.messages);
        }
      },
    });
  }
}
