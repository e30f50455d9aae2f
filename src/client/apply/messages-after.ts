import { EventType, type AGUIEvent } from "@ag-ui/core";
import {
  authoritativeActivityTypes,
  type ActivityDeltaEvent,
  type ActivityMessage,
  type ActivitySnapshotEvent,
  type AssistantMessage,
  type BaseEvent,
  type Message,
  type MessagesSnapshotEvent,
  type Metadata,
  type ReasoningMessageStartEvent,
  type TextMessageStartEvent,
  type ToolCall,
  type ToolCallResultEvent,
  type ToolCallStartEvent,
  type ToolMessage,
} from "@ag-ui/client";
import { patched } from "../../run/json-patch.js";
import { withoutNullTag } from "../../run/message-list.js";
import { startedMessage, tag } from "../../run/new-messages.js";
import type { MessageTable } from "./message-table.js";

/** What an event did to the messages. */
export interface Outcome {
  /** Subscribers are told: also where an event that speaks of messages came to what there was. */
  readonly changed: boolean;
  /** The message that subscribers are told of as a new one. */
  readonly added?: Message;
}

const NOTHING: Outcome = { changed: false };
const CHANGED: Outcome = { changed: true };

/** The same with an event's metadata merged into it, key by key, the last one winning. */
export function withMetadata<T extends { metadata?: Metadata | undefined }>(target: T, { metadata }: BaseEvent): T {
  return metadata === undefined ? target : { ...target, metadata: { ...target.metadata, ...metadata } };
}

export const textOf = ({ content }: Message): string => (typeof content === "string" ? content : "");

/**
 * Applies an event to messages as the default apply stage of `@ag-ui/client` does. Events are never written to, but
 * parts of them are kept: they must not change. Chunk events must be expanded before.
 */
export function applyToMessages(messages: MessageTable, event: BaseEvent): Outcome {
  const e = event as AGUIEvent; // what the pipeline lets through was checked
  switch (e.type) {
    case EventType.TEXT_MESSAGE_START:
    case EventType.REASONING_MESSAGE_START:
      return messageStarted(messages, e);
    case EventType.TEXT_MESSAGE_CONTENT:
    case EventType.REASONING_MESSAGE_CONTENT:
    case EventType.TEXT_MESSAGE_END:
    case EventType.REASONING_MESSAGE_END: {
      const message = messages.text(e.messageId);
      if (message === undefined) return NOTHING;
      if ("delta" in e) {
        // Text is a content that every role may have.
        return put(messages, withMetadata({ ...message, content: textOf(message) + e.delta } as Message, e));
      }
      return e.metadata === undefined ? NOTHING : put(messages, withMetadata(message, e));
    }
    case EventType.TOOL_CALL_START:
      return callStarted(messages, e);
    case EventType.TOOL_CALL_ARGS:
    case EventType.TOOL_CALL_END: {
      const call = messages.call(e.toolCallId);
      if (call === undefined || (!("delta" in e) && e.metadata === undefined)) return NOTHING;
      const { name, arguments: before } = call.function;
      const after = "delta" in e ? { ...call, function: { name, arguments: before + e.delta } } : call;
      return putCall(messages, withMetadata(after, e));
    }
    case EventType.TOOL_CALL_RESULT:
      return callAnswered(messages, e);
    case EventType.MESSAGES_SNAPSHOT:
      return snapshotMerged(messages, e);
    case EventType.ACTIVITY_SNAPSHOT:
      return activityReplaced(messages, e);
    case EventType.ACTIVITY_DELTA:
      return activityPatched(messages, e);
    case EventType.REASONING_ENCRYPTED_VALUE: {
      const { encryptedValue } = e;
      if (e.subtype === "tool-call") {
        const call = messages.call(e.entityId);
        return call === undefined ? NOTHING : putCall(messages, { ...call, encryptedValue });
      }
      const message = messages.text(e.entityId);
      return message === undefined ? NOTHING : put(messages, { ...message, encryptedValue });
    }
    case EventType.RUN_STARTED:
      for (const message of e.input?.messages ?? []) {
        if (messages.get(message.id) === undefined) messages.append(withoutNullTag(message));
      }
      return e.input?.messages === undefined ? NOTHING : CHANGED;
    default:
      return NOTHING;
  }
}

function put(messages: MessageTable, message: Message): Outcome {
  messages.put(message);
  return CHANGED;
}

function putCall(messages: MessageTable, call: ToolCall): Outcome {
  messages.putCall(call);
  return CHANGED;
}

function messageStarted(messages: MessageTable, e: TextMessageStartEvent | ReasoningMessageStartEvent): Outcome {
  const held = messages.get(e.messageId);
  if (held !== undefined) {
    return held.role === "activity" || e.metadata === undefined ? NOTHING : put(messages, withMetadata(held, e));
  }
  messages.append(withMetadata(startedMessage(e), e));
  return CHANGED;
}

function callStarted(messages: MessageTable, e: ToolCallStartEvent): Outcome {
  const { toolCallId, toolCallName: name, parentMessageId } = e;
  const held = messages.call(toolCallId);
  if (held !== undefined) {
    if (held.function.name === name && e.metadata === undefined) return NOTHING;
    return putCall(messages, withMetadata({ ...held, function: { ...held.function, name } }, e));
  }
  const call = withMetadata<ToolCall>({ id: toolCallId, type: "function", function: { name, arguments: "" } }, e);
  const parent = parentMessageId ? messages.get(parentMessageId) : undefined;
  if (parent?.role === "assistant") {
    return put(messages, { ...parent, toolCalls: [...(parent.toolCalls ?? []), call] });
  }
  const id = parentMessageId && parent === undefined ? parentMessageId : toolCallId;
  const isNew = messages.get(id) === undefined;
  const owner: AssistantMessage = { id, role: "assistant", toolCalls: [call], ...(isNew && tag(e.subagentRunId)) };
  messages.append(owner);
  return CHANGED;
}

function callAnswered(messages: MessageTable, e: ToolCallResultEvent): Outcome {
  const { messageId: id, toolCallId, content } = e;
  const result: ToolMessage = { id, toolCallId, role: "tool", content, ...tag(e.subagentRunId) };
  const added = withMetadata(result, e);
  messages.insertResult(added);
  return { changed: true, added };
}

/** What it holds replaces and is added; what it leaves out goes, but for what it does not speak for. */
function snapshotMerged(messages: MessageTable, e: MessagesSnapshotEvent): Outcome {
  const incoming = e.messages.map(withoutNullTag);
  const byId = new Map(incoming.map((message) => [message.id, message]));
  const types = authoritativeActivityTypes(e);
  const hasRole = (role: Message["role"]): boolean => incoming.some((message) => message.role === role);
  const ownsReasoning = hasRole("reasoning");
  const ownsActivities = types === null || (types === undefined && hasRole("activity"));
  const stays = (message: Message): boolean => {
    if (message.role === "reasoning") return !ownsReasoning;
    return message.role === "activity" && (types ? !types.includes(message.activityType) : !ownsActivities);
  };
  const next = messages.all.filter((message) => byId.has(message.id) || stays(message));
  const held = new Set(next.map(({ id }) => id));
  messages.set([
    ...next.map((message) => byId.get(message.id) ?? message),
    ...incoming.filter(({ id }) => !held.has(id)),
  ]);
  return CHANGED;
}

function activityReplaced(messages: MessageTable, e: ActivitySnapshotEvent): Outcome {
  const { messageId: id, activityType, content, replace = true } = e;
  const held = messages.get(id);
  const fresh: ActivityMessage = { id, role: "activity", activityType, content, ...tag(e.subagentRunId) };
  if (held === undefined || (held.role !== "activity" && replace)) {
    const added = withMetadata(fresh, e);
    messages.put(added);
    return { changed: true, added };
  }
  if (held.role !== "activity") return CHANGED;
  // A replaced activity keeps its metadata, and is of whom the event is of.
  const { subagentRunId: _owner, ...rest } = held;
  const kept = fresh.subagentRunId === undefined ? rest : held;
  return put(messages, withMetadata(replace ? { ...kept, ...fresh } : held, e));
}

function activityPatched(messages: MessageTable, e: ActivityDeltaEvent): Outcome {
  const held = messages.get(e.messageId);
  if (held?.role !== "activity") return NOTHING;
  const after = patched(held.content ?? {}, e.patch ?? []);
  if (after.is !== "applied") {
    console.warn(`Failed to apply activity patch for '${e.messageId}'`);
    return after.is !== "refused" || e.metadata === undefined ? NOTHING : put(messages, withMetadata(held, e));
  }
  const content = after.document as ActivityMessage["content"]; // as free as any patch
  return put(messages, withMetadata({ ...held, content, activityType: e.activityType }, e));
}
