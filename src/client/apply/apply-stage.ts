import {
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
import { patched } from "../../run/json-patch.js";
import { withoutNullTag } from "../../run/message-list.js";
import { hasHook, hookOf, runHooks, tell, type Given } from "./hooks.js";
import { MessageTable } from "./message-table.js";
import { applyToMessages, textOf, withMetadata, type Outcome } from "./messages-after.js";
import { shownPart } from "./shown-part.js";
import { done, type Steps } from "./steps.js";
import { givenOfCall } from "./given-of-call.js";

export interface StageParts {
  readonly agent: AbstractAgent;
  readonly input: RunAgentInput;
  /** Who is to be told now. */
  readonly subscribers: () => readonly AgentSubscriber[];
  /** Asked once for each MESSAGES_SNAPSHOT: it is the whole thread, in its order. (An agent's says nothing of order.) */
  readonly isThread: () => boolean;
  /** The thread has never had a message of this id. */
  readonly isUnsent: (id: string) => boolean;
  /** The agent has only the last messages of the thread. */
  readonly isPart: () => boolean;
}

/** What an event goes on with, as it was before the hooks of the event. */
interface Subject {
  readonly message?: Message | undefined;
  readonly call?: ToolCall | undefined;
}

type Handed = readonly AgentStateMutation[];

const UNCHANGED: Outcome = { changed: false };

function goneOn({ message, call }: Subject, event: BaseEvent): Subject {
  return { message: message && withMetadata(message, event), call: call && withMetadata(call, event) };
}

/**
 * Applies events to messages and state and calls the hooks of subscribers, with the meaning of the default apply stage
 * of `@ag-ui/client`. That one clones all messages, or the state, for each event; this one copies what the event changes.
 *
 * What was handed out never changes: each list of messages is a new array, in it a message that changed a new object, one
 * that did not the same object as before; so it is with the parts of the state. Whoever writes to them all the same
 * reaches nothing that comes later but what shares the object.
 *
 * Two deviations. In development the client gives hooks frozen copies; here they are given what there is. And where the
 * hook of an activity's event returns messages, the event is applied to those by id, not by the place in the old ones.
 */
export class ApplyStage {
  readonly #parts: StageParts;
  readonly #messages: MessageTable;
  #state: State;
  #messagesChanged = false;
  #stateChanged = false;
  /** The MESSAGES_SNAPSHOT that is being applied is the whole thread. */
  #isThread = false;
  /** Tool calls that the run started, and those of them that were answered. */
  #started = new Set<string>();
  #answered = new Set<string>();

  constructor(parts: StageParts) {
    this.#parts = parts;
    this.#messages = new MessageTable(parts.agent.messages);
    this.#state = parts.input.state as State;
  }

  /** Somebody wants each event of this type for itself. */
  watches(type: EventType): boolean {
    return this.#has("onEvent") || this.#has(hookOf(type));
  }

  /**
   * Applies an event; to be called for the next one when this one is done.
   *
   * @returns what the agent is to take over; at once where no hook has to be waited for
   */
  take(event: BaseEvent): Handed | Promise<Handed> {
    return done(this.#take(event));
  }

  *#take(event: BaseEvent): Steps<Handed> {
    const log = this.#parts.agent.debugLogger;
    const { type } = event;
    this.#isThread = type === EventType.MESSAGES_SNAPSHOT && this.#parts.isThread();
    if ((yield* this.#hooks("onEvent", () => ({ event }))).stopPropagation === true) {
      log?.event("APPLY", "Event dropped:", event, { type, reason: "stopPropagation by subscriber" });
      return this.#handOut();
    }
    log?.event("APPLY", "Event applied:", event, { type });
    if (this.#isMissing(event)) return this.#handOut();
    const subject = this.#subjectOf(event);
    const mutation = yield* this.#hooks(hookOf(type), () => this.#given(event, subject));
    if (type === EventType.RUN_STARTED) {
      // Also where a hook has stopped it.
      this.#started = new Set();
      this.#answered = new Set();
    }
    const isStopped = mutation.stopPropagation === true;
    // What an event goes on with is looked up before its hooks, by the client too: where these return other messages,
    // it goes on with what nobody has any more.
    const isLost = mutation.messages !== undefined && (subject.message ?? subject.call) !== undefined;
    const outcome = isStopped || isLost ? UNCHANGED : this.#apply(event);
    const left = !isLost ? this.#subjectOf(event) : isStopped ? subject : goneOn(subject, event);
    const told = this.#announce(event, left, outcome);
    if (type === EventType.ACTIVITY_SNAPSHOT && told.length > 0) yield Promise.all(told);
    return this.#handOut();
  }

  #has(hook: string): boolean {
    return hasHook(this.#parts.subscribers(), hook);
  }

  #common(): Given {
    const { agent, input } = this.#parts;
    return { messages: this.#messages.all, state: this.#state, agent, input };
  }

  *#hooks(name: string, more: () => object | Promise<object>): Steps<AgentStateMutation> {
    if (!this.#has(name)) return {};
    const given = yield more();
    const mutation = yield* runHooks(this.#parts.subscribers(), name, { ...(given as object), ...this.#common() });
    if (mutation.messages !== undefined) {
      this.#messages.set(mutation.messages);
      this.#messagesChanged = true;
    }
    if (mutation.state !== undefined) {
      this.#state = mutation.state as State;
      this.#stateChanged = true;
    }
    return mutation;
  }

  /** What the hook of an event is given beside what every hook is. */
  #given(event: BaseEvent, { message, call }: Subject): object | Promise<object> {
    const e = event as AGUIEvent; // what the pipeline lets through was checked
    if (message !== undefined) {
      return { event, [`${e.type.startsWith("TEXT") ? "text" : "reasoning"}MessageBuffer`]: textOf(message) };
    }
    if (call !== undefined) return givenOfCall(this.#parts.input, event, call);
    switch (e.type) {
      case EventType.ACTIVITY_SNAPSHOT:
      case EventType.ACTIVITY_DELTA: {
        const existingMessage = this.#messages.get(e.messageId);
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
        return { message: this.#messages.text(e.messageId) };
      case EventType.TOOL_CALL_ARGS:
      case EventType.TOOL_CALL_END:
        return { call: this.#messages.call(e.toolCallId) };
      default:
        return {};
    }
  }

  /** The event goes on with what is not there: nobody is told of it. */
  #isMissing(event: BaseEvent): boolean {
    const isPatch = event.type === EventType.ACTIVITY_DELTA;
    const isThere = isPatch
      ? this.#messages.get((event as ActivityDeltaEvent).messageId)?.role === "activity"
      : Object.values(this.#subjectOf(event)).every((subject) => subject !== undefined);
    if (!isThere) console.warn(`${event.type}: there is no '${String(event["messageId"] ?? event["toolCallId"])}'`);
    return !isThere;
  }

  #apply(event: BaseEvent): Outcome {
    const e = event as AGUIEvent;
    switch (e.type) {
      case EventType.STATE_SNAPSHOT:
        this.#setState(e.snapshot);
        return UNCHANGED;
      case EventType.STATE_DELTA: {
        const after = patched(this.#state ?? null, e.delta);
        if (after.is !== "applied") console.warn("Failed to apply state patch:", e.delta);
        else this.#setState(after.document);
        return UNCHANGED;
      }
      case EventType.RUN_FINISHED: {
        const { outcome } = e;
        this.#parts.agent.pendingInterrupts =
          outcome?.type === "interrupt" ? outcome.interrupts.map(withoutNullTag) : [];
        return UNCHANGED;
      }
      case EventType.TOOL_CALL_START:
        this.#started.add(e.toolCallId);
        break;
      case EventType.TOOL_CALL_RESULT:
        this.#answered.add(e.toolCallId);
        break;
      default:
        break;
    }
    const shown = this.#parts.isPart() ? shownPart(event, (id) => this.#messages.get(id) !== undefined) : event;
    const outcome = this.#isThread ? this.#putThread(event) : applyToMessages(this.#messages, shown);
    this.#messagesChanged ||= outcome.changed;
    return outcome;
  }

  #setState(state: unknown): void {
    this.#state = state as State;
    this.#stateChanged = true;
  }

  /** What the thread has not been sent stands behind it; what it has not is gone. */
  #putThread(event: BaseEvent): Outcome {
    const { messages } = event as MessagesSnapshotEvent; // nothing else is the thread
    const unsent = this.#messages.all.filter(({ id }) => this.#parts.isUnsent(id));
    this.#messages.set([...messages, ...unsent]);
    return { changed: true };
  }

  /** Tells of messages and tool calls that are complete. */
  #announce({ type }: BaseEvent, { message, call }: Subject, { added }: Outcome): unknown[] {
    const subscribers = this.#parts.subscribers();
    switch (type) {
      case EventType.TOOL_CALL_END:
        return tell(subscribers, "onNewToolCall", { toolCall: call, ...this.#common() });
      case EventType.TEXT_MESSAGE_END:
      case EventType.REASONING_MESSAGE_END:
        return tell(subscribers, "onNewMessage", { message, ...this.#common() });
      default:
        return added === undefined ? [] : tell(subscribers, "onNewMessage", { message: added, ...this.#common() });
    }
  }

  #handOut(): Handed {
    const mutation: AgentStateMutation = {
      ...(this.#messagesChanged && { messages: this.#messages.copy() }),
      ...(this.#stateChanged && { state: this.#state }),
    };
    const isEmpty = !this.#messagesChanged && !this.#stateChanged;
    this.#messagesChanged = false;
    this.#stateChanged = false;
    return isEmpty ? [] : [mutation];
  }
}
