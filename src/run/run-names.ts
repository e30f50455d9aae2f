import type { BaseEvent, Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { startedEvent } from "./finalize.js";
import type { RunStatus } from "./types.js";

/** A run, and the messages that it added. */
export interface NamedRun {
  readonly runId: string;
  readonly status: RunStatus;
  readonly messageIds: readonly string[];
}

const placeholder = (id: string): Message => ({ id, role: "system", content: "" });

/** The reader has no message, or was cut off in the middle of {@link runNames}. */
export const holdsNothing = (held: readonly Message[]): boolean =>
  held.every(({ role, content }) => role === "system" && content === "");

/**
 * Tells a reader without messages the run of each message: front ends (CopilotKit) note for each id in a
 * MESSAGES_SNAPSHOT the run in which it came first. Each snapshot has placeholders, which no front end shows, for the
 * messages of one run: bytes and the reader's work are linear in the messages. At the end the reader has no message, so
 * that the thread's own snapshot sets their order.
 *
 * The runs end without a RUN_ERROR, which front ends would report again, and those that did not finish as cancelled.
 */
export function runNames(threadId: string, runs: readonly NamedRun[]): BaseEvent[] {
  return runs.flatMap(({ runId, status, messageIds }, at) => [
    startedEvent(threadId, runId),
    { type: EventType.MESSAGES_SNAPSHOT, messages: messageIds.map(placeholder) },
    ...(at === runs.length - 1 ? [{ type: EventType.MESSAGES_SNAPSHOT, messages: [] }] : []),
    { type: EventType.RUN_FINISHED, threadId, runId, ...(status !== "finished" && { outcome: { type: "cancelled" } }) },
  ]);
}
