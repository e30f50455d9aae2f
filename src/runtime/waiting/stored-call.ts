import type { Message } from "@ag-ui/client";
import { RunnerError } from "../../run/errors.js";
import type { AskedWaiting, WaitingRow } from "../../storage/waiting.js";
import { checkRun } from "../../wire/checks.js";
import type { RunRequest } from "../../wire/shapes.js";

/** The call that a waiting run was asked for by; undefined where its record cannot be read. */
export function requestIn({ threadId, runId, agentId, request }: AskedWaiting): RunRequest | undefined {
  try {
    const asked = checkRun(request as RunRequest); // which checks it
    const isIts = asked.threadId === threadId && asked.agentId === agentId && asked.input.runId === runId;
    return isIts ? asked : undefined;
  } catch (error) {
    if (!RunnerError.is(error, "invalid-input")) throw error;
    return undefined;
  }
}

/** The messages that a waiting run adds: where its call has the whole history, those behind the last answer. */
export function messagesOf(row: WaitingRow): readonly Message[] {
  const request = row.kind === "run" ? requestIn(row) : undefined;
  if (request === undefined) return [];
  const { input, partial, persistedInputMessages } = request;
  if (persistedInputMessages !== undefined) return persistedInputMessages;
  if (partial !== undefined) return input.messages;
  return input.messages.slice(input.messages.findLastIndex(({ role }) => role !== "user") + 1);
}
