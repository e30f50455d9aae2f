import { EventType } from "@ag-ui/core";
import type { BaseEvent, RunFinishedEvent, RunErrorEvent, RunStartedEvent } from "@ag-ui/client";
import { defined } from "../platform/defined.js";
import type { SettledStatus } from "../run/types.js";
import type { Frame, LiveRun } from "../wire/shapes.js";
import type { RunFailure, ThreadRun } from "./thread-run.js";

/** The thread's run after a frame. It is over at its terminal event, which comes before `settled`. */
export function threadRunAfter(before: ThreadRun, frame: Frame): ThreadRun {
  switch (frame.type) {
    case "run":
      return runningAs(frame.run);
    case "prelude":
      if (frame.gone !== undefined) return goneAfter(before, frame.gone);
      return frame.live === undefined ? lastOf(frame.events) : runningAs(frame.live);
    case "chunk": {
      const end = endOf(frame.chunk.entries.at(-1)?.event);
      if (end === undefined || before.is === "idle") return before;
      return { is: "idle", last: { runId: before.runId, ...end } };
    }
    case "settled":
      // A repeated frame of an older run.
      if (before.is === "running" && frame.runIndex < before.runIndex) return before;
      // The terminal event came before and says more.
      return before.is === "idle" && before.last?.runId === frame.runId && before.last.status === frame.status
        ? before
        : { is: "idle", last: { runId: frame.runId, status: frame.status } };
    case "recovery": {
      if (before.is !== "idle" || before.last?.runId !== frame.runId) return before;
      const { recovery: _before, ...last } = before.last;
      return { ...before, last: { ...last, ...(frame.recovery !== undefined && { recovery: frame.recovery }) } };
    }
    case "lost":
      return { is: "idle", last: { runId: frame.runId, status: "broken", error: frame.error } };
    default:
      return before;
  }
}

const runningAs = ({ runId, runIndex, attempt, device }: LiveRun): ThreadRun => ({
  is: "running",
  runId,
  runIndex,
  ...defined({ attempt, device }),
});

/** The last run stays known. */
function goneAfter(before: ThreadRun, gone: RunFailure): ThreadRun {
  const last = before.is === "idle" ? before.last : ({ runId: before.runId, status: "broken", error: gone } as const);
  return { is: "idle", ...(last !== undefined && { last }), gone };
}

function lastOf(events: readonly BaseEvent[]): ThreadRun {
  const end = endOf(events.at(-1));
  const started = events.findLast((event) => event.type === EventType.RUN_STARTED) as RunStartedEvent | undefined;
  return end === undefined || started === undefined
    ? { is: "idle" }
    : { is: "idle", last: { runId: started.runId, ...end } };
}

/** How a run ended, from its terminal event (demo/guides/client.md has the table). */
function endOf(
  event: BaseEvent | undefined,
): { readonly status: SettledStatus; readonly error?: RunFailure } | undefined {
  if (event?.type === EventType.RUN_FINISHED) {
    return { status: (event as RunFinishedEvent).outcome?.type === "cancelled" ? "stopped" : "finished" };
  }
  if (event?.type !== EventType.RUN_ERROR) return undefined;
  const { message, code } = event as RunErrorEvent; // its type says so
  const error = { message, ...(code !== undefined && { code }) };
  return { status: code === "RUN_BROKEN" ? "broken" : "errored", error };
}
