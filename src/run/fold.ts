import { EventType } from "@ag-ui/core";
import type { AGUIEvent } from "@ag-ui/core";
import type {
  ActivityDeltaEvent,
  ActivityMessage,
  ActivitySnapshotEvent,
  AssistantMessage,
  BaseEvent,
  Interrupt,
  Message,
  MessagesSnapshotEvent,
  ReasoningEncryptedValueEvent,
  ReasoningMessageStartEvent,
  RunFinishedEvent,
  RunStartedEvent,
  State,
  TextMessageStartEvent,
  ToolCall,
  ToolCallResultEvent,
  ToolCallStartEvent,
  ToolMessage,
} from "@ag-ui/client";
import { startedMessage, tag } from "./new-messages.js";
import { PatchedDocument, type PatchResult } from "./json-patch.js";
import { PATCH_BOUNDS, type PatchBounds } from "./patch-bounds.js";
import { ACTIVITY_HISTORY } from "./activity-history.js";
import { MessageList, withoutNullTag, type MessageIndex } from "./message-list.js";

/** The content of a thread before or after a run. */
export interface ThreadContent {
  readonly messages: readonly Message[];
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

/** A {@link ThreadContent} whose messages were indexed before. */
export type FoldBase = ThreadContent & { readonly index?: MessageIndex };

/** The activity types that a snapshot covers: `null` all, `undefined` not said; a malformed list covers none. */
function activityTypesOf({ metadata }: MessagesSnapshotEvent): readonly string[] | null | undefined {
  if (!metadata || !Object.hasOwn(metadata, ACTIVITY_HISTORY)) return undefined;
  const said: unknown = metadata[ACTIVITY_HISTORY];
  if (typeof said !== "object" || said === null || Array.isArray(said)) return [];
  if (!Object.hasOwn(said, "authoritativeActivityTypes")) return undefined;
  const types = (said as { authoritativeActivityTypes: unknown }).authoritativeActivityTypes;
  if (types === null) return null;
  return Array.isArray(types) && types.every((type) => typeof type === "string") ? types : [];
}

export const textOf = (content: unknown): string => (typeof content === "string" ? content : "");

/**
 * Rebuilds messages, state and open interrupts from a thread's events, as `@ag-ui/client` does, at a cost that is
 * linear in the events. Chunk events must be expanded before. A patch that does not apply changes nothing. Of an event
 * whose patch no AG-UI client may be handed (see {@link PatchResult}), no other field is applied either.
 *
 * `messages` and `state` are live: the fold keeps changing them, so copy or serialise them before handing them out.
 * Neither the base nor an event is ever written to, but parts of them are kept: they must not change.
 */
export class Fold {
  /** Live; see the class. */
  readonly list: MessageList;
  #state: State;
  /** The state as a document; made by the first patch of it. */
  #document: PatchedDocument | undefined;
  /** Contents of activities as documents; made by the first patch of each. */
  #contents = new WeakMap<ActivityMessage, PatchedDocument>();
  readonly #bounds: PatchBounds;
  #interrupts: readonly Interrupt[];
  #stateVersion = 0;
  #brought: Message | undefined;

  /** @param bounds of patches; narrower ones are for callers that refuse events beyond them */
  constructor(base: FoldBase, bounds = PATCH_BOUNDS) {
    this.#bounds = bounds;
    this.list = new MessageList(base.messages, base.index);
    this.#state = base.state;
    this.#interrupts = base.interrupts;
  }

  /** Live; see the class. */
  get messages(): readonly Message[] {
    return this.list.items;
  }

  /** Live; see the class. */
  get state(): State {
    return this.#document === undefined ? this.#state : this.#document.root;
  }

  get interrupts(): readonly Interrupt[] {
    return this.#interrupts;
  }

  /** Grows when the state changes. */
  get stateVersion(): number {
    return this.#stateVersion;
  }

  /** The complete message that the last event added: a tool's result or a new activity. */
  get brought(): Message | undefined {
    return this.#brought;
  }

  /** Messages and state as they are now. Copy-on-write: they never change afterwards. */
  share(): { readonly messages: Message[]; readonly state: State } {
    this.#state = this.state;
    this.#document = undefined;
    this.#contents = new WeakMap();
    return { messages: this.list.share(), state: this.#state };
  }

  /** @returns the result of the patch, if the event has one */
  apply(event: BaseEvent): PatchResult | undefined {
    const e = event as AGUIEvent;
    this.#brought = undefined;
    switch (e.type) {
      case EventType.STATE_DELTA: {
        const document = this.#document ?? new PatchedDocument(this.#state ?? null, this.#bounds);
        const result = document.apply(e.delta);
        // Undoing a patch may leave fields in another order; the original that it was copied from keeps theirs.
        if (result.is !== "applied") return result;
        this.#document = document;
        this.#stateVersion++;
        return result;
      }
      case EventType.ACTIVITY_DELTA:
        return this.#activityPatched(e);
      default:
        this.#applyWhole(e);
        return undefined;
    }
  }

  #applyWhole(e: AGUIEvent): void {
    switch (e.type) {
      case EventType.TEXT_MESSAGE_CONTENT:
      case EventType.REASONING_MESSAGE_CONTENT: {
        const message = this.list.writableText(e.messageId);
        if (message === undefined) return;
        message.content = textOf(message.content) + e.delta;
        return this.list.mergeMetadata(message, e.metadata);
      }
      case EventType.TOOL_CALL_ARGS: {
        const call = this.list.writableCall(e.toolCallId);
        if (call === undefined) return;
        call.function.arguments += e.delta;
        return this.list.mergeMetadata(call, e.metadata);
      }
      case EventType.TEXT_MESSAGE_START:
      case EventType.REASONING_MESSAGE_START:
        return this.#messageStarted(e);
      case EventType.TEXT_MESSAGE_END:
      case EventType.REASONING_MESSAGE_END: {
        if (e.metadata === undefined) return;
        const message = this.list.writableText(e.messageId);
        return message && this.list.mergeMetadata(message, e.metadata);
      }
      case EventType.TOOL_CALL_START:
        return this.#callStarted(e);
      case EventType.TOOL_CALL_END: {
        if (e.metadata === undefined) return;
        const call = this.list.writableCall(e.toolCallId);
        return call && this.list.mergeMetadata(call, e.metadata);
      }
      case EventType.TOOL_CALL_RESULT:
        return this.#callAnswered(e);
      case EventType.STATE_SNAPSHOT:
        this.#document = undefined;
        this.#state = e.snapshot;
        this.#stateVersion++;
        return;
      case EventType.MESSAGES_SNAPSHOT:
        return this.list.merge(e.messages, activityTypesOf(e));
      case EventType.ACTIVITY_SNAPSHOT:
        return this.#activityReplaced(e);
      case EventType.REASONING_ENCRYPTED_VALUE:
        return this.#encrypted(e);
      case EventType.RUN_STARTED:
        return this.#runStarted(e);
      case EventType.RUN_FINISHED:
        return this.#runFinished(e);
      case EventType.TEXT_MESSAGE_CHUNK:
      case EventType.TOOL_CALL_CHUNK:
      case EventType.REASONING_MESSAGE_CHUNK:
        throw new TypeError(`${e.type} must be expanded before it is applied`);
      default:
        return;
    }
  }

  #messageStarted(e: TextMessageStartEvent | ReasoningMessageStartEvent): void {
    const held = this.list.get(e.messageId);
    if (held !== undefined) {
      if (held.role !== "activity" && e.metadata !== undefined) {
        this.list.mergeMetadata(this.list.write(held), e.metadata);
      }
      return;
    }
    const message = startedMessage(e);
    this.list.mergeMetadata(message, e.metadata);
    this.list.append(message);
  }

  #callStarted(e: ToolCallStartEvent): void {
    const held = this.list.call(e.toolCallId)?.call;
    if (held !== undefined) {
      if (held.function.name === e.toolCallName && e.metadata === undefined) return;
      const call = this.list.writableCall(e.toolCallId)!;
      call.function.name = e.toolCallName;
      return this.list.mergeMetadata(call, e.metadata);
    }
    const call: ToolCall = { id: e.toolCallId, type: "function", function: { name: e.toolCallName, arguments: "" } };
    this.list.mergeMetadata(call, e.metadata);
    this.list.addCall(this.#callOwner(e), call);
  }

  /** The message that a new tool call goes into: its parent, or a new one. */
  #callOwner(e: ToolCallStartEvent): AssistantMessage {
    const parent = e.parentMessageId ? this.list.get(e.parentMessageId) : undefined;
    if (parent?.role === "assistant") return this.list.write(parent);
    const id = e.parentMessageId && parent === undefined ? e.parentMessageId : e.toolCallId;
    const isNew = this.list.get(id) === undefined;
    const owner: AssistantMessage = { id, role: "assistant", toolCalls: [], ...(isNew ? tag(e.subagentRunId) : {}) };
    this.list.append(owner);
    return owner;
  }

  #callAnswered(e: ToolCallResultEvent): void {
    const result: ToolMessage = {
      id: e.messageId,
      toolCallId: e.toolCallId,
      role: "tool",
      content: e.content,
      ...tag(e.subagentRunId),
    };
    this.list.mergeMetadata(result, e.metadata);
    this.list.insertResult(result);
    this.#brought = result;
  }

  #activityReplaced(e: ActivitySnapshotEvent): void {
    const held = this.list.get(e.messageId);
    const replace = e.replace ?? true;
    if (held?.role === "activity") {
      if (!replace && e.metadata === undefined) return;
      const activity = this.list.write(held);
      if (replace) {
        activity.activityType = e.activityType;
        activity.content = e.content;
        // The event says which subagent the message is from.
        const { subagentRunId } = tag(e.subagentRunId);
        if (subagentRunId === undefined) delete activity.subagentRunId;
        else activity.subagentRunId = subagentRunId;
      }
      return this.list.mergeMetadata(activity, e.metadata);
    }
    if (held !== undefined && !replace) return;
    const activity: ActivityMessage = {
      id: e.messageId,
      role: "activity",
      activityType: e.activityType,
      content: e.content,
      ...tag(e.subagentRunId),
    };
    this.list.mergeMetadata(activity, e.metadata);
    if (held === undefined) this.list.append(activity);
    else this.list.replace(held, activity);
    this.#brought = activity;
  }

  #activityPatched(e: ActivityDeltaEvent): PatchResult | undefined {
    const held = this.list.get(e.messageId);
    if (held?.role !== "activity") return undefined;
    let document = this.#contents.get(held);
    if (document === undefined || document.root !== held.content) {
      document = new PatchedDocument(held.content ?? {}, this.#bounds);
    }
    // Anything else is no message of AG-UI: nobody could be handed a snapshot with it.
    const result = document.apply(e.patch ?? [], true);
    if (result.is === "unsafe" || result.is === "exceeds") return result;
    const applied = result.is === "applied";
    if (!applied && e.metadata === undefined) return result;
    const activity = this.list.write(held);
    this.list.mergeMetadata(activity, e.metadata);
    if (!applied) return result;
    this.#contents.set(activity, document);
    // A patch may have made anything of it.
    activity.content = document.root as ActivityMessage["content"];
    activity.activityType = e.activityType;
    return result;
  }

  #encrypted(e: ReasoningEncryptedValueEvent): void {
    const target = e.subtype === "tool-call" ? this.list.writableCall(e.entityId) : this.list.writableText(e.entityId);
    if (target !== undefined) target.encryptedValue = e.encryptedValue;
  }

  #runStarted(e: RunStartedEvent): void {
    const messages = e.input?.messages ?? [];
    const isHeld = messages.map(({ id }) => this.list.get(id) !== undefined);
    /** Results that the host had for its sender's calls, by the message of the sender that they stand before. */
    const before = new Map<string, Message[]>();
    for (const [at, message] of messages.entries()) {
      if (isHeld[at] || this.list.get(message.id) !== undefined) continue;
      const added = withoutNullTag(message);
      const next = added.role === "tool" ? isHeld.indexOf(true, at) : -1;
      if (next < 0) this.list.adopt(added);
      else before.set(messages[next]!.id, [...(before.get(messages[next]!.id) ?? []), added]);
    }
    if (before.size === 0) return;
    this.list.reset(this.messages.flatMap((held) => [...(before.get(held.id) ?? []), held]));
  }

  /** Only RUN_FINISHED changes the open interrupts; RUN_ERROR leaves them as they are. */
  #runFinished({ outcome }: RunFinishedEvent): void {
    this.#interrupts = outcome?.type === "interrupt" ? outcome.interrupts.map(withoutNullTag) : [];
  }
}
