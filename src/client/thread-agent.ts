import type {
  AgentConfig,
  AgentStateMutation,
  AgentSubscriber,
  BaseEvent,
  MessagesSnapshotEvent,
  RunAgentInput,
} from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { BehaviorSubject, filter, finalize, mergeMap, Subject, takeUntil, takeWhile, tap, type Observable } from "rxjs";
import { randomId } from "../platform/ids.js";
import { checkKind, OBJECT } from "../run/options.js";
import type { Cursor } from "../run/types.js";
import type { Frame, RunRequest } from "../wire/shapes.js";
import { ApplyingAgent, whenStageIsLoaded } from "./apply/applying-agent.js";
import { EarlierMessages } from "./earlier-messages.js";
import type { HostLink } from "./host-link.js";
import { KnownMessages } from "./known-messages.js";
import { withStreams, type Streams } from "./late-streams.js";
import { OwnRuns, type OwnRun } from "./own-runs.js";
import type { ThreadRun } from "./thread-run.js";

/** What an agent knows of its thread: how far it has read, what it was told, and what it asks its host for. */
export abstract class ThreadAgent extends ApplyingAgent {
  protected readonly runState$ = new BehaviorSubject<ThreadRun>({ is: "idle" });
  /** The thread's run as this agent knows it; replays the latest. */
  readonly run$: Observable<ThreadRun> = this.runState$.asObservable();
  protected readonly ownRuns = new OwnRuns();
  /** The thread that this state belongs to; the caller may set another `threadId` at any time. */
  protected toldOf = this.threadId;
  /** After the last settled run that this agent has seen whole; undefined: it has to begin with a snapshot. */
  protected cursor: Cursor | undefined;
  protected messageLimit: number | undefined;
  protected historyByRun: boolean | undefined;
  /** Emits when the agent is of another thread, or might leave a run that it could not leave before. */
  protected readonly left$ = new Subject<void>();
  /** @hidden Emits the ids of this agent's runs that begin to wait in the log. */
  readonly waits$ = new Subject<string>();
  /** @hidden Who executes the run of this id, where that is another agent than `agentId`. */
  runsAs: { readonly runId: string; readonly agentId: string | undefined } | undefined;
  /** @hidden The id of the own run that ended last, if the host did not take it. */
  refused: string | undefined;

  constructor(
    protected readonly link: HostLink,
    config: AgentConfig,
  ) {
    super(config);
    checkKind("link", link, OBJECT);
  }

  /**
   * What is known of another thread does not apply: the current one is sent whole, and read from its beginning.
   *
   * @returns whether it is another one than before
   */
  protected keepToThread(): boolean {
    if (this.toldOf === this.threadId) return false;
    this.toldOf = this.threadId;
    this.known = new KnownMessages();
    this.cursor = undefined;
    this.hostState = undefined;
    this.earlier = new EarlierMessages();
    this.pendingInterrupts = [];
    this.runState$.next({ is: "idle" });
    this.left$.next();
    return true;
  }

  /** What streams is of its own thread: it ends here once the page has set another one, and goes on in the host. */
  protected override apply(
    input: RunAgentInput,
    events$: Observable<BaseEvent>,
    subscribers: AgentSubscriber[],
  ): Observable<AgentStateMutation> {
    const { threadId, runId } = input;
    const left$ = this.left$.pipe(filter(() => this.toldOf !== threadId && !this.ownRuns.isUnanswered(runId)));
    const own$ = events$.pipe(
      takeUntil(left$),
      takeWhile(() => this.threadId === threadId),
    );
    return super.apply(input, own$, subscribers);
  }

  protected requestOf(input: RunAgentInput, { request, afterToolCalls, onBusy }: OwnRun): RunRequest {
    // The page may have set another thread while hooks were awaited.
    const { threadId } = input;
    if (request?.threadId === threadId) return request;
    const agentId = (input.runId === this.runsAs?.runId ? this.runsAs.agentId : this.agentId)!;
    const after = {
      ...(afterToolCalls === true && { afterToolCalls }),
      ...(onBusy === "supersede" && { onBusy }),
    };
    const news = this.known.news(input.messages);
    if (news === undefined) {
      const cut = this.known.cut(input.messages, this.earlier.before === undefined);
      return { threadId, agentId, input, cut, ...after };
    }
    const stateSet = this.state !== this.hostState;
    return {
      threadId,
      agentId,
      ...after,
      input: { ...input, messages: [...news], ...(!stateSet && { state: {} }) },
      // During a reading the state may be behind the cursor.
      partial: { stateSet, ...(this.cursor !== undefined && this.readings === 0 && { at: this.cursor }) },
    };
  }

  protected framesAfter({ attachFrames }: Streams, after: Cursor | undefined, follow: boolean): Observable<Frame> {
    const { threadId } = this;
    const held = this.messages.filter(({ id }) => !this.known.isUnsent(id)).length;
    const { messageLimit } = this;
    return attachFrames(this.link, {
      threadId,
      agentId: this.agentId,
      after,
      holds: held > 0,
      follow,
      named: this.historyByRun,
      // An agent that has loaded more keeps about as much.
      ...(messageLimit !== undefined && { limit: Math.max(messageLimit, held) }),
    }).pipe(whenStageIsLoaded());
  }

  /** Everything that this agent has not seen, up to the end of the live run. */
  protected historyEvents(): Observable<BaseEvent> {
    const { toldOf } = this;
    return withStreams((code) =>
      this.framesAfter(code, this.cursor, false).pipe(
        tap((frame) => {
          this.noteRun(code, frame);
          this.cursor = code.cursorBehind(frame, this.cursor);
        }),
        mergeMap((frame) => this.eventsOf(code, frame)),
      ),
    ).pipe(
      finalize(() => {
        if (this.toldOf !== toldOf) return;
        if (this.earlier.isMoved) this.cursor = undefined;
        if (this.runState$.value.is === "running") this.leftMidRun();
      }),
    );
  }

  /** The stream of a run that this agent has seen part of is gone: only a snapshot brings the rest. */
  protected leftMidRun(): void {
    this.cursor = undefined;
    if (this.ownRuns.live.length > 0) return;
    // Whether it still runs is unknown here; the host knows, and refuses a second run.
    this.runState$.next({ is: "idle" });
  }

  protected eventsOf(code: Streams, frame: Frame): readonly BaseEvent[] {
    let events = code.eventsOfFrame(frame);
    if (frame.type === "prelude") {
      if (this.pendingInterrupts.length > 0) events = withoutInterrupts(events);
      this.known.beginAnew();
      const snapshots = events.filter(({ type }) => type === EventType.MESSAGES_SNAPSHOT);
      this.snapshotsToCome = snapshots.length;
      const last = snapshots.at(-1) as MessagesSnapshotEvent | undefined; // its type says so
      this.earlier.begin(frame.earlier === true ? last?.messages[0]?.id : undefined);
    }
    for (const event of events) this.known.note(event);
    if (frame.type === "chunk") {
      this.foreignEventsOf(code, frame);
      for (const event of events) if (event.type === EventType.MESSAGES_SNAPSHOT) this.noteRetold(event);
    }
    return events;
  }

  /** The events of a frame that are not part of the thread. */
  protected foreignEventsOf({ eventsOfFrame }: Streams, frame: Frame): readonly BaseEvent[] {
    if (frame.type === "chunk") frame.chunk.entries.forEach((entry) => this.joined.note(entry));
    return eventsOfFrame(frame);
  }

  private noteRetold(event: BaseEvent): void {
    const { messages } = event as MessagesSnapshotEvent; // its type says so
    const held = this.messages.filter(({ id }) => !this.known.isUnsent(id));
    this.earlier.retold(messages, held);
  }

  /** Keeps `run$` up to date. A run is over at its terminal event: a follow-up run may be started then. */
  protected noteRun({ threadRunAfter }: Streams, frame: Frame): void {
    const state = threadRunAfter(this.runState$.value, frame);
    if (state !== this.runState$.value) this.runState$.next(state);
  }
}

/**
 * The events of a thread whose last run failed, and that has no open interrupts: only RUN_FINISHED tells a reader that those
 * of another branch are none of this one.
 */
function withoutInterrupts(events: readonly BaseEvent[]): readonly BaseEvent[] {
  const isTold = events.some(({ type }) => type === EventType.RUN_FINISHED);
  if (isTold || events.at(-1)?.type !== EventType.RUN_ERROR) return events;
  const ids = { threadId: events[0]?.["threadId"] as unknown, runId: randomId() };
  return [{ type: EventType.RUN_STARTED, ...ids }, { type: EventType.RUN_FINISHED, ...ids }, ...events];
}
