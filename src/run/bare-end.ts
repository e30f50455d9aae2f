import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { isTerminal } from "./event-kinds.js";
import { SENTENCES } from "./finalize.js";
import { isRecord } from "./json.js";
import type { PackedEntry, RunStatus, SettledStatus } from "./types.js";

type Ids = "messageId" | "toolCallId" | "stepName" | "subagentRunId" | "threadId" | "runId";

/** The events that end a run from outside, and the ids in them. */
const ENDS: Readonly<Record<string, readonly Ids[]>> = {
  [EventType.RUN_STARTED]: ["threadId", "runId"],
  [EventType.TEXT_MESSAGE_END]: ["messageId"],
  [EventType.REASONING_MESSAGE_END]: ["messageId"],
  [EventType.REASONING_END]: ["messageId"],
  [EventType.TOOL_CALL_END]: ["toolCallId"],
  [EventType.TOOL_CALL_RESULT]: ["messageId", "toolCallId"],
  [EventType.STEP_FINISHED]: ["stepName", "subagentRunId"],
  [EventType.SUBAGENT_ERROR]: ["subagentRunId"],
  [EventType.RUN_FINISHED]: ["threadId", "runId"],
  [EventType.RUN_ERROR]: [],
};

/**
 * The end of a run as a host wrote it that knew nothing of its content, with nothing of it but ids: the texts are made
 * again. So it need not be trusted.
 *
 * @param status of the run
 * @returns undefined for anything else
 */
export function bareEnd(entries: unknown, status: RunStatus): readonly PackedEntry[] | undefined {
  if (!Array.isArray(entries)) return undefined;
  const events: unknown[] = entries.map((entry: unknown) =>
    isRecord(entry) && entry["cuts"] === undefined ? entry["event"] : undefined,
  );
  const last = events.at(-1);
  if (!events.every(isRecord) || !isRecord(last)) return undefined;
  if (!isEndAs(last, status)) return undefined;
  const bare = events.map((event, at) => bareEvent(event, status, at === events.length - 1));
  return bare.every((event) => event !== undefined) ? bare.map((event) => ({ event })) : undefined;
}

/** Only these are written from outside. */
function isEndAs(
  { type, code }: Readonly<Record<string, unknown>>,
  status: RunStatus,
): status is "stopped" | "superseded" | "broken" {
  if (status === "broken") return type === EventType.RUN_ERROR && code === "RUN_BROKEN";
  return type === EventType.RUN_FINISHED && (status === "stopped" || status === "superseded");
}

function bareEvent(
  event: Readonly<Record<string, unknown>>,
  status: SettledStatus,
  isLast: boolean,
): BaseEvent | undefined {
  const type = String(event["type"]);
  const ids = Object.hasOwn(ENDS, type) ? ENDS[type] : undefined;
  if (ids === undefined || isTerminal(type) !== isLast) return undefined;
  const kept = ids.flatMap((id) => (typeof event[id] === "string" ? [[id, event[id]]] : []));
  const message = SENTENCES[status];
  return {
    // One of those above.
    type: type as EventType,
    ...Object.fromEntries(kept),
    ...(type === EventType.RUN_STARTED && { protocolVersion: event["protocolVersion"] }),
    ...(type === EventType.TOOL_CALL_RESULT && { role: "tool", content: JSON.stringify({ status, message }) }),
    ...(type === EventType.SUBAGENT_ERROR && { message }),
    ...(type === EventType.RUN_FINISHED && { outcome: { type: "cancelled" } }),
    ...(type === EventType.RUN_ERROR && { message, code: "RUN_BROKEN" }),
  };
}
