import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { cloneJson } from "../../run/json.js";

/** Events of plain strings: the schema check made these objects, and nobody else holds them. */
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

/** A copy that its receiver may change. */
export function ownEvent(event: BaseEvent): BaseEvent {
  const isPlain = PLAIN.has(event.type) && event.rawEvent === undefined && event.metadata === undefined;
  return isPlain ? { ...event } : structuredClone(event);
}

export type Accepted =
  { readonly is: "accepted"; readonly event: BaseEvent } | { readonly is: "refused"; readonly reason: string };

/**
 * Prepares a verified event for the log: copies what the agent may still change, refuses what cannot be stored.
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

/** Optional fields of a run's recorded input, beside ids, messages and `resume`. */
export const INPUT_FIELDS = ["tools", "context", "forwardedProps", "state"] as const;
export type InputField = (typeof INPUT_FIELDS)[number];
