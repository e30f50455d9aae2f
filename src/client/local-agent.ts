import type {
  AgentConfig,
  AgentSubscriber,
  BaseEvent,
  Message,
  RunAgentInput,
  RunAgentParameters,
  RunAgentResult,
} from "@ag-ui/client";
import { defer, finalize, mergeMap, type Observable, tap } from "rxjs";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import type { LiveRun } from "../wire/shapes.js";
import { cursorBehind } from "../wire/thread-events.js";
import { preloadStage } from "./apply/applying-agent.js";
import { tell } from "./apply/hooks.js";
import { ThreadFollower } from "./follower.js";
import { runFrames } from "./frames.js";
import type { HostLink } from "./host-link.js";
import { KnownMessages } from "./known-messages.js";
import { ThreadAgent } from "./thread-agent.js";

/** What an agent of a tab is made with, beside the fields of AbstractAgent. */
export interface LocalAgentConfig extends AgentConfig {
  readonly agentId: string;
  /**
   * How many of the newest messages of a thread it begins with; at least 1. The ones before them are loaded where they are
   * wanted, by {@link LocalAgent.loadEarlier}; agents in the host are given all of them. Absent: the whole thread.
   * The constructor throws RunnerError `invalid-input` where it is no such number.
   */
  readonly messageLimit?: number;
}

const nothingNew = (): RunAgentResult => ({ result: undefined, newMessages: [] });

/**
 * An agent that runs in the host, for any AG-UI front end. Its messages and state are those of the thread, whoever runs
 * it, as far as this agent was told: by its own runs, by {@link connectAgent}, or all the time by {@link follow}.
 */
export class LocalAgent extends ThreadAgent {
  // Set in `adopt`, not by initialisers: `clone` makes its copy without running a constructor.
  /** How far the own run was seen. */
  declare private ownCursor: Cursor | undefined;
  declare private follower: ThreadFollower | undefined;
  declare private follows: number;
  /** Own runs and readings that stream now: meanwhile the follower has no attachment. */
  declare private holds: number;
  /** How often it was detached. */
  declare private detached: number;
  /** Ends the readings of a following agent that wait for its follower. */
  declare private waiting: Set<() => void>;
  /** What the next `connect` of the pipeline subscribes to. */
  declare private session$: Observable<BaseEvent> | undefined;

  /** @hidden Agents are made by `agent()` of a connection. */
  constructor(link: HostLink, config: LocalAgentConfig) {
    super(config);
    const { messageLimit } = config;
    // The host would refuse it each time, and a follower has nobody to tell.
    if (messageLimit !== undefined && !(Number.isSafeInteger(messageLimit) && messageLimit >= 1)) {
      const message = "messageLimit must be a whole number, at least 1";
      throw new RunnerError("invalid-input", { field: "messageLimit" }, { message });
    }
    this.adopt(link, new KnownMessages(), undefined);
    this.messageLimit = messageLimit;
    if (config.initialState !== undefined) this.hostState = undefined;
    preloadStage();
  }

  protected override adopt(link: HostLink, known: KnownMessages, cursor: Cursor | undefined): void {
    super.adopt(link, known, cursor);
    this.follower = undefined;
    this.follows = 0;
    this.holds = 0;
    this.detached = 0;
    this.waiting = new Set();
    this.session$ = undefined;
    this.ownCursor = undefined;
  }

  /** A copy with the same history and subscribers that follows nothing yet. */
  override clone(): LocalAgent {
    const copy = super.clone() as LocalAgent;
    const stateSet = this.hostState !== this.state;
    // What is still being applied a copy has a part of: only a snapshot brings the rest.
    const hasPart = this.runState$.value.is === "running" || this.readings > 0 || this.ownRuns.isApplying;
    copy.adopt(this.link, this.known.copy(), hasPart ? undefined : this.cursor);
    if (!hasPart) copy.runState$.next(this.runState$.value);
    copy.toldOf = this.toldOf;
    copy.messageLimit = this.messageLimit;
    copy.earlier = this.earlier.copy();
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
    this.keepToThread();
    const { value: run } = this.runState$;
    if (run.is === "running" && run.runId !== parameters?.runId) {
      throw new RunnerError("thread-busy", { threadId: this.threadId, runId: run.runId });
    }
    const { accepted } = this.ownRuns;
    return this.session(async () => {
      try {
        return await super.runAgent(parameters, subscriber);
      } finally {
        // Nothing went with a run that was refused, or stands in no log.
        if (this.ownRuns.accepted !== accepted) this.known.show(this.messages, "all");
      }
    });
  }

  /**
   * The history, or what is missing of it, then the live run if there is one; resolves at its end. Where messages that it
   * showed were taken out, all of it. Several calls read one after the other. Waits for an own run
   * that is under way: a hook of that run must not await it.
   */
  override async connectAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const { follower } = this;
    if (follower !== undefined) {
      // It does that already; what was taken out here, or missed by a detachment, comes with a snapshot.
      if (follower.isLeft || this.known.lacks(this.messages)) {
        this.cursor = undefined;
        follower.restart();
      }
      let leave!: () => void;
      const left = new Promise<void>((resolve) => (leave = resolve));
      this.waiting.add(leave);
      await Promise.race([follower.caughtUp(), left]).finally(() => this.waiting.delete(leave));
      return nothingNew();
    }
    this.keepToThread();
    // An own run that is under way has the messages that it began with: it and a reading would overwrite one another.
    const before = this.ownRuns.sessionsEnded();
    const { detached } = this;
    const release = this.hold();
    this.readings++;
    return this.session(async () => {
      try {
        await before;
        if (this.detached !== detached) return nothingNew();
        if (this.known.lacks(this.messages)) this.cursor = undefined;
        const result = await super.connectAgent(parameters, subscriber);
        this.known.show(this.messages, "told");
        return result;
      } finally {
        // Not with the last frame: hooks may hold back what came before it.
        this.snapshotsToCome = 0;
        this.readings--;
        release();
      }
    });
  }

  /** Readings that wait for their turn end by it, too. No run does. */
  override detachActiveRun(): Promise<void> {
    this.detached++;
    for (const leave of this.waiting) leave();
    return super.detachActiveRun();
  }

  /** Stops the run that this agent is running or following, in whichever host it is. */
  override abortRun(): void {
    const { value: run } = this.runState$;
    for (const runId of run.is === "running" ? [run.runId] : this.ownRuns.live) {
      this.ownRuns.askAbort(runId);
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
    if (this.follower === undefined) this.keepToThread();
    this.follower ??= this.startFollower();
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      if (--this.follows > 0) return;
      this.follower?.close();
      this.follower = undefined;
    };
  }

  /**
   * Puts the messages before the first one in front of `messages`, a page of them; subscribers are told
   * (`onMessagesChanged`). A call while one is under way is that one.
   *
   * @param limit at most so many, at most 500. Default `messageLimit`, else 50
   * @returns the page, oldest first; empty where there are none. Errors: RunnerError of the connection or the storage;
   *   `invalid-input` where the thread has been rewritten meanwhile: connect again
   */
  loadEarlier(limit = Math.min(this.messageLimit ?? 50, 500)): Promise<readonly Message[]> {
    const { threadId } = this;
    return this.earlier.load(
      (before) => this.link.call("messages", { threadId, before, limit }),
      (page) => {
        this.known.load(page);
        // A snapshot that shows less than there was may wait for a hook: then some of the page are here still.
        const loaded = new Set(page.map(({ id }) => id));
        this.messages = [...page, ...this.messages.filter(({ id }) => !loaded.has(id))];
        const { messages, state } = this;
        tell(this.subscribers, "onMessagesChanged", { messages, state: state as unknown, agent: this });
      },
    );
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return defer(() => {
      const { runId } = input;
      const request = this.requestOf(input);
      const release = this.hold();
      this.ownRuns.begin(runId);
      const before = this.cursor;
      const overlaps = this.readings > 0;
      /**
       * `gap`: runs stand before it that this agent was not told of, or was being told of when it began; or it rewrote the
       * part of the thread that this agent does not have.
       */
      let settled: "no" | "whole" | "gap" = "no";
      let run: LiveRun | undefined;
      const frames$ = runFrames(this.link, request, (accepted) => {
        run = accepted;
        if (run.unrecorded !== true) this.ownRuns.accepted++;
        if (this.ownRuns.isAbortAsked(runId)) this.requestStop(runId);
      });
      return frames$.pipe(
        tap((frame) => {
          if (run?.unrecorded === true) return;
          this.noteRun(frame);
          if (frame.type !== "settled" || run === undefined) return;
          const isNext = !overlaps && run.runIndex === (before?.runIndex ?? -1) + 1;
          settled = isNext && !this.earlier.isMoved ? "whole" : "gap";
          this.cursor = settled === "whole" ? this.ownCursor : undefined;
        }),
        mergeMap((frame) => {
          if (run?.unrecorded === true) return this.foreignEventsOf(frame);
          this.ownCursor = cursorBehind(frame, this.ownCursor);
          return this.eventsOf(frame);
        }),
        // What a middleware does with events, it does with each.
        this.hasMiddlewares ? mergeMap((event) => this.joined.eventsOf(event)) : this.joined.before(),
        finalize(() => {
          this.ownRuns.end(runId);
          const isRecorded = run !== undefined && run.unrecorded !== true;
          if (isRecorded && settled === "no") this.leftMidRun();
          // Only a snapshot puts what is missing into its place, and takes away what a branch leaves behind.
          if (isRecorded && (settled !== "whole" || request.partial === undefined)) this.follower?.restart();
          release();
        }),
      );
    });
  }

  protected override connect(): Observable<BaseEvent> {
    return (this.session$ ?? this.historyEvents()).pipe(this.joined.before());
  }

  /** Reading a thread answers no interrupt, so open ones are no reason to refuse it. */
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

  /** Runs a session of the pipeline. What was loaded of the thread's earlier part meanwhile is no news of it. */
  private async session(work: () => Promise<RunAgentResult>): Promise<RunAgentResult> {
    const result = await this.ownRuns.session(work);
    return { ...result, newMessages: result.newMessages.filter(({ id }) => !this.earlier.isLoaded(id)) };
  }

  /** An own run or a reading brings the thread instead of the follower, until what this returns is called. */
  private hold(): () => void {
    this.holds++;
    this.follower?.hold();
    return () => {
      if (--this.holds === 0) this.follower?.release();
    };
  }

  private requestStop(runId: string): void {
    // Whether it arrived shows in the run's end.
    const { threadId, agentId } = this;
    const named = { threadId, runId, ...(agentId !== undefined && { agentId }) };
    this.link.call("stop", named).catch(() => undefined);
  }

  private startFollower(): ThreadFollower {
    return new ThreadFollower({
      frames: (after) => this.framesAfter(after, true),
      // The cursor of a reading that is under way stands in the middle of a run.
      cursor: () => (this.readings > 0 ? undefined : this.cursor),
      isHeld: () => this.holds > 0,
      cut: () => this.leftMidRun(),
      note: (frame) => this.noteRun(frame),
      eventsOf: (frame) => this.eventsOf(frame),
      settled: (cursor) => {
        const { isMoved } = this.earlier;
        this.cursor = isMoved ? undefined : cursor;
        // Only a snapshot tells what stands before the messages that there are.
        if (isMoved) this.follower?.restart();
      },
      session: async (events$, isWanted) => {
        await this.ownRuns.sessionsEnded();
        if (!isWanted()) return;
        this.session$ = events$;
        this.readings++;
        try {
          await super.connectAgent();
          this.known.show(this.messages, "told");
        } finally {
          this.session$ = undefined;
          this.snapshotsToCome = 0;
          this.readings--;
        }
      },
    });
  }
}
