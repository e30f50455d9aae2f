import { defined } from "../platform/defined.js";
import { RunnerError } from "../run/errors.js";
import {
  claimedRun,
  claimedThread,
  firstOf,
  freed,
  hasNoEvents,
  newRun,
  withoutUnderived,
  type AnyRow,
  type AnyThread,
  type NewRun,
  type RowsOfId,
} from "./decisions.js";
import type { PlacedRun } from "./devices.js";
import { leftBy, pendingAfter } from "./pending-tool-calls.js";
import type { RunRow, ThreadHead } from "./run-store.js";

/*
 * Decisions on runs of other devices, common to all stores.
 */

/** Nobody is to read again what was revised before, however often it is revised. */
const revised = (run: AnyRow, epoch: number, from: number): NonNullable<RunRow["revised"]> => ({
  epoch,
  from: Math.min(from, run.revised?.from ?? from),
});

/** A broken run of another device with its events. @param run the active run */
export const mayReopen = <Row extends AnyRow>(
  head: ThreadHead,
  run: Row | undefined,
): run is Row & { readonly closedFrom: number } =>
  head.live === undefined &&
  run?.device !== undefined &&
  run.status === "broken" &&
  run.closedFrom !== undefined &&
  !hasNoEvents(head, run.runIndex);

export function reopenedRun<Row extends AnyRow>(run: Row & { readonly closedFrom: number }, epoch: number) {
  const { endedAt: _endedAt, eventCount: _eventCount, closedFrom, recovery: _recovery, ...rest } = run;
  return { ...rest, status: "running" as const, epoch, revised: revised(run, epoch, closedFrom) };
}

export const reopenedHead = (
  head: ThreadHead,
  { runIndex, runId, device }: RunRow,
  epoch: number,
  holder: string,
): ThreadHead => ({
  ...withoutUnderived(freed(head), (other) => other === runIndex),
  epoch,
  live: { runIndex, runId, ...(device !== undefined && { device }) },
  holder,
});

/** What the placing of a run depends on: while these stay the same, so does what is decided. */
export interface PlaceBase<Row extends AnyRow> extends RowsOfId<Row> {
  readonly head: ThreadHead | undefined;
  /** The row of the run that it continues. */
  readonly prev: AnyRow | undefined;
}

export type PlaceDecision<Row extends AnyRow> =
  | { readonly is: "blocked" }
  | { readonly is: "there"; readonly run: Row }
  | { readonly is: "replaces"; readonly run: Row }
  /** `takesId`: the run is found by its id from now on. */
  | (NewRun<Row> & { readonly takesId: boolean });

/** How many events the chunks have. Errors: RunnerError `invalid-input` if they are not all from seq 0 on */
export function eventsIn({ threadId, runId, chunks }: PlacedRun): number {
  let next = 0;
  for (const { firstSeq, count } of chunks) {
    if (firstSeq !== next || count <= 0) throw new RunnerError("invalid-input", { field: "chunks", threadId, runId });
    next += count;
  }
  if (next === 0) throw new RunnerError("invalid-input", { field: "chunks", threadId, runId });
  return next;
}

/** Its end here is not the one that its device gave it. */
function isReplacedBy(run: AnyRow, placed: PlacedRun): boolean {
  const { device, asker, status, eventCount = 0, closedFrom, endedAt } = run;
  // A server that was cut off behind its claim: another one has executed what was asked for.
  if (device === undefined) return asker !== undefined && status === "stopped" && placed.status === "finished";
  const count = eventsIn(placed);
  if (status === "broken") {
    // Who sends it anew, and broke off again before it had sent as much, has said less of it than was here.
    const isShorter = (placed.closedFrom ?? count) < (closedFrom ?? eventCount);
    const isSameEnd = placed.endedAt === endedAt && placed.closedFrom === closedFrom;
    return placed.status !== status || count > eventCount || !(isSameEnd || isShorter);
  }
  // A host that took it over has written this end.
  return (status === "stopped" || status === "superseded") && count > eventCount;
}

export function decidePlace<Row extends AnyRow>(
  { head, prev, ...rows }: PlaceBase<Row>,
  placed: PlacedRun,
): PlaceDecision<Row> {
  const { prevRunIndex, fingerprint, activates } = placed;
  const { same } = rows;
  const waits = activates && head?.live !== undefined;
  const first = firstOf(head);
  if (same !== undefined && same.runIndex >= first) {
    if (same.status === "running") return { is: "blocked" };
    const replaces =
      same.fingerprint === fingerprint && !hasNoEvents(head, same.runIndex) && isReplacedBy(same, placed);
    if (!replaces) return { is: "there", run: same };
    return waits ? { is: "blocked" } : { is: "replaces", run: same };
  }
  const isAbsent = prevRunIndex !== null && (prevRunIndex < first || prev === undefined || prev.status === "running");
  if (waits || isAbsent) return { is: "blocked" };
  const { former, ...decision } = newRun(head, rows);
  const takesId = activates || former === undefined;
  return { ...decision, former: takesId ? former : undefined, takesId };
}

/** Whether the run becomes the end of the active path: a new thread's first run does. */
export const activatesNew = (head: ThreadHead | undefined, { activates }: PlacedRun): boolean =>
  activates || head === undefined || head.deleted === true;

/** The row of a run that is added: as of one that was claimed, with its end. */
export function placedRun(head: ThreadHead | undefined, placed: PlacedRun, runIndex: number, epoch: number): RunRow {
  const { runId, status, endedAt, closedFrom, activates } = placed;
  // It has the parent that its device named, if any.
  const { leaves, ...row } = claimedRun(head, placed, runIndex, epoch, runId);
  const more = defined({ closedFrom, leaves: activates ? leaves : undefined });
  return { ...row, status, endedAt, eventCount: eventsIn(placed), ...more };
}

/**
 * The thread's row with a run that was placed, as {@link claimedThread}.
 *
 * @param end whether the run is the end of the active path
 */
export const placedThread = <Row extends AnyThread>(
  row: Row,
  { agentId, status, startedAt, endedAt, listedAt = endedAt }: PlacedRun,
  title: Row["title"],
  { isNew, isEnd }: { readonly isNew: boolean; readonly isEnd: boolean },
): Row => ({
  ...claimedThread(row, { title, startedAt, listedAt, ...(isEnd && defined({ agentId })) }),
  ...(isEnd && { lastStatus: status }),
  runCount: row.runCount + (isNew ? 1 : 0),
});

/** The head of a thread with one more run. Beside the path it changes nothing that a claim or a reader depends on. */
export function placedHead(
  head: ThreadHead | undefined,
  placed: PlacedRun,
  runIndex: number,
  epoch: number,
): ThreadHead {
  const { threadId, prevRunIndex } = placed;
  const { deleted: _deleted, ...rest } = head ?? { threadId };
  const branches = prevRunIndex !== (runIndex === firstOf(head) ? null : runIndex - 1);
  const branched = branches ? ({ branched: true } as const) : {};
  if (head !== undefined && !activatesNew(head, placed)) return { ...head, runCount: runIndex + 1, ...branched };
  const { pending, ...others }: Partial<ThreadHead> = rest;
  return {
    ...others,
    threadId,
    epoch,
    runCount: runIndex + 1,
    activeRunIndex: runIndex,
    ...branched,
    ...pendingAfter(pending, prevRunIndex, runIndex, placed),
  };
}

/** The row of a run whose events and end are replaced. */
export function replacedRun<Row extends AnyRow>(run: Row, placed: PlacedRun, epoch: number) {
  const { closedFrom, recovery: _recovery, ...rest } = run;
  const { status, endedAt } = placed;
  return {
    ...rest,
    device: rest.device ?? placed.device,
    status,
    endedAt,
    eventCount: eventsIn(placed),
    epoch,
    ...(placed.closedFrom !== undefined && { closedFrom: placed.closedFrom }),
    revised: revised(run, epoch, closedFrom ?? 0),
  };
}

/** The row of the active run after one before it was replaced: it begins on other messages now. */
export const rebasedRun = <Row extends AnyRow>(run: Row, epoch: number) => ({
  ...run,
  epoch,
  revised: revised(run, epoch, 0),
});

/**
 * The head after the events of a run were replaced.
 *
 * @param isOnPath whether the run is part of the active path; it then stays where it is
 */
export function replacedHead(
  head: ThreadHead,
  { runIndex }: AnyRow,
  { activates, left }: PlacedRun,
  epoch: number,
  isOnPath: boolean,
): ThreadHead {
  const rest = withoutUnderived(head, (other) => other === runIndex);
  const replaced = isOnPath ? { ...rest, epoch } : activates ? activatedHead(rest, runIndex, epoch) : rest;
  const isLast = replaced.activeRunIndex === runIndex && replaced.live === undefined;
  return isLast ? { ...replaced, ...leftBy(replaced.pending, runIndex, left) } : replaced;
}

/** Whether a settled run may become the end of the active path, where it is not. */
export const mayActivate = (head: ThreadHead | undefined, run: AnyRow | undefined): head is ThreadHead =>
  head !== undefined &&
  head.deleted !== true &&
  head.live === undefined &&
  run !== undefined &&
  run.status !== "running" &&
  run.runIndex >= firstOf(head);

export function activatedHead(head: ThreadHead, runIndex: number, epoch: number): ThreadHead {
  const { pending, ...rest } = head;
  return {
    ...rest,
    epoch,
    activeRunIndex: runIndex,
    branched: true,
    ...(pending?.runIndex === runIndex && { pending }),
  };
}

/** Whether a run is part of the path that ends with another one. @param prevOf the run that a run continues */
export function isOnPathTo(
  end: number,
  runIndex: number,
  prevOf: (runIndex: number) => number | null | undefined,
): boolean {
  let at: number | null | undefined = end;
  // A run only continues earlier ones.
  while (typeof at === "number" && at > runIndex) at = prevOf(at);
  return at === runIndex;
}
