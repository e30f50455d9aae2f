import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { isSameDatabase } from "../../run/epochs.js";
import { equalJson } from "../../run/json.js";
import { firstOf } from "../../storage/decisions.js";
import type { RunRequest } from "../../wire/shapes.js";
import type { History } from "./history.js";
import type { RunnerParts } from "../parts.js";
import { steadily } from "../../storage/steadily.js";

/**
 * The thread's state that a run starts from. The log does not repeat it, so a reader without it would apply the run's
 * deltas to another state (L2, L4).
 */
export interface RunStart {
  readonly state: unknown;
  /** The run that left it; -1 for none. */
  readonly runIndex: number;
  readonly epoch: number;
}

export interface BaselineContext {
  readonly parts: Pick<RunnerParts, "store">;
  readonly history: History;
}

/** The parts of a request that show what its sender has. */
export interface Asked extends Pick<RunRequest, "input"> {
  readonly partial?: RunRequest["partial"] | undefined;
}

interface Place {
  readonly threadId: string;
  readonly runIndex: number;
}

/** A requested run, as its host has it. */
interface AskedRun {
  /** Where it stands in the log. */
  readonly inLog: Place | undefined;
  /** It is executed here, so `start` is complete; else it was found in the log. */
  readonly isHere: boolean;
  readonly start: RunStart | undefined;
}

/** What the caller of a run gets right after RUN_STARTED. It is not in the log. */
export async function baselineFor(
  context: BaselineContext,
  run: AskedRun,
  asked: Asked,
): Promise<readonly BaseEvent[]> {
  if (asked.partial?.stateSet === true) return [];
  const start = run.start ?? (run.inLog === undefined || run.isHere ? undefined : await startOf(context, run.inLog));
  // L4: readers get the state that the run's deltas apply to.
  return start === undefined || hasState(asked, start) ? [] : [snapshotOf(start)];
}

/** The same for a reader that has nothing. */
export async function wholeBaseline(context: BaselineContext, run: Place): Promise<readonly BaseEvent[]> {
  const start = await startOf(context, run);
  return start === undefined || equalJson(start.state, {}) ? [] : [snapshotOf(start)];
}

const snapshotOf = ({ state }: RunStart): BaseEvent => ({ type: EventType.STATE_SNAPSHOT, snapshot: state });

function hasState({ input, partial }: Asked, { state, runIndex, epoch }: RunStart): boolean {
  const { at } = partial ?? {};
  if (at !== undefined && at.runIndex === runIndex && isSameDatabase(at.epoch, epoch)) return true;
  // AG-UI: an absent state means the empty object.
  return equalJson((input.state ?? {}) as unknown, state);
}

/** What a logged run starts from; undefined for the first run of a thread, or where the run before it was cut off. */
function startOf({ parts, history }: BaselineContext, { threadId, runIndex }: Place): Promise<RunStart | undefined> {
  return steadily(parts.store, threadId, async (head) => {
    const before = head && (await history.log.runIfThere(head, runIndex))?.prevRunIndex;
    if (before === undefined || before === null || before < firstOf(head)) return undefined;
    const { state } = await history.endAt(head!, before, 1);
    return { state, runIndex: before, epoch: head!.epoch };
  });
}
