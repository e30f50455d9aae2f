import { EventType } from "@ag-ui/core";
import type { BaseEvent, MessagesSnapshotEvent, RunStartedEvent, ToolCallStartEvent } from "@ag-ui/client";

const NONE: readonly string[] = [];

/** Ids of the messages that an event tells of or begins. */
export function messageIdsOf(event: BaseEvent): readonly string[] {
  switch (event.type) {
    case EventType.RUN_STARTED:
      return ((event as RunStartedEvent).input?.messages ?? []).map(({ id }) => id);
    case EventType.MESSAGES_SNAPSHOT:
      return (event as MessagesSnapshotEvent).messages.map(({ id }) => id);
    case EventType.TOOL_CALL_START: {
      const { toolCallId, parentMessageId } = event as ToolCallStartEvent;
      // Where the parent is no assistant message, the call gets a message under its own id.
      return parentMessageId ? [parentMessageId, toolCallId] : [toolCallId];
    }
    case EventType.TEXT_MESSAGE_START:
    case EventType.TOOL_CALL_RESULT:
    case EventType.REASONING_MESSAGE_START:
    case EventType.ACTIVITY_SNAPSHOT:
      return [String(event["messageId"])];
    default:
      return NONE;
  }
}
