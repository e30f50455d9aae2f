import { EventType } from "@ag-ui/core";

/** A run's last event. */
export const isTerminal = (type: unknown): boolean => type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;

export const isStep = (type: unknown): boolean => type === EventType.STEP_STARTED || type === EventType.STEP_FINISHED;

/** One of many that make up a text. */
export const isTextDelta = (type: unknown): boolean =>
  type === EventType.TEXT_MESSAGE_CONTENT ||
  type === EventType.TOOL_CALL_ARGS ||
  type === EventType.REASONING_MESSAGE_CONTENT;
