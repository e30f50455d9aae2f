import { EventType, type AGUIEvent } from "@ag-ui/core";
import type { BaseEvent, Message } from "@ag-ui/client";
import type { MessageList } from "../../run/message-list.js";

/** The message that an event belongs to, if it is there. */
function messageOf(e: AGUIEvent, list: MessageList): Message | undefined {
  switch (e.type) {
    case EventType.TEXT_MESSAGE_START:
    case EventType.TEXT_MESSAGE_CONTENT:
    case EventType.TEXT_MESSAGE_END:
    case EventType.REASONING_START:
    case EventType.REASONING_MESSAGE_START:
    case EventType.REASONING_MESSAGE_CONTENT:
    case EventType.REASONING_MESSAGE_END:
    case EventType.REASONING_END:
    case EventType.ACTIVITY_DELTA:
      return list.get(e.messageId);
    case EventType.TOOL_CALL_START:
      return list.call(e.toolCallId)?.owner ?? list.get(e.parentMessageId ?? "");
    case EventType.TOOL_CALL_ARGS:
    case EventType.TOOL_CALL_END:
      return list.call(e.toolCallId)?.owner;
    case EventType.REASONING_ENCRYPTED_VALUE:
      return e.subtype === "tool-call" ? list.call(e.entityId)?.owner : list.get(e.entityId);
    default:
      return undefined;
  }
}

/**
 * The event without what contradicts the subagent of its message. A message keeps the one that it has, and clients that were
 * shown it first reject an event that names another (L3). The agent's own stream may be valid: it need not repeat the message.
 */
export function withItsOwner(event: BaseEvent, list: MessageList): BaseEvent {
  const { subagentRunId, parentMessageId } = event as {
    readonly subagentRunId?: string;
    readonly parentMessageId?: string;
  };
  if (subagentRunId === undefined && parentMessageId === undefined) return event;
  const message = messageOf(event as AGUIEvent, list);
  if (message === undefined) return event;
  const isOwner = (named: string | undefined): boolean => named === message.subagentRunId;
  const parent = parentMessageId === undefined ? undefined : list.get(parentMessageId);
  const isTagged = subagentRunId !== undefined && isOwner(subagentRunId);
  if ((isTagged || subagentRunId === undefined) && (parent === undefined || isOwner(parent.subagentRunId)))
    return event;
  const owned: { subagentRunId?: string } & BaseEvent = {
    ...event,
    ...(parent !== undefined && { parentMessageId: message.id }),
  };
  if (!isTagged) delete owned.subagentRunId;
  return owned;
}
