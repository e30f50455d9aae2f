import { RunnerError } from "../run/errors.js";
import { mayHoldBytes, readable, readableItems } from "../run/readable.js";
import type { Claim, ClaimRequest, RunClosing, RunRow, Settlement, StopRequest, ThreadHead } from "./run-store.js";

/*
 * What every store decides alike, from what it read in the transaction that it is going to write in.
 */

/** Runs below it were deleted or cut off. */
export const firstOf = (head: ThreadHead | undefined): number => head?.first ?? 0;

/** All that is left of the run is what it left behind. */
export const hasNoEvents = (head: ThreadHead | undefined, runIndex: number): boolean =>
  runIndex < firstOf(head) || (head?.cut === true && runIndex === head.first);

export const holds = (head: ThreadHead | undefined, held: Claim): head is ThreadHead =>
  head?.epoch === held.epoch && head.holder === held.holder && head.live?.runIndex === held.runIndex;

export const fenced = (held: Claim, head: ThreadHead | undefined): RunnerError =>
  new RunnerError("fenced", {
    threadId: held.threadId,
    runId: held.runId,
    ...(head?.holder !== undefined && { holderId: head.holder }),
  });

/** A row in whichever form a store keeps it. */
type AnyRow = Omit<RunRow, "runId">;

export type ClaimDecision<Row extends AnyRow> =
  /** Ours, from a first try whose end was not heard. */
  | { readonly is: "again"; readonly run: Row }
  | { readonly is: "exists"; readonly run: Row }
  | { readonly is: "moved" }
  /** `stale`: a run of this id that does not count any more and must make room. `former`: one that gives way. */
  | {
      readonly is: "new";
      readonly runIndex: number;
      readonly stale: Row | undefined;
      readonly former: Row | undefined;
    };

/** @param same the row with the request's run id (and fingerprint, where there are several), whether or not it counts any more */
export function decideClaim<Row extends AnyRow>(
  head: ThreadHead | undefined,
  same: Row | undefined,
  request: ClaimRequest,
): ClaimDecision<Row> {
  const first = firstOf(head);
  if (same !== undefined && same.runIndex >= first) {
    const ours =
      head?.live?.runId === request.runId && head.holder === request.holder && same.startedAt === request.startedAt;
    const givesWay = request.answers === true && same.status !== "running" && same.fingerprint !== request.fingerprint;
    if (!givesWay) return { is: ours ? "again" : "exists", run: same };
  }
  // Whoever knows nothing of a deleted thread begins a new one.
  const seen = head?.deleted === true && request.base === undefined ? undefined : head;
  const { base, prevRunIndex } = request;
  const moved = seen?.activeRunIndex !== base?.activeRunIndex || seen?.epoch !== base?.epoch;
  const onNothing = prevRunIndex !== null && prevRunIndex < first;
  if (moved || onNothing || head?.live !== undefined) return { is: "moved" };
  const counts = same !== undefined && same.runIndex >= first;
  return {
    is: "new",
    runIndex: head?.runCount ?? 0,
    stale: counts ? undefined : same,
    former: counts ? same : undefined,
  };
}

export function claimedHead(
  head: ThreadHead | undefined,
  request: ClaimRequest,
  runIndex: number,
  epoch: number,
): ThreadHead {
  const { threadId, runId, holder, prevRunIndex } = request;
  const { deleted: _deleted, ...rest } = head ?? { threadId };
  const branches = prevRunIndex !== (runIndex === firstOf(head) ? null : runIndex - 1);
  return {
    ...rest,
    epoch,
    runCount: runIndex + 1,
    activeRunIndex: runIndex,
    live: { runIndex, runId },
    holder,
    ...(branches && { branched: true }),
  };
}

/** @param last the run id of the thread's last run; it is no parent of a run that takes its id over */
export function claimedRun(request: ClaimRequest, runIndex: number, epoch: number, last: string | undefined): RunRow {
  const parentRunId = request.parentRunId ?? (last === request.runId ? undefined : last);
  return {
    threadId: request.threadId,
    runIndex,
    runId: request.runId,
    prevRunIndex: request.prevRunIndex,
    ...(parentRunId !== undefined && { parentRunId }),
    ...(request.agentId !== undefined && { agentId: request.agentId }),
    status: "running",
    epoch,
    startedAt: request.startedAt,
    fingerprint: request.fingerprint,
  };
}

/** The head after its run ended. */
export function freed(head: ThreadHead): ThreadHead {
  const { live: _live, holder: _holder, stop: _stop, ...rest } = head;
  return rest;
}

/** What the live run is asked to end as. */
export const askedAs = (head: ThreadHead): StopRequest["as"] | undefined =>
  head.stop !== undefined && head.stop.runId === head.live?.runId ? head.stop.as : undefined;

/** An end that the agent did not bring about gives way to what somebody asked for. */
export const stopDecides = (head: ThreadHead, { status, ownTerminal }: Settlement): boolean =>
  (status === "finished" || status === "errored") && !ownTerminal && askedAs(head) !== undefined;

/** @returns the live run, and the head where the request changes it; undefined where no live run matches */
export function askToStop(
  head: ThreadHead | undefined,
  runId: string | undefined,
  at: number,
  as: StopRequest["as"],
):
  | {
      readonly asked: { runIndex: number; runId: string; holder: string; first: boolean };
      readonly head: ThreadHead | undefined;
    }
  | undefined {
  if (head?.live === undefined || head.holder === undefined) return undefined;
  if (runId !== undefined && head.live.runId !== runId) return undefined;
  const before = askedAs(head);
  const first = before === undefined;
  const changes = first || (before === "stopped" && as === "superseded");
  return {
    asked: { ...head.live, holder: head.holder, first },
    head: changes ? { ...head, stop: { runId: head.live.runId, at, as } } : undefined,
  };
}

/** The head without the runs in `derived`, whose messages and state are there now or are not wanted any more. */
export function withoutUnderived(head: ThreadHead, derived: (runIndex: number) => boolean): ThreadHead {
  const { underived, ...rest } = head;
  const left = (underived ?? []).filter((runIndex) => !derived(runIndex));
  return left.length > 0 ? { ...rest, underived: left } : rest;
}

/** What a deleted thread leaves. Its epoch is new, so nobody goes on with what he read before. */
export const tombstone = ({ threadId, runCount }: ThreadHead, epoch: number): ThreadHead => ({
  threadId,
  epoch,
  runCount,
  activeRunIndex: -1,
  first: runCount,
  deleted: true,
});

/** The thread may be cut before `runIndex`, as far as its head tells (a tombstone's has no active run). */
export const mayCut = (head: ThreadHead, runIndex: number): boolean =>
  head.live === undefined &&
  runIndex >= firstOf(head) &&
  runIndex <= head.activeRunIndex &&
  head.underived?.includes(runIndex) !== true;

/** Its epoch is new: what was read before knows the messages as those of runs that are gone. */
export const cutHead = (head: ThreadHead, epoch: number, runIndex: number, removed: readonly number[]): ThreadHead => {
  const gone = new Set(removed);
  const kept = withoutUnderived(head, (underived) => underived < runIndex || gone.has(underived));
  return { ...kept, epoch, first: runIndex, cut: true };
};

/**
 * The runs above `runIndex` that do not come from it: branches that left the path before.
 *
 * @param above all runs above `runIndex`, in order
 * @returns undefined where the active path does not pass through `runIndex` either
 */
export function branchesBefore(
  runIndex: number,
  above: readonly { readonly runIndex: number; readonly prevRunIndex: number | null }[],
  activeRunIndex: number,
): number[] | undefined {
  const passing = new Set([runIndex]);
  const removed: number[] = [];
  for (const run of above) {
    if (run.prevRunIndex !== null && passing.has(run.prevRunIndex)) passing.add(run.runIndex);
    else removed.push(run.runIndex);
  }
  return passing.has(activeRunIndex) ? removed : undefined;
}

/** What of them can be handed on. */
export const readableClosing = ({ runStarted, customs, terminal }: RunClosing): RunClosing => ({
  runStarted: readable(runStarted),
  customs: readableItems(customs, mayHoldBytes),
  terminal: readable(terminal, true),
});
