import { contentToText, EventType } from "@ag-ui/core";
import type { BaseEvent, Message } from "@ag-ui/client";
import { tag } from "../../run/new-messages.js";

/**
 * The events that add a message in the middle of a run, of a user's parts only the text; undefined where AG-UI has none for
 * its role.
 */
export function eventsAdding(message: Message): readonly BaseEvent[] | undefined {
  const { id: messageId, role, metadata } = message;
  if (role === "activity" || role === "reasoning") return undefined;
  const common = { messageId, ...tag(message.subagentRunId), ...(metadata !== undefined && { metadata }) };
  if (role === "tool") {
    const { toolCallId, content } = message;
    return [{ type: EventType.TOOL_CALL_RESULT, role, toolCallId, content, ...common }];
  }
  const content = contentToText(message.content);
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
