import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import type { ConnectedEvents } from "../run/contract.js";
import { RunnerError } from "../run/errors.js";
import type { Cursor } from "../run/types.js";
import { fromErrorData } from "./errors.js";
import { eventsOfFrame } from "./frames.js";
import type { Frame } from "./shapes.js";

/** The cursor after a frame; undefined where only a snapshot can bring the rest. */
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
 * A thread's frames for a reader of plain events. A run that breaks off in the middle has no event, so this throws.
 *
 * @returns maps one frame after the other; undefined for a frame without events. Throws RunnerError: why the end of the
 *   run cannot be written; `deleted` if the thread was deleted during the run, `fenced` if the thread went on without
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

/** Whether a run is open after these events; undefined where they do not say. */
function isInRun(events: readonly BaseEvent[]): boolean | undefined {
  const last = events.findLast(({ type }) => LIFECYCLE.has(type));
  return last && last.type === EventType.RUN_STARTED;
}

const LIFECYCLE: ReadonlySet<string> = new Set([EventType.RUN_STARTED, EventType.RUN_FINISHED, EventType.RUN_ERROR]);
