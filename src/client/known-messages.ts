import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, MessagesSnapshotEvent, RunStartedEvent, ToolCallStartEvent } from "@ag-ui/client";

/** Which messages the thread has, as far as this agent was told: only the others are sent. */
export class KnownMessages {
  /** Ids that the thread has. */
  private ids = new Set<string>();
  /** What the agent's own list has shown: ids, with the content of what a person wrote and may edit. */
  private shown = new Map<string, string | undefined>();

  /** Notes what an event from the host says that the thread has. */
  note(event: BaseEvent): void {
    switch (event.type) {
      case EventType.RUN_STARTED:
        for (const message of (event as RunStartedEvent).input?.messages ?? []) this.ids.add(message.id);
        return;
      case EventType.MESSAGES_SNAPSHOT:
        for (const message of (event as MessagesSnapshotEvent).messages) this.ids.add(message.id);
        return;
      case EventType.TOOL_CALL_START: {
        const { toolCallId, parentMessageId } = event as ToolCallStartEvent;
        this.ids.add(parentMessageId ?? toolCallId);
        return;
      }
      case EventType.TEXT_MESSAGE_START:
      case EventType.TOOL_CALL_RESULT:
      case EventType.REASONING_MESSAGE_START:
        this.ids.add(String(event["messageId"]));
        return;
      default:
        return;
    }
  }

  /** After a run: what the agent now shows of the thread. */
  show(messages: readonly Message[]): void {
    for (const message of messages) if (this.ids.has(message.id)) this.shown.set(message.id, writtenIn(message));
  }

  /** The messages that the thread does not have yet; undefined where the agent's history was changed. */
  news(messages: readonly Message[]): readonly Message[] | undefined {
    const held = new Map(messages.map((message) => [message.id, message]));
    for (const [id, written] of this.shown) {
      const message = held.get(id);
      if (message === undefined || writtenIn(message) !== written) return undefined;
    }
    return messages.filter((message) => !this.ids.has(message.id));
  }

  copy(): KnownMessages {
    const copy = new KnownMessages();
    copy.ids = new Set(this.ids);
    copy.shown = new Map(this.shown);
    return copy;
  }
}

const writtenIn = (message: Message): string | undefined =>
  message.role === "user" ? JSON.stringify(message.content) : undefined;
