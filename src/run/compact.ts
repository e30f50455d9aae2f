import type {
  ActivityDeltaEvent,
  ActivitySnapshotEvent,
  BaseEvent,
  MessagesSnapshotEvent,
  RunErrorEvent,
  RunFinishedEvent,
  RunStartedEvent,
  StateDeltaEvent,
  StateSnapshotEvent,
} from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import type { AGUIEvent } from "@ag-ui/core";
import { isStep } from "./event-kinds.js";
import { Fold, type ThreadContent } from "./fold.js";
import { cloneJson, equalJson, isRecord } from "./json.js";
import type { PatchResult } from "./json-patch.js";
import { isMergeable, JoinedDeltas, KeyCounts, saysAgain, Window } from "./merged.js";

export const NOTHING: ThreadContent = { messages: [], state: {}, interrupts: [] };

/** A patch that an older build recorded and no reader may be handed. */
const mayHarm = (result: PatchResult | undefined): boolean => result?.is === "unsafe" || result?.is === "exceeds";

/** Fields that name a message or a tool call which the event may create or change. */
const NAMES = ["messageId", "toolCallId", "parentMessageId", "entityId"] as const;

/** As the public `compact`, for events of a log, which has no chunk events. */
export function compactLog(events: readonly BaseEvent[], base: ThreadContent = NOTHING): BaseEvent[] {
  const compactor = new Compactor(base);
  for (const event of events) compactor.add(event);
  return compactor.finish();
}

/**
 * One pass over the events. Its fold knows which messages there are, not their text: deltas are not applied to it.
 */
class Compactor {
  readonly #fold: Fold;
  /** An entry is undefined where its event was merged into another one. */
  readonly #out: (BaseEvent | undefined)[] = [];
  /** Merged events that may still grow, by id of their message or tool call. */
  readonly #growing = new Map<string, JoinedDeltas | Window>();
  /** The state events of the run so far. */
  #states: Window | undefined;
  readonly #stateKeys = new KeyCounts();
  /** Owners of activities as verification knows them: from the events of this run alone. */
  readonly #activityOwners = new Map<string, string | undefined>();
  /** The run that has not ended. */
  #run: RunStartedEvent | undefined;
  #ended = false;
  /** The last MESSAGES_SNAPSHOT, while nothing else has touched messages. */
  #snapshot: { readonly place: number; readonly event: MessagesSnapshotEvent } | undefined;

  constructor(base: ThreadContent) {
    this.#fold = new Fold(base);
  }

  add(event: BaseEvent): void {
    const e = event as AGUIEvent; // an event of another type goes to `default`
    switch (e.type) {
      case EventType.TEXT_MESSAGE_CONTENT:
      case EventType.REASONING_MESSAGE_CONTENT:
        return this.#delta(e, e.messageId);
      case EventType.TOOL_CALL_ARGS:
        return this.#delta(e, e.toolCallId);
      case EventType.ACTIVITY_SNAPSHOT:
      case EventType.ACTIVITY_DELTA:
        return this.#activity(e);
      case EventType.STATE_SNAPSHOT:
      case EventType.STATE_DELTA:
        return this.#state(e);
      case EventType.MESSAGES_SNAPSHOT:
        return this.#messages(e);
      case EventType.RUN_STARTED:
        return this.#runStarted(e);
      case EventType.RUN_FINISHED:
      case EventType.RUN_ERROR:
        return this.#runEnded(e);
      case EventType.CUSTOM:
      case EventType.RAW:
      case EventType.STEP_STARTED:
      case EventType.STEP_FINISHED:
      case EventType.SUBAGENT_STARTED:
      case EventType.SUBAGENT_FINISHED:
      case EventType.SUBAGENT_ERROR:
        this.#out.push(e);
        return;
      default:
        return this.#other(event);
    }
  }

  finish(): BaseEvent[] {
    this.#closeAll();
    const kept: BaseEvent[] = [];
    for (const event of this.#out) {
      if (event === undefined) continue;
      const before = kept[kept.length - 1];
      if (before !== undefined && isStep(event.type) && equalJson(before, event)) continue;
      kept.push(event);
    }
    return kept;
  }

  /** A start, an end, a result, an encrypted value: no delta of what it names may move across it. */
  #other(event: BaseEvent): void {
    this.#snapshot = undefined;
    for (const field of NAMES) {
      const id = event[field];
      if (typeof id === "string") this.#close(id);
    }
    this.#fold.apply(event);
    this.#out.push(event);
  }

  #delta(event: BaseEvent, id: string): void {
    this.#snapshot = undefined;
    const joins = isMergeable(event);
    const growing = this.#growing.get(id);
    if (joins && growing instanceof JoinedDeltas && growing.takes(event)) return growing.add(event);
    this.#close(id);
    const place = this.#out.push(event) - 1;
    if (joins) this.#growing.set(id, new JoinedDeltas(place, event));
  }

  #activity(e: ActivitySnapshotEvent | ActivityDeltaEvent): void {
    this.#snapshot = undefined;
    const id = e.messageId;
    const held = this.#fold.list.get(id);
    const creates = held === undefined && e.type === EventType.ACTIVITY_SNAPSHOT;
    const joins = (creates || held?.role === "activity") && isMergeable(e);
    let window = this.#growing.get(id);
    if (!joins || !(window instanceof Window)) {
      // Replacing another message removes its tool calls.
      if (held !== undefined && held.role !== "activity") this.#closeMessages();
      else this.#close(id);
      window = undefined;
    }
    if (e.type === EventType.ACTIVITY_SNAPSHOT && (e.replace !== false || !this.#activityOwners.has(id))) {
      this.#activityOwners.set(id, e.subagentRunId);
    }
    if (mayHarm(this.#fold.apply(e))) return;
    const place = this.#out.push(e) - 1;
    if (!joins) return;
    if (window === undefined) this.#growing.set(id, (window = new Window()));
    window.add(place, e);
  }

  /** A patch that does not apply is left out. */
  #state(event: StateSnapshotEvent | StateDeltaEvent): void {
    const joins = isMergeable(event);
    if (!joins) this.#closeState();
    const before = this.#fold.stateVersion;
    if (mayHarm(this.#fold.apply(event))) return;
    const changed = this.#fold.stateVersion !== before;
    if (changed && event.type === EventType.STATE_DELTA) this.#stateKeys.changed(event.delta.length);
    if (!joins) this.#out.push(event);
    else if (changed) {
      this.#states ??= new Window();
      this.#states.add(this.#out.push(event) - 1, event);
    }
  }

  #messages(event: MessagesSnapshotEvent): void {
    this.#closeMessages();
    if (this.#snapshot !== undefined && saysAgain(this.#snapshot.event, event)) {
      this.#out[this.#snapshot.place] = undefined;
    }
    for (const message of event.messages) {
      if (message.role === "activity") this.#activityOwners.set(message.id, message.subagentRunId);
    }
    this.#fold.apply(event);
    this.#snapshot = { place: this.#out.push(event) - 1, event };
  }

  /** A repeat of the run that is open, with nothing new, is left out. */
  #runStarted(event: RunStartedEvent): void {
    const messages = event.input?.messages ?? [];
    const open = this.#run;
    const repeats = open?.runId === event.runId && open.threadId === event.threadId;
    if (repeats && messages.every(({ id }) => this.#fold.list.get(id) !== undefined)) return;
    this.#closeAll();
    this.#snapshot = undefined;
    this.#run = event;
    this.#ended = false;
    this.#activityOwners.clear();
    for (const { role, id, subagentRunId } of messages) {
      if (role === "activity" && !this.#activityOwners.has(id)) this.#activityOwners.set(id, subagentRunId);
    }
    this.#out.push(this.#withoutHeld(event));
    this.#fold.apply(event);
  }

  /**
   * The event without the messages that a reader holds and would ignore. Where one of them has an owner, all stay:
   * verification learns from them who owns the untagged events of those messages.
   */
  #withoutHeld(event: RunStartedEvent): RunStartedEvent {
    const { input } = event;
    const messages = input?.messages ?? [];
    if (input === undefined || messages.some(({ subagentRunId }) => subagentRunId !== undefined)) return event;
    const seen = new Set<string>();
    const fresh = messages.filter(({ id }) => {
      if (seen.has(id) || this.#fold.list.get(id) !== undefined) return false;
      seen.add(id);
      return true;
    });
    return fresh.length === messages.length ? event : { ...event, input: { ...input, messages: fresh } };
  }

  /** A terminal event after the run's end is dropped unless it changes the interrupts. */
  #runEnded(event: RunFinishedEvent | RunErrorEvent): void {
    const before = this.#fold.interrupts;
    this.#fold.apply(event);
    if (this.#ended && equalJson(before, this.#fold.interrupts)) return;
    this.#closeAll();
    this.#snapshot = undefined;
    this.#run = undefined;
    this.#ended = true;
    this.#out.push(event);
  }

  #closeAll(): void {
    this.#closeMessages();
    this.#closeState();
  }

  #closeMessages(): void {
    for (const id of this.#growing.keys()) this.#close(id);
  }

  #close(id: string): void {
    const growing = this.#growing.get(id);
    if (growing === undefined) return;
    this.#growing.delete(id);
    if (growing instanceof Window) return this.#closeActivity(id, growing);
    this.#out[growing.place] = growing.merged() ?? this.#out[growing.place];
  }

  /**
   * One snapshot, in the place of the first event, where the message is created. It also tells verification the owner of
   * the activity, so nothing is merged unless the run has named the same owner.
   */
  #closeActivity(id: string, window: Window): void {
    const held = this.#fold.list.get(id);
    if (held?.role !== "activity" || !isRecord(held.content)) return;
    const { activityType, content, subagentRunId } = held;
    if (!this.#activityOwners.has(id) || this.#activityOwners.get(id) !== subagentRunId) return;
    const snapshot: BaseEvent = {
      type: EventType.ACTIVITY_SNAPSHOT,
      messageId: id,
      activityType,
      content,
      ...(subagentRunId === undefined ? {} : { subagentRunId }),
      ...window.common("first"),
    };
    if (window.isMoreThan(snapshot)) this.#merge(window, "first", { ...snapshot, content: cloneJson(content) });
  }

  /** One snapshot, in the place of the last event, so that no earlier event sees a later state. */
  #closeState(): void {
    const window = this.#states;
    this.#states = undefined;
    const { state } = this.#fold;
    if (window === undefined) return;
    const event: BaseEvent = {
      type: EventType.STATE_SNAPSHOT,
      snapshot: state,
      ...window.owner,
      ...window.common("last"),
    };
    if (window.isMoreThan(event, this.#stateKeys))
      this.#merge(window, "last", { ...event, snapshot: cloneJson(state) });
  }

  #merge({ places }: Window, at: "first" | "last", event: BaseEvent): void {
    for (const place of places) this.#out[place] = undefined;
    this.#out[at === "first" ? places[0]! : places[places.length - 1]!] = event;
  }
}
