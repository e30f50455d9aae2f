import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import type { ConnectedEvents } from "../run/contract.js";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import { fromErrorData } from "./errors.js";
import { eventsOfFrame } from "./frames.js";
import type { Frame } from "./shapes.js";

/** The cursor after a frame; undefined if only a snapshot can continue from there. */
export function cursorBehind(frame: Frame, before: Cursor | undefined): Cursor | undefined {
  switch (frame.type) {
    case "prelude":
      return frame.cursor;
    case "run":
      return { runIndex: frame.run.runIndex, seq: -1, epoch: frame.run.epoch };
    case "chunk": {
      const { runIndex, firstSeq, count, epoch } = frame.chunk;
      return { runIndex, seq: firstSeq + count - 1, epoch };
    }
    case "lost":
      return undefined;
    default:
      return before;
  }
}

/**
 * Converts a thread's frames for a reader of plain events. No event says that a run was cut off, so that case throws.
 *
 * @returns maps one frame after the other; undefined for a frame without events. Throws RunnerError: the reason why the
 *   end of the run cannot be written; `deleted` if the thread was deleted during the run; `fenced` if the thread
 *   continued without the run
 *   the run
 */
export function threadEvents(threadId: string): (frame: Frame) => ConnectedEvents | undefined {
  let cursor: Cursor | undefined;
  let inRun = false;
  return (frame) => {
    if (frame.type === "lost") throw fromErrorData(frame.error);
    if (frame.type === "prelude" && inRun) {
      throw new RunnerError(frame.cursor.runIndex < 0 ? "deleted" : "fenced", { threadId });
    }
    cursor = cursorBehind(frame, cursor);
    const events = eventsOfFrame(frame);
    if (events.length === 0 || cursor === undefined) return undefined;
    inRun = isInRun(events) ?? inRun;
    return { events, cursor };
  };
}

/** Whether a run is open after these events; undefined if they do not tell. */
function isInRun(events: readonly BaseEvent[]): boolean | undefined {
  const last = events.findLast(({ type }) => LIFECYCLE.has(type));
  return last && last.type === EventType.RUN_STARTED;
}

const LIFECYCLE: ReadonlySet<string> = new Set([EventType.RUN_STARTED, EventType.RUN_FINISHED, EventType.RUN_ERROR]);
