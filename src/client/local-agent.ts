import type {
  AgentConfig,
  AgentSubscriber,
  BaseEvent,
  Message,
  RunAgentInput,
  RunAgentParameters,
  RunAgentResult,
} from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { catchError, defer, finalize, firstValueFrom, map, merge, mergeMap, type Observable, Subject, tap } from "rxjs";
import { randomId } from "../platform/ids.js";
import { Lazy } from "../platform/lazy.js";
import { loaded } from "../run/loaded.js";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import type { Frame, LiveRun, OnBusy } from "../wire/shapes.js";
import type { EnqueueRequest, WhenOffline } from "../wire/waiting-shapes.js";
import { preloadStage, whenStageIsLoaded } from "./apply/applying-agent.js";
import { tell } from "./apply/hooks.js";
import type { ThreadFollower } from "./follower.js";
import type { HostLink } from "./host-link.js";
import { preloadStreams, streams, withStreams, type Streams } from "./late-streams.js";
import { nothingNew, type OwnRun } from "./own-runs.js";
import { asError, readUntilDone } from "./read-until-done.js";
import { ThreadAgent } from "./thread-agent.js";
import { busyWith } from "./thread-run.js";
import type { InTurnParts } from "./waiting/run-in-turn.js";

/** Options of an agent in a tab, in addition to those of AbstractAgent. */
export interface LocalAgentConfig extends AgentConfig {
  readonly agentId: string;
  /**
   * How many of a thread's newest messages it begins with; at least 1, else `agent()` throws RunnerError
   * `invalid-input`. {@link LocalAgent.loadEarlier} loads those before them; agents in the host are given all of them.
   * Absent: the whole thread.
   */
  readonly messageLimit?: number;
  /**
   * A thread that is read whole begins with RUN_STARTED, MESSAGES_SNAPSHOT and RUN_FINISHED of each run, for subscribers
   * that note the run of each message, as CopilotKit does. Default: it comes as one run.
   */
  readonly historyByRun?: boolean;
}

/** What a run is given, as `runAgent` of AG-UI takes it, and what becomes of it where it cannot begin at once. */
export interface LocalRunParameters extends RunAgentParameters {
  /**
   * While another run of the thread is live. Default `reject`. With `queue` it also waits behind those that wait already, and
   * while the thread waits for a person or for results of tools. A run on an edited history (a branch) never waits.
   */
  readonly onBusy?: OnBusy;
  /** While the agent needs the network, and its host has none. Default `fail`. */
  readonly whenOffline?: WhenOffline;
}

const turns = new Lazy(() => loaded(import("./waiting/run-in-turn.js")));

/**
 * An agent that runs in the host, for any AG-UI front end. Its messages and state are those of the thread, whoever runs
 * it, as far as this agent has read: by its own runs, by {@link connectAgent}, or all the time by {@link follow}.
 */
export class LocalAgent extends ThreadAgent {
  /** Undefined until its code is loaded. */
  private follower: ThreadFollower | undefined;
  private follows = 0;
  /** Ends the loading of the follower. */
  private endLoading: (() => void) | undefined;
  /** Number of own runs and readings that stream now: meanwhile the follower has no attachment. */
  private holds = 0;
  /** Emits when {@link detachActiveRun} is called. */
  private readonly detached$ = new Subject<void>();
  /** Resolves when it is known of the last run that may wait whether it does. */
  private turn: Promise<void> = Promise.resolve();
  /** The id of the run that {@link runAfterToolCalls} is about to ask for. */
  private afterToolCalls: string | undefined;
  /** @hidden Emits why the host was not asked to stop a run. */
  readonly unstopped$ = new Subject<Error>();
  /** @hidden Emits when the follower has read the thread, also after it had failed to. */
  readonly caughtUp$ = new Subject<void>();
  /** What the pipeline's next `connect` subscribes to. */
  private session$: Observable<BaseEvent> | undefined;

  /** @hidden Agents are made by `agent()` of a connection. */
  constructor(link: HostLink, config: LocalAgentConfig) {
    super(link, config);
    const { messageLimit, historyByRun, initialState } = config;
    this.messageLimit = messageLimit;
    this.historyByRun = historyByRun;
    if (initialState !== undefined) this.hostState = undefined;
    preloadStreams();
    preloadStage();
    // When the network is gone, it is too late.
    turns.get().catch(() => undefined);
  }

  /** A copy with the same history and subscribers, which follows nothing yet. */
  override clone(): LocalAgent {
    const { agentId, threadId } = this;
    // The base class makes its copy without a constructor; the fields are all that is needed of it.
    const copy = Object.assign(new LocalAgent(this.link, { agentId: agentId!, threadId }), super.clone());
    // The copy has only part of what is still being applied: a snapshot brings the rest.
    const hasPart = this.runState$.value.is === "running" || this.readings > 0 || this.ownRuns.isApplying;
    if (!hasPart) {
      copy.cursor = this.cursor;
      copy.runState$.next(this.runState$.value);
    }
    copy.known = this.known.copy();
    copy.earlier = this.earlier.copy();
    copy.toldOf = this.toldOf;
    copy.messageLimit = this.messageLimit;
    copy.historyByRun = this.historyByRun;
    copy.hostState = this.hostState === this.state ? copy.state : undefined;
    copy.isRunning = false;
    return copy;
  }

  /**
   * Runs the agent in the host, sending only messages that the thread does not have yet, and state only if it was set.
   *
   * A run that waits (`onBusy`, `whenOffline`) is in the log, with its messages, which leave `messages` until it has begun:
   * see `runtime.waiting`. It begins by itself, in whichever host is there, also when this tab is gone.
   *
   * Rejects with RunnerError: `thread-busy` while another run of the thread is live (nothing is lost: run again when it
   * has ended), `offline`, `cancelled` (while it waited), `unknown-agent`, `invalid-input`, a storage code, or one of the
   * connection.
   */
  override async runAgent(given?: LocalRunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const { onBusy = "reject", whenOffline = "fail", runId = randomId(), ...others } = given ?? {};
    const parameters = { ...others, runId };
    const afterToolCalls = runId === this.afterToolCalls;
    // Of this call alone: what the run asks may be answered under its id.
    if (afterToolCalls) this.afterToolCalls = undefined;
    const own = this.ownRuns.ask({ runId, onBusy, afterToolCalls });
    try {
      return await this.runAsked(own, parameters, subscriber, onBusy, whenOffline);
    } finally {
      this.ownRuns.settle(own);
    }
  }

  private async runAsked(
    own: OwnRun,
    parameters: RunAgentParameters,
    subscriber: AgentSubscriber | undefined,
    onBusy: OnBusy,
    whenOffline: WhenOffline,
  ): Promise<RunAgentResult> {
    this.keepToThread();
    if (onBusy === "queue" || whenOffline === "wait") {
      const { messages, ...input } = this.prepareRunAgentInput(parameters);
      // What an earlier call takes along, which the host has not answered yet, is no part of this one.
      const others = new Set(
        this.ownRuns.all.flatMap(({ request }) => request?.input.messages.map(({ id }) => id) ?? []),
      );
      const isOthers = ({ id }: Message): boolean => others.has(id) && this.known.isUnsent(id);
      const request = this.requestOf({ ...input, messages: messages.filter((message) => !isOthers(message)) }, own);
      if (request.partial !== undefined) {
        return this.runInTurn(own, { run: request, onBusy, whenOffline }, parameters, subscriber);
      }
    }
    const { value: run } = this.runState$;
    if (onBusy !== "supersede" && run.is === "running" && run.runId !== own.runId) {
      throw busyWith(this.threadId, run);
    }
    return this.runSession(parameters, subscriber);
  }

  private runSession(parameters: RunAgentParameters, subscriber: AgentSubscriber | undefined): Promise<RunAgentResult> {
    const { accepted } = this.ownRuns;
    this.keepToThread();
    const { threadId } = this;
    return this.session(async () => {
      try {
        return await super.runAgent(parameters, subscriber);
      } finally {
        // A run that was refused, or is in no log, took no changes along.
        if (this.ownRuns.accepted !== accepted && this.isOf(threadId)) this.known.show(this.messages, "all");
      }
    });
  }

  private async runInTurn(
    own: OwnRun,
    request: EnqueueRequest,
    parameters: RunAgentParameters,
    subscriber: AgentSubscriber | undefined,
  ): Promise<RunAgentResult> {
    const { runId } = own;
    const { threadId, input } = request.run;
    const ids = new Set(input.messages.map(({ id }) => id));
    const held = this.messages.filter(({ id }) => ids.has(id));
    const takeOut = (): void => {
      if (this.takeOutUnsent(ids)) this.tellChanged();
    };
    // Somebody else's answer streams: it is not to continue behind a message that comes later.
    if (this.runState$.value.is === "running") takeOut();
    own.request = { ...request.run, onBusy: request.onBusy };
    const before = this.turn;
    let decide!: () => void;
    this.turn = new Promise((resolve) => (own.decide = decide = resolve));
    // In the order of the calls: the next one is asked for when this one has begun, or waits. Before any code is loaded: a
    // page that is closed right now has asked.
    const asked = before.then(() => this.link.call("enqueue", request));
    asked.catch(() => undefined);
    const parts: InTurnParts = {
      link: this.link,
      agent: this,
      decide,
      waits: () => {
        if (own.isAbortAsked === true) this.cancel(threadId, runId);
        own.isAbortAsked = false;
        own.is = "waits";
        // Its run may have begun before this agent is told that it waits.
        takeOut();
        this.waits$.next(runId);
      },
      // The host has said that it may begin: what this agent shows may be behind.
      run: () => this.runSession(parameters, subscriber),
      attach: async () => {
        await this.ownRuns.sessionsEnded();
        if (this.threadId !== threadId) return nothingNew();
        // The run is there: what this agent knows to be open is no reason to refuse it.
        this.pendingInterrupts = [];
        own.isStarted = true;
        return this.runSession(parameters, subscriber);
      },
      follows: () => this.follows > 0,
      caughtUp: () => this.caughtUp(),
    };
    try {
      const { runInTurn } = await turns.get();
      return await runInTurn(parts, request.run, { asked, held }, subscriber);
    } finally {
      decide();
    }
  }

  /**
   * Runs the agent with the results of the thread's waiting tool calls, see `runtime.toolCalls`: whichever tabs call it, one
   * run begins. Rejects with RunnerError `call-over` unless each call has its result and the thread has not gone on; else
   * as {@link runAgent}.
   *
   * @param nextRunId of the waiting calls
   */
  async runAfterToolCalls(
    nextRunId: string,
    parameters: RunAgentParameters = {},
    subscriber?: AgentSubscriber,
  ): Promise<RunAgentResult> {
    this.afterToolCalls = nextRunId;
    return this.runAgent({ ...parameters, runId: nextRunId }, subscriber);
  }

  /** @hidden Whether it is the last run that was started by this agent. */
  isOwnRun(runId: string): boolean {
    return this.ownRuns.last === runId;
  }

  /** @hidden Shows other messages; not by `setMessages`, which makes copies of them. */
  show(messages: Message[]): void {
    this.messages = messages;
    this.tellChanged();
  }

  /** @hidden Whether the thread has had a message of this id, as far as this agent was told. */
  isSent(messageId: string): boolean {
    return !this.known.isUnsent(messageId);
  }

  /**
   * Reads the history, or what is missing of it, then the live run if there is one; resolves at its end. If messages
   * that the agent showed were removed, it reads all of it. Several calls read one after the other. Waits for an active
   * own run, so a hook of that run must not await it.
   */
  override async connectAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const isOther = this.keepToThread();
    if (this.follows > 0) {
      // The follower reads already; what was removed here, or missed by detaching, comes with a snapshot.
      if (isOther || this.follower?.isLeft === true || this.known.lacks(this.messages)) {
        this.cursor = undefined;
        this.follower?.restart();
      }
      await firstValueFrom(merge(this.caughtUp(), this.detached$));
      return nothingNew();
    }
    // An active own run works on the messages that it began with: it and a reading would overwrite one another.
    const before = this.ownRuns.sessionsEnded().then(() => true);
    const detached$ = this.detached$.pipe(map(() => false));
    const isWanted = firstValueFrom(merge(before, detached$));
    const { threadId } = this;
    const release = this.hold();
    const read = async (): Promise<RunAgentResult> => {
      if (!(await isWanted) || !this.isOf(threadId)) return nothingNew();
      if (this.known.lacks(this.messages)) this.cursor = undefined;
      return this.readThread(parameters, subscriber);
    };
    return this.session(() => this.reading(read)).finally(release);
  }

  /** Also ends readings that wait for their turn. Ends no run (L11). */
  override detachActiveRun(): Promise<void> {
    this.detached$.next();
    return super.detachActiveRun();
  }

  /** Stops the run that this agent runs or follows, in whichever host it is, and those that it is about to run. */
  override abortRun(): void {
    const { value: run } = this.runState$;
    this.ownRuns.askAbortOfAll();
    // Those that wait for the live one, or take its place, would begin behind it.
    for (const runId of new Set([...(run.is === "running" ? [run.runId] : []), ...this.ownRuns.live])) {
      this.requestStop(this.toldOf, runId);
    }
  }

  /**
   * Stays attached: first the history, then every run of the thread, started in any tab. Hooks and subscribers are
   * called as for an own run. Goes on after the death of a host.
   *
   * @returns ends the following, and no run
   */
  follow(): () => void {
    this.follows++;
    if (this.keepToThread()) this.follower?.restart();
    // Nobody is told of a failure, so it is tried again.
    this.endLoading ??= readUntilDone(
      async () => void (await this.started()),
      () => undefined,
    );
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      if (--this.follows > 0) return;
      this.endLoading?.();
      this.endLoading = undefined;
      this.follower?.close();
      this.follower = undefined;
    };
  }

  /**
   * Loads a page of earlier messages in front of `messages`, and calls the subscribers' `onMessagesChanged`. A call
   * while one is pending joins it.
   *
   * @param limit at most 500. Default `messageLimit`, else 50
   * @returns the page, oldest first; empty where there are no more. Errors: RunnerError of the connection or the
   *   storage; `invalid-input` if the thread has been rewritten meanwhile: connect again
   */
  loadEarlier(limit = Math.min(this.messageLimit ?? 50, 500)): Promise<readonly Message[]> {
    const { threadId } = this;
    return this.earlier.load(
      (before) => this.link.call("messages", { threadId, before, limit }),
      (page) => {
        // The caller has set another thread meanwhile.
        if (threadId !== this.threadId) return;
        this.known.load(page);
        this.putInFront(page);
        this.tellChanged();
      },
    );
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return defer(() => {
      const { runId } = input;
      const own = this.ownRuns.of(runId);
      const request = this.requestOf(input, own);
      const { threadId } = request;
      const release = this.hold();
      const end = this.ownRuns.begin(own);
      const before = this.cursor;
      let cursor: Cursor | undefined;
      const overlaps = this.readings > 0;
      /**
       * `gap`: before it are runs that this agent has not read, or was reading when it began; or it rewrote the part of
       * the thread that this agent does not have.
       */
      let settled: "no" | "whole" | "gap" = "no";
      let run: LiveRun | undefined;
      const accept = (accepted: LiveRun): void => {
        run = accepted;
        own.decide?.();
        if (run.unrecorded !== true) this.ownRuns.accepted++;
        if (own.isAbortAsked === true) this.requestStop(threadId, runId);
        if (own.is === "unanswered") own.is = "live";
        this.left$.next();
      };
      const framesOf = ({ attachFrames, runFrames }: Streams): Observable<Frame> =>
        own.isStarted === true
          ? attachFrames(this.link, { threadId, agentId: request.agentId, runId }).pipe(
              tap((frame) => frame.type === "run" && accept(frame.run)),
            )
          : runFrames(this.link, request, accept);
      return withStreams((code) =>
        framesOf(code).pipe(
          whenStageIsLoaded(),
          tap((frame) => {
            if (run?.unrecorded === true) return;
            this.noteRun(code, frame);
            if (frame.type !== "settled" || run === undefined) return;
            const last = before?.runIndex ?? -1;
            // Where it begins the thread, what this agent has read was deleted.
            const isNext = !overlaps && run.runIndex === last + 1 && (last < 0 || run.begins !== true);
            settled = isNext && !this.earlier.isMoved ? "whole" : "gap";
            this.cursor = settled === "whole" ? cursor : undefined;
          }),
          mergeMap((frame) => {
            if (run?.unrecorded === true) return this.foreignEventsOf(code, frame);
            cursor = code.cursorBehind(frame, cursor);
            return this.eventsOf(code, frame);
          }),
        ),
      ).pipe(
        catchError((error: unknown) => {
          if (!RunnerError.is(error, "cancelled")) throw error;
          // L12: it was stopped before it began. What the thread waits for is still open.
          return this.stoppedRun(threadId, runId);
        }),
        // A middleware gets each event by itself.
        this.hasMiddlewares ? mergeMap((event) => this.joined.eventsOf(event)) : this.joined.before(),
        finalize(() => {
          end();
          this.refused = run === undefined ? runId : undefined;
          const isRecorded = run !== undefined && run.unrecorded !== true && this.toldOf === threadId;
          if (isRecorded && settled === "no") this.leftMidRun();
          // Only a snapshot puts what is missing into its place, and removes what a branch leaves behind.
          if (isRecorded && (settled !== "whole" || request.partial === undefined)) this.followAnew();
          release();
        }),
      );
    });
  }

  protected override connect(): Observable<BaseEvent> {
    return (this.session$ ?? this.historyEvents()).pipe(this.joined.before());
  }

  /** Reading a thread answers no interrupts, so open ones are no reason to refuse it. */
  protected override async onInitialize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void> {
    if (this.readings === 0) return super.onInitialize(input, subscribers);
    const { pendingInterrupts } = this;
    this.pendingInterrupts = [];
    try {
      await super.onInitialize(input, subscribers);
    } finally {
      this.pendingInterrupts = pendingInterrupts;
    }
  }

  /**
   * Runs a session of the pipeline; its `newMessages` leave out earlier ones that were loaded meanwhile, and those of
   * another thread.
   */
  private async session(work: () => Promise<RunAgentResult>): Promise<RunAgentResult> {
    const { threadId } = this;
    const result = await this.ownRuns.session(work);
    if (!this.isOf(threadId)) return { ...result, newMessages: [] };
    return { ...result, newMessages: result.newMessages.filter(({ id }) => !this.earlier.isLoaded(id)) };
  }

  /** Until it ends, the pipeline reads the thread, and applies no own run. */
  private async reading<T>(read: () => Promise<T>): Promise<T> {
    this.readings++;
    try {
      return await read();
    } finally {
      // Only now, not at the last frame: hooks may delay what came before it.
      this.snapshotsToCome = 0;
      this.readings--;
    }
  }

  private async readThread(parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const result = await super.connectAgent(parameters, subscriber);
    this.known.show(this.messages, "told");
    return result;
  }

  /** An own run or a reading delivers the thread instead of the follower until the returned function is called. */
  private hold(): () => void {
    this.holds++;
    this.follower?.hold();
    return () => {
      if (--this.holds === 0) this.follower?.release();
    };
  }

  /** Messages have changed beside the pipeline. */
  private tellChanged(): void {
    const { messages, state } = this;
    tell(this.subscribers, "onMessagesChanged", { messages, state: state as unknown, agent: this });
  }

  /** Whether what the agent knows, and what it shows, is of this thread. */
  private isOf(threadId: string): boolean {
    return this.toldOf === threadId && this.threadId === threadId;
  }

  /** The events of a run that was stopped and is in no log. */
  private stoppedRun(threadId: string, runId: string): BaseEvent[] {
    const { pendingInterrupts: interrupts } = this;
    const outcome = interrupts.length > 0 ? { type: "interrupt", interrupts } : { type: "cancelled" };
    return [
      { type: EventType.RUN_STARTED, threadId, runId },
      { type: EventType.RUN_FINISHED, threadId, runId, outcome },
    ];
  }

  private requestStop(threadId: string, runId: string): void {
    // Whether it worked shows in the run's end.
    const { agentId } = this;
    const named = { threadId, runId, ...(agentId !== undefined && { agentId }) };
    this.link.call("stop", named).catch((error: unknown) => this.unstopped$.next(asError(error)));
  }

  /** Of a run that was to be stopped before it was known that it waits. */
  private cancel(threadId: string, runId: string): void {
    this.link.call("cancelWaiting", { threadId, runId }).then(
      (waited) => waited || this.requestStop(threadId, runId),
      (error: unknown) => this.unstopped$.next(asError(error)),
    );
  }

  /** Resolves when the follower has read the thread. Errors: why it cannot. */
  private async caughtUp(): Promise<void> {
    await (await this.started())?.caughtUp();
  }

  /** The follower begins again with a snapshot. */
  private followAnew(): void {
    if (this.follower !== undefined) this.follower.restart();
    // It is still being loaded.
    else if (this.follows > 0) this.cursor = undefined;
  }

  /** The follower, once its code is loaded; undefined if nobody follows any more. */
  private async started(): Promise<ThreadFollower | undefined> {
    const code = await streams.get();
    if (this.follows > 0) this.follower ??= this.startFollower(code);
    return this.follower;
  }

  private startFollower(code: Streams): ThreadFollower {
    return new code.ThreadFollower({
      frames: (after) => this.framesAfter(code, this.keepToThread() ? undefined : after, true),
      linkedAnew: (signal) => this.link.linkedAnew(signal),
      cursor: () => {
        this.keepToThread();
        // During a reading the cursor is in the middle of a run.
        return this.readings > 0 ? undefined : this.cursor;
      },
      isHeld: () => this.holds > 0,
      cut: () => this.leftMidRun(),
      caughtUp: () => this.caughtUp$.next(),
      note: (frame) => this.noteRun(code, frame),
      eventsOf: (frame) => this.eventsOf(code, frame),
      settled: (cursor) => {
        const { isMoved } = this.earlier;
        this.cursor = isMoved ? undefined : cursor;
        // Only a snapshot tells what comes before the agent's messages.
        if (isMoved) this.follower?.restart();
      },
      session: async (events$, isWanted) => {
        await this.ownRuns.sessionsEnded();
        if (!isWanted()) return;
        // It was read of a thread that the page has left: the follower goes on with the one that it has set.
        if (!this.isOf(this.toldOf)) return events$.subscribe().unsubscribe();
        this.session$ = events$;
        await this.reading(() => this.readThread().finally(() => (this.session$ = undefined)));
      },
    });
  }
}
