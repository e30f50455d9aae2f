import { EventType, PROTOCOL_VERSION } from "@ag-ui/core";
import type { AGUIEvent } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import type { OpenConstructs, SettledStatus } from "./types.js";

/** A RUN_STARTED of ours: it declares the version of the protocol, as AG-UI 1.0 has it. */
export const startedEvent = (threadId: string, runId: string): BaseEvent => ({
  type: EventType.RUN_STARTED,
  threadId,
  runId,
  protocolVersion: PROTOCOL_VERSION,
});

/** How a run ends, for {@link closingEvents}. */
export interface Ending {
  readonly status: SettledStatus;
  readonly threadId: string;
  readonly runId: string;
  /** The agent's own RUN_FINISHED or RUN_ERROR, which then is the last event as it is given. */
  readonly terminal?: BaseEvent;
  /** What a person is told; each status has a sentence of its own. */
  readonly message?: string;
  /** Code of the RUN_ERROR of an errored run; see RunErrorCode. */
  readonly code?: string;
  /** Gives the messageId of each tool result that is made up. */
  readonly ids: () => string;
}

/** What a person is told of a run that ended so, and an agent of a tool call that it left. */
export const SENTENCES: Record<SettledStatus, string> = {
  finished: "The run finished before this was complete",
  errored: "The run failed",
  stopped: "The run was stopped",
  superseded: "The run was superseded by a newer one",
  broken: "The host of the run ended",
};

function terminalEvent(how: Ending): BaseEvent {
  const { status, threadId, runId, terminal, code, message = SENTENCES[status] } = how;
  if (terminal !== undefined) return terminal;
  switch (status) {
    case "finished":
      return { type: EventType.RUN_FINISHED, threadId, runId };
    case "stopped":
    case "superseded":
      return { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "cancelled" } };
    case "errored":
      return { type: EventType.RUN_ERROR, message, ...(code === undefined ? {} : { code }) };
    case "broken":
      return { type: EventType.RUN_ERROR, message, code: "RUN_BROKEN" };
  }
}

/**
 * The events that end a run: the end of everything that is open, then one terminal event. What ends inside something
 * else ends before it.
 *
 * A tool result is made up for a call whose end was missing, and, where the run was ended from outside, for a call that
 * has no result. It says as JSON what happened: `{ status, message }`. A front-end tool's call never gets one (the page
 * answers it), nor does one that the agent says is waited for (an interrupt is about it), nor any call of a stream that was
 * cut off (its result may exist).
 */
export function closingEvents(open: OpenConstructs | undefined, how: Ending): BaseEvent[] {
  // L3: nothing stays open, and one terminal event is the last.
  return [...endsOf(open, how), terminalEvent(how)];
}

/** The end of everything that is open. */
export function endsOf(
  open: OpenConstructs | undefined,
  how: Pick<Ending, "status" | "message" | "code" | "ids"> & {
    /** Calls that get no result: the agent says that theirs is to come. */
    readonly awaited?: ReadonlySet<unknown>;
  },
): BaseEvent[] {
  const message = how.message ?? SENTENCES[how.status];
  const events: AGUIEvent[] = [];

  const result = (toolCallId: string): AGUIEvent => ({
    type: EventType.TOOL_CALL_RESULT,
    messageId: how.ids(),
    toolCallId,
    role: "tool",
    content: JSON.stringify({ status: how.status, message }),
  });

  if (open !== undefined) {
    for (const messageId of open.textMessages) events.push({ type: EventType.TEXT_MESSAGE_END, messageId });
    for (const messageId of open.reasoningMessages) events.push({ type: EventType.REASONING_MESSAGE_END, messageId });
    for (const messageId of open.reasoningSpans) events.push({ type: EventType.REASONING_END, messageId });
    for (const { toolCallId, answered, frontEnd } of open.toolCalls) {
      events.push({ type: EventType.TOOL_CALL_END, toolCallId });
      const isAwaited = frontEnd || how.code === "INCOMPLETE_STREAM" || how.awaited?.has(toolCallId) === true;
      if (!answered && !isAwaited) events.push(result(toolCallId));
    }
    if (how.status !== "finished" && how.status !== "errored") {
      for (const { toolCallId, frontEnd } of open.unanswered) if (!frontEnd) events.push(result(toolCallId));
    }
    for (const step of open.steps.toReversed()) events.push({ type: EventType.STEP_FINISHED, ...step });
    for (const subagentRunId of open.subagents.toReversed()) {
      events.push(
        how.status === "finished"
          ? { type: EventType.SUBAGENT_FINISHED, subagentRunId }
          : { type: EventType.SUBAGENT_ERROR, subagentRunId, message },
      );
    }
  }

  return events;
}
