import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, RunAgentInput, RunStartedEvent } from "@ag-ui/client";
import { cloneJson } from "../run/json.js";

/** Events that hold nothing but strings of their own: the schema check made them, and nobody else has them. */
const PLAIN: ReadonlySet<string> = new Set([
  EventType.TEXT_MESSAGE_START,
  EventType.TEXT_MESSAGE_CONTENT,
  EventType.TEXT_MESSAGE_END,
  EventType.TOOL_CALL_START,
  EventType.TOOL_CALL_ARGS,
  EventType.TOOL_CALL_END,
  EventType.REASONING_START,
  EventType.REASONING_MESSAGE_START,
  EventType.REASONING_MESSAGE_CONTENT,
  EventType.REASONING_MESSAGE_END,
  EventType.REASONING_END,
  EventType.STEP_STARTED,
  EventType.STEP_FINISHED,
]);

/** A copy that whoever is handed it may change. */
export function ownEvent(event: BaseEvent): BaseEvent {
  const isPlain = PLAIN.has(event.type) && event.rawEvent === undefined && event.metadata === undefined;
  return isPlain ? { ...event } : structuredClone(event);
}

export type Accepted =
  { readonly is: "accepted"; readonly event: BaseEvent } | { readonly is: "refused"; readonly reason: string };

/**
 * Takes an event that the pipeline verified into the log's keeping: what the agent may still hold and change is copied,
 * what cannot be stored is refused.
 */
export function acceptEvent(given: BaseEvent): Accepted {
  if (PLAIN.has(given.type) && given.rawEvent === undefined && given.metadata === undefined) {
    return { is: "accepted", event: given };
  }
  try {
    return { is: "accepted", event: cloneJson(given) };
  } catch (error) {
    return { is: "refused", reason: `${given.type} holds what cannot be stored: ${String(error)}` };
  }
}

/** The first events of a run in the log. */
export function startingEvents(start: {
  /** The agent's own RUN_STARTED. */
  readonly given: BaseEvent | undefined;
  readonly request: RunAgentInput;
  readonly newMessages: readonly Message[];
  /** Where the run's state is not the thread's. */
  readonly state?: unknown;
  /** Where the run starts a branch: all its messages. */
  readonly branchMessages?: readonly Message[];
}): BaseEvent[] {
  const { given, request, newMessages, state, branchMessages } = start;
  const { threadId, runId } = request;
  const own = given as RunStartedEvent | undefined;
  const started = {
    type: EventType.RUN_STARTED,
    ...own,
    threadId,
    runId,
    input: {
      // What the caller sent in tools, context and forwardedProps is not kept unless the agent itself recorded it.
      tools: [],
      context: [],
      forwardedProps: {},
      state: {},
      ...own?.input,
      threadId,
      runId,
      messages: [...newMessages],
      ...(request.resume !== undefined && { resume: request.resume }),
    },
  };
  const events: BaseEvent[] = [started];
  if ("state" in start) events.push({ type: EventType.STATE_SNAPSHOT, snapshot: state } as BaseEvent);
  if (branchMessages !== undefined) {
    events.push({ type: EventType.MESSAGES_SNAPSHOT, messages: [...branchMessages] } as BaseEvent);
  }
  return events;
}
