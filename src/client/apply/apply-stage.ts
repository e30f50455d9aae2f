import {
  defaultApplyEvents,
  EventType,
  type AGUIEvent,
  type AbstractAgent,
  type ActivityDeltaEvent,
  type AgentStateMutation,
  type AgentSubscriber,
  type BaseEvent,
  type Message,
  type MessagesSnapshotEvent,
  type RunAgentInput,
  type RunFinishedEvent,
  type State,
  type ToolCall,
} from "@ag-ui/client";
import { lastValueFrom, of } from "rxjs";
import { Fold, textOf } from "../../run/fold.js";
import { isForgetting } from "../../run/prelude.js";
import { holdsNothing } from "../../run/run-names.js";
import { withPage } from "../earlier-messages.js";
import { hasHook, hookOf, tell } from "./hooks.js";
import { runHooks, type Given } from "./run-hooks.js";
import { done, type Steps } from "./steps.js";

export interface StageParts {
  readonly agent: AbstractAgent;
  /** The agent's messages at the start; nobody writes to the list. */
  readonly messages: readonly Message[];
  readonly input: RunAgentInput;
  /** The current subscribers. */
  readonly subscribers: () => readonly AgentSubscriber[];
  /**
   * Called once for each MESSAGES_SNAPSHOT: how many of the thread, whole and in its order, come from this one on. (An
   * agent's has no order: 0.)
   */
  readonly snapshotsToCome: () => number;
  /** The thread has never had a message of this id. */
  readonly isUnsent: (id: string) => boolean;
  /** It was loaded from the thread's earlier part, since the last prelude arrived. */
  readonly isLoaded: (id: string) => boolean;
  /** The agent has only the last messages of the thread. */
  readonly isPart: () => boolean;
}

/** What an event continues, as it was before the hooks of the event. */
interface Subject {
  readonly message?: Message | undefined;
  readonly call?: ToolCall | undefined;
}

type Handed = readonly AgentStateMutation[];

function withMetadata<T extends Message | ToolCall>(target: T, { metadata }: BaseEvent): T {
  return metadata === undefined ? target : { ...target, metadata: { ...target.metadata, ...metadata } };
}

function goneOn({ message, call }: Subject, event: BaseEvent): Subject {
  return { message: message && withMetadata(message, event), call: call && withMetadata(call, event) };
}

/**
 * Applies events to messages and state and calls the hooks of subscribers, with the semantics of the default apply
 * stage of `@ag-ui/client`. That one clones all messages, or the state, for each event; this one copies only what the
 * event changes.
 *
 * Copy-on-write: what was handed out never changes. Each list of messages is a new array; messages and parts of the
 * state that changed are new objects, the others are the same objects as before.
 *
 * Two deviations. In development the client gives hooks frozen copies; here hooks get the objects themselves. And if
 * the hook of an activity's event returns messages, the event is applied to those by id, not by the index in the old
 * ones; so is its metadata, also where its patch is refused.
 */
export class ApplyStage {
  readonly #parts: StageParts;
  readonly #fold: Fold;
  /** What hooks are given; renewed after a change. */
  #shown: { readonly messages: Message[]; readonly state: State } | undefined;
  /** The last mutation, which the agent may not have taken over yet. */
  #handedOut: AgentStateMutation | undefined;
  #messagesChanged = false;
  #stateChanged = false;
  /** If the current event is a MESSAGES_SNAPSHOT of the whole thread: 1, or more if others follow it. */
  #snapshotsToCome = 0;
  /** Ids of the run's tool calls, and of those that were answered. */
  #started = new Set<string>();
  #answered = new Set<string>();

  constructor(parts: StageParts) {
    this.#parts = parts;
    const state = parts.input.state as State;
    this.#fold = new Fold({ messages: parts.messages, state, interrupts: [] });
  }

  /**
   * Applies an event. Call it for the next event when this one is done.
   *
   * @returns what the agent takes over; a promise only if a hook has to be awaited
   */
  take(event: BaseEvent): Handed | Promise<Handed> {
    return done(this.#take(event));
  }

  /** Changes the messages beside the events, for example by a page of the thread's earlier part. */
  edit(change: (messages: readonly Message[]) => Message[]): void {
    this.#change(() => this.#fold.list.reset(change(this.#fold.messages)));
    if (this.#handedOut?.messages !== undefined) this.#handedOut.messages = this.#fold.share().messages;
  }

  *#take(event: BaseEvent): Steps<Handed> {
    const log = this.#parts.agent.debugLogger;
    const { type } = event;
    this.#snapshotsToCome = type === EventType.MESSAGES_SNAPSHOT ? this.#parts.snapshotsToCome() : 0;
    if ((yield* this.#hooks("onEvent", () => ({ event }))).stopPropagation === true) {
      log?.event("APPLY", "Event dropped:", event, { type, reason: "stopPropagation by subscriber" });
      return this.#handOut();
    }
    log?.event("APPLY", "Event applied:", event, { type });
    const subject = this.#subjectOf(event);
    if (this.#isMissing(event, subject)) return this.#handOut();
    const mutation = yield* this.#hooks(hookOf(type), () => this.#given(event, subject));
    if (type === EventType.RUN_STARTED) {
      // Even if a hook stopped it.
      this.#started = new Set();
      this.#answered = new Set();
    }
    const isStopped = mutation.stopPropagation === true;
    // As in the client, what an event continues is looked up before its hooks: if these return other messages, it
    // continues something that no longer exists.
    const isLost = mutation.messages !== undefined && (subject.message ?? subject.call) !== undefined;
    const added = isStopped || isLost ? undefined : this.#apply(event);
    const left = !isLost ? this.#subjectOf(event) : isStopped ? subject : goneOn(subject, event);
    const told = this.#announce(event, left, added);
    if (type === EventType.ACTIVITY_SNAPSHOT && told.length > 0) yield Promise.all(told);
    return this.#handOut();
  }

  #has(hook: string): boolean {
    return hasHook(this.#parts.subscribers(), hook);
  }

  #common(): Given {
    const { agent, input } = this.#parts;
    this.#shown ??= this.#fold.share();
    return { ...this.#shown, agent, input };
  }

  *#hooks(name: string, more: () => object | Promise<object>): Steps<AgentStateMutation> {
    if (!this.#has(name)) return {};
    const given = yield more();
    const common = this.#common();
    const mutation = yield* runHooks(this.#parts.subscribers(), name, { ...(given as object), ...common });
    const { messages, state } = mutation;
    if (messages !== undefined) {
      // The hook saw no page that was loaded while it worked.
      const seen = new Set(common.messages);
      const page = this.#fold.messages.filter((message) => !seen.has(message) && this.#parts.isLoaded(message.id));
      this.#change(() => this.#fold.list.reset(withPage(page, messages)));
    }
    if (state !== undefined) this.#change(() => this.#fold.apply({ type: EventType.STATE_SNAPSHOT, snapshot: state }));
    return mutation;
  }

  /** What the hook of an event is given in addition to {@link Given}. */
  #given(event: BaseEvent, { message, call }: Subject): object | Promise<object> {
    const e = event as AGUIEvent; // what the pipeline lets through was checked
    if (message !== undefined) {
      return { event, [`${e.type.startsWith("TEXT") ? "text" : "reasoning"}MessageBuffer`]: textOf(message.content) };
    }
    if (call !== undefined) return givenOfCall(this.#parts.input, event, call);
    switch (e.type) {
      case EventType.ACTIVITY_SNAPSHOT:
      case EventType.ACTIVITY_DELTA: {
        const existingMessage = this.#fold.list.get(e.messageId);
        const activityMessage = existingMessage?.role === "activity" ? existingMessage : undefined;
        return { event, activityMessage, ...(e.type === EventType.ACTIVITY_SNAPSHOT && { existingMessage }) };
      }
      case EventType.RUN_FINISHED:
        return { event, ...this.#ending(e) };
      default:
        return { event };
    }
  }

  #ending({ outcome, result }: RunFinishedEvent): object {
    if (outcome?.type === "interrupt") return { outcome: "interrupt", interrupts: outcome.interrupts };
    if (outcome?.type === "cancelled") return { outcome: "cancelled" };
    const named = outcome?.pendingToolCallIds ?? [];
    const pending = named.length > 0 ? named : [...this.#started].filter((id) => !this.#answered.has(id));
    return { outcome: "success", result, pendingToolCallIds: [...pending] };
  }

  #subjectOf(event: BaseEvent): Subject {
    const e = event as AGUIEvent;
    switch (e.type) {
      case EventType.TEXT_MESSAGE_CONTENT:
      case EventType.TEXT_MESSAGE_END:
      case EventType.REASONING_MESSAGE_CONTENT:
      case EventType.REASONING_MESSAGE_END:
        return { message: this.#text(e.messageId) };
      case EventType.TOOL_CALL_ARGS:
      case EventType.TOOL_CALL_END:
        return { call: this.#fold.list.call(e.toolCallId)?.call };
      default:
        return {};
    }
  }

  /** The message with this id, unless it is an activity, which has no text. */
  #text(id: string): Message | undefined {
    const message = this.#fold.list.get(id);
    return message?.role === "activity" ? undefined : message;
  }

  /** Whether the event continues something that does not exist: then only a warning tells of it. */
  #isMissing(event: BaseEvent, subject: Subject): boolean {
    const isPatch = event.type === EventType.ACTIVITY_DELTA;
    const isThere = isPatch
      ? this.#fold.list.get((event as ActivityDeltaEvent).messageId)?.role === "activity"
      : Object.values(subject).every((its) => its !== undefined);
    if (!isThere) console.warn(`${event.type}: there is no '${String(event["messageId"] ?? event["toolCallId"])}'`);
    return !isThere;
  }

  /** @returns the message that the event brought complete */
  #apply(event: BaseEvent): Message | undefined {
    const e = event as AGUIEvent;
    if (e.type === EventType.TOOL_CALL_START) this.#started.add(e.toolCallId);
    if (e.type === EventType.TOOL_CALL_RESULT) this.#answered.add(e.toolCallId);
    if (this.#snapshotsToCome > 0) {
      this.#putThread(event);
      return undefined;
    }
    const shown = this.#parts.isPart() ? shownPart(event, (id) => this.#fold.list.get(id) !== undefined) : event;
    const patch = this.#change(() => this.#fold.apply(shown));
    if (patch !== undefined && patch.is !== "applied") {
      const subject = e.type === EventType.STATE_DELTA ? "state" : "activity";
      console.warn(`Failed to apply ${subject} patch:`, event);
    }
    // Even if nothing changed.
    this.#messagesChanged ||=
      e.type === EventType.ACTIVITY_SNAPSHOT || (e.type === EventType.RUN_STARTED && e.input?.messages !== undefined);
    if (e.type === EventType.RUN_FINISHED) this.#parts.agent.pendingInterrupts = [...this.#fold.interrupts];
    return this.#fold.brought;
  }

  /** Notes whether messages or state changed. */
  #change<T>(change: () => T): T {
    const { list, stateVersion } = this.#fold;
    const { version } = list;
    const result = change();
    const messagesChanged = list.version !== version;
    const stateChanged = this.#fold.stateVersion !== stateVersion;
    this.#messagesChanged ||= messagesChanged;
    this.#stateChanged ||= stateChanged;
    if (messagesChanged || stateChanged) this.#shown = undefined;
    return result;
  }

  /**
   * Replaces the messages by the thread. A page that was loaded since the event arrived stays in front, and unsent
   * messages come behind.
   */
  #putThread(event: BaseEvent): void {
    const snapshot = event as MessagesSnapshotEvent; // nothing else is the thread
    const { messages } = snapshot;
    // It only names the run of its messages, see `runNames`, or only makes other readers forget.
    if (this.#snapshotsToCome > 1 && (holdsNothing(messages) || isForgetting(snapshot))) return;
    const { isLoaded, isUnsent } = this.#parts;
    const told = new Set(messages.map(({ id }) => id));
    const loaded = this.#fold.messages.filter(({ id }) => isLoaded(id) && !told.has(id));
    const unsent = this.#fold.messages.filter(({ id }) => isUnsent(id));
    this.#change(() => this.#fold.list.reset([...loaded, ...messages, ...unsent]));
  }

  /** Reports messages and tool calls that are complete. */
  #announce({ type }: BaseEvent, { message, call }: Subject, added: Message | undefined): unknown[] {
    const tellAll = (hook: string, what: object): unknown[] =>
      tell(this.#parts.subscribers(), hook, { ...what, ...this.#common() });
    switch (type) {
      case EventType.TOOL_CALL_END:
        return tellAll("onNewToolCall", { toolCall: call });
      case EventType.TEXT_MESSAGE_END:
      case EventType.REASONING_MESSAGE_END:
        return tellAll("onNewMessage", { message });
      default:
        return added === undefined ? [] : tellAll("onNewMessage", { message: added });
    }
  }

  #handOut(): Handed {
    if (!this.#messagesChanged && !this.#stateChanged) return [];
    // A new array, for the caller alone.
    const { messages, state } = this.#fold.share();
    const mutation: AgentStateMutation = {
      ...(this.#messagesChanged && { messages }),
      ...(this.#stateChanged && { state }),
    };
    this.#messagesChanged = false;
    this.#stateChanged = false;
    this.#handedOut = mutation;
    return [mutation];
  }
}

/**
 * What the client's default apply stage gives to the hook of TOOL_CALL_ARGS or TOOL_CALL_END. The stage itself is run
 * on a thread of this call alone, because it does not export how it completes partial arguments.
 *
 * @returns includes {@link Given} of that thread
 */
async function givenOfCall(input: RunAgentInput, event: BaseEvent, call: ToolCall): Promise<object> {
  let asked: object = {};
  const take = (given: object): { stopPropagation: boolean } => {
    asked = given;
    return { stopPropagation: true };
  };
  const asking: AgentSubscriber = { onToolCallArgsEvent: take, onToolCallEndEvent: take };
  const messages: Message[] = [{ id: "call", role: "assistant", toolCalls: [call] }];
  const alone = { messages } as unknown as AbstractAgent; // the stage reads nothing else
  await lastValueFrom(defaultApplyEvents({ ...input, state: null }, of(event), alone, [asking]));
  return asked;
}

/**
 * An event with messages of a thread, for a reader that has only the last ones: without those before the first that it
 * has, which would be added behind. If it has none of them, all are new.
 */
function shownPart(event: BaseEvent, isHeld: (id: string) => boolean): BaseEvent {
  const e = event as AGUIEvent; // what the pipeline lets through was checked
  switch (e.type) {
    case EventType.MESSAGES_SNAPSHOT:
      return { ...e, messages: behind(e.messages, isHeld) };
    case EventType.RUN_STARTED:
      if (e.input === undefined) return e;
      return { ...e, input: { ...e.input, messages: behind(e.input.messages, isHeld) } };
    default:
      return event;
  }
}

function behind(messages: readonly Message[], isHeld: (id: string) => boolean): Message[] {
  const first = messages.findIndex(({ id }) => isHeld(id));
  return messages.slice(Math.max(first, 0));
}
