import { EventType, type AGUIEvent, type BaseEvent, type Message } from "@ag-ui/client";

/**
 * An event that tells the messages of a thread, as it is for a reader that has only the last ones of them: without those
 * before the first that it has. They would come behind what it has. Where it has none of them, they are all new to it.
 */
export function shownPart(event: BaseEvent, isHeld: (id: string) => boolean): BaseEvent {
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
