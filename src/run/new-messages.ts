import { EventType } from "@ag-ui/core";
import type { Message, ReasoningMessageStartEvent, TextMessageStartEvent } from "@ag-ui/client";

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
