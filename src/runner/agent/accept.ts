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

const isPlain = ({ type, rawEvent, metadata }: BaseEvent): boolean =>
  PLAIN.has(type) && rawEvent === undefined && metadata === undefined;

/** A copy that its receiver may change. */
export function ownEvent(event: BaseEvent): BaseEvent {
  return isPlain(event) ? { ...event } : structuredClone(event);
}

/** A copy of what the agent may still change. @throws where it cannot be stored */
export const acceptEvent = (event: BaseEvent): BaseEvent => (isPlain(event) ? event : cloneJson(event));

/** Optional fields of a run's recorded input, beside ids, messages and `resume`. */
export const INPUT_FIELDS = ["tools", "context", "forwardedProps", "state"] as const;
export type InputField = (typeof INPUT_FIELDS)[number];
