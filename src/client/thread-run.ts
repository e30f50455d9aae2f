import { EventType } from "@ag-ui/core";
import type { BaseEvent, RunFinishedEvent, RunErrorEvent, RunStartedEvent } from "@ag-ui/client";
import type { SettledStatus } from "../run/types.js";
import type { Frame, RunnerErrorData } from "../wire/shapes.js";

/** The thread's run, as an agent knows it. */
export type ThreadRun =
  | {
      readonly is: "idle";
      readonly last?: {
        readonly runId: string;
        readonly status: SettledStatus;
        /** Its end is not in the log yet: why it cannot be written. */
        readonly error?: RunnerErrorData;
      };
    }
  | { readonly is: "running"; readonly runId: string; readonly runIndex: number };

/** The thread's run after a frame. It is over for whoever sees its terminal event, which comes before `settled`. */
export function threadRunAfter(before: ThreadRun, frame: Frame): ThreadRun {
  switch (frame.type) {
    case "run":
      return { is: "running", runId: frame.run.runId, runIndex: frame.run.runIndex };
    case "prelude":
      return frame.live === undefined
        ? endOf(frame.events)
        : { is: "running", runId: frame.live.runId, runIndex: frame.live.runIndex };
    case "chunk": {
      const status = statusOf(frame.chunk.entries.at(-1)?.event);
      if (status === undefined || before.is === "idle") return before;
      return { is: "idle", last: { runId: before.runId, status } };
    }
    case "settled":
      // Told again of an older run.
      if (before.is === "running" && frame.runIndex < before.runIndex) return before;
      return { is: "idle", last: { runId: frame.runId, status: frame.status } };
    case "lost":
      return { is: "idle", last: { runId: frame.runId, status: "broken", error: frame.error } };
    default:
      return before;
  }
}

function endOf(events: readonly BaseEvent[]): ThreadRun {
  const status = statusOf(events.at(-1));
  const started = events.findLast((event) => event.type === EventType.RUN_STARTED) as RunStartedEvent | undefined;
  return status === undefined || started === undefined
    ? { is: "idle" }
    : { is: "idle", last: { runId: started.runId, status } };
}

/** The run's status, from its terminal event (the table in the README). */
function statusOf(event: BaseEvent | undefined): SettledStatus | undefined {
  if (event?.type === EventType.RUN_FINISHED) {
    return (event as RunFinishedEvent).outcome?.type === "cancelled" ? "stopped" : "finished";
  }
  if (event?.type === EventType.RUN_ERROR) return (event as RunErrorEvent).code === "RUN_BROKEN" ? "broken" : "errored";
  return undefined;
}
