import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, ReasoningMessageStartEvent, TextMessageStartEvent } from "@ag-ui/client";

/** The subagent that a message or a part of one comes from, as a field of it. */
export const tag = (subagentRunId: string | null | undefined): { subagentRunId?: string } =>
  subagentRunId === undefined || subagentRunId === null ? {} : { subagentRunId };

/**
 * The message that an event begins, without the event's metadata. Its fields are in the client's order: a message as JSON
 * text is the same everywhere.
 */
export function startedMessage(e: TextMessageStartEvent | ReasoningMessageStartEvent): Message {
  const id = e.messageId;
  return e.type === EventType.REASONING_MESSAGE_START
    ? { id, role: "reasoning", content: "", ...tag(e.subagentRunId) }
    : {
        id,
        role: e.role ?? "assistant",
        content: "",
        ...(e.name !== undefined && { name: e.name }),
        ...tag(e.subagentRunId),
      };
}

/** The events that add a message in the middle of a run; undefined where AG-UI has none for its role or content. */
export function eventsAdding(message: Message): readonly BaseEvent[] | undefined {
  const { id: messageId, role, content, metadata } = message;
  if (role === "activity" || role === "reasoning" || typeof (content ?? "") !== "string") return undefined;
  const common = { messageId, ...tag(message.subagentRunId), ...(metadata !== undefined && { metadata }) };
  if (role === "tool") {
    return [{ type: EventType.TOOL_CALL_RESULT, role, toolCallId: message.toolCallId, content, ...common }];
  }
  const { name } = message;
  const calls = role === "assistant" ? (message.toolCalls ?? []) : [];
  return [
    { type: EventType.TEXT_MESSAGE_START, role, ...(name !== undefined && { name }), ...common },
    ...(content ? [{ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: content }] : []),
    { type: EventType.TEXT_MESSAGE_END, messageId },
    ...calls.flatMap(({ id: toolCallId, function: { name: toolCallName, arguments: delta } }) => [
      { type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId: messageId },
      { type: EventType.TOOL_CALL_ARGS, toolCallId, delta },
      { type: EventType.TOOL_CALL_END, toolCallId },
    ]),
  ];
}
