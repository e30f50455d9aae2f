import { defined } from "../platform/defined.js";
import { RunnerError } from "../run/errors.js";
import { mayHoldBytes, readable, readableItems } from "../run/readable.js";
import type { Chunk, SettledStatus } from "../run/types.js";
import { answeredIn, carried, leftBy, untaken } from "./pending-tool-calls.js";
import type {
  Claim,
  ClaimRequest,
  ClaimResult,
  RunClosing,
  RunRow,
  Settlement,
  StopRequest,
  ThreadHead,
} from "./run-store.js";

/*
 * Decisions common to all stores, from what was read in the writing transaction.
 */

/** Runs below it were deleted or cut off. */
export const firstOf = (head: ThreadHead | undefined): number => head?.first ?? 0;

/** The run's events were deleted; messages and state may be left. */
export const hasNoEvents = (head: ThreadHead | undefined, runIndex: number): boolean =>
  runIndex < firstOf(head) || (head?.cut === true && runIndex === head.first);

export const holds = (head: ThreadHead | undefined, held: Claim): head is ThreadHead =>
  // L6: a claim may write only in its epoch, for its holder and run.
  head?.epoch === held.epoch && head.holder === held.holder && head.live?.runIndex === held.runIndex;

export const fenced = (held: Claim, head: ThreadHead | undefined): RunnerError =>
  new RunnerError("fenced", {
    threadId: held.threadId,
    runId: held.runId,
    ...(head?.holder !== undefined && { holderId: head.holder }),
  });

/** Whether the log has a run that is asked for. @param answer see `addWaiting` */
export const isInLog = (
  head: ThreadHead | undefined,
  run: Pick<RunRow, "runIndex" | "fingerprint"> | undefined,
  answer: string | undefined,
): boolean =>
  run !== undefined && run.runIndex >= firstOf(head) && (answer === undefined || run.fingerprint === answer);

/** A run's row in the store's own form. */
export type AnyRow = Omit<RunRow, "runId">;

export type ClaimDecision<Row extends AnyRow> =
  /** This is a retry: the first try was committed. */
  | { readonly is: "again"; readonly run: Row }
  | { readonly is: "exists"; readonly run: Row }
  | { readonly is: "moved" }
  | NewRun<Row>;

/** The rows that a new run of their id has to do with, also those that do not count any more. */
export interface RowsOfId<Row extends AnyRow> {
  /** The run that is asked for, as far as its id and fingerprint say; one of another device is told by its name. */
  readonly same: Row | undefined;
  /** The one that is found by the id alone. */
  readonly newest: Row | undefined;
}

export interface NewRun<Row extends AnyRow> {
  readonly is: "new";
  readonly runIndex: number;
  /** They do not count any more: they are deleted. */
  readonly stale: readonly Row[];
  /** It has the id up to now. */
  readonly former: Row | undefined;
}

export function newRun<Row extends AnyRow>(head: ThreadHead | undefined, { same, newest }: RowsOfId<Row>): NewRun<Row> {
  const first = firstOf(head);
  const rows = same === newest ? [newest] : [same, newest];
  return {
    is: "new",
    runIndex: head?.runCount ?? 0,
    stale: rows.filter((row): row is Row => row !== undefined && row.runIndex < first),
    former: newest !== undefined && newest.runIndex >= first ? newest : undefined,
  };
}

export function decideClaim<Row extends AnyRow>(
  head: ThreadHead | undefined,
  rows: RowsOfId<Row>,
  request: ClaimRequest,
): ClaimDecision<Row> {
  const first = firstOf(head);
  const { same } = rows;
  if (same !== undefined && same.runIndex >= first) {
    const ours =
      head?.live?.runId === request.runId && head.holder === request.holder && same.startedAt === request.startedAt;
    const isAnswer = request.answerId !== undefined && request.device === undefined;
    const givesWay = isAnswer && same.status !== "running" && same.fingerprint !== request.fingerprint;
    if (!givesWay) return { is: ours ? "again" : "exists", run: same };
  }
  // A caller without a base starts a deleted thread anew.
  const seen = head?.deleted === true && request.base === undefined ? undefined : head;
  const { base, prevRunIndex } = request;
  // L1: the log decides, not what a host remembers.
  const moved = seen?.activeRunIndex !== base?.activeRunIndex || seen?.epoch !== base?.epoch;
  const onNothing = prevRunIndex !== null && prevRunIndex < first;
  if (moved || onNothing || head?.live !== undefined || !takesAnswers(head, request)) return { is: "moved" };
  return newRun(head, rows);
}

/**
 * A run that continues the path takes along all answers to pending tool calls: none is lost, or taken twice. One that another
 * device executes may not know of them: they stay for a later one.
 */
function takesAnswers(head: ThreadHead | undefined, { prevRunIndex, toolCallIds = [], device }: ClaimRequest): boolean {
  if (device !== undefined) return true;
  const waiting = prevRunIndex === head?.activeRunIndex ? answeredIn(head) : [];
  return waiting.length === toolCallIds.length && waiting.every(({ toolCallId }) => toolCallIds.includes(toolCallId));
}

/** The result of a claim that was granted. */
export const granted = (
  { threadId, runId, holder }: ClaimRequest,
  { runIndex, epoch }: { readonly runIndex: number; readonly epoch: number },
  bytes = 0,
): ClaimResult => ({ is: "claimed", claim: { threadId, runId, runIndex, epoch, holder }, bytes });

export function claimedHead(
  head: ThreadHead | undefined,
  request: ClaimRequest,
  runIndex: number,
  epoch: number,
): ThreadHead {
  const { threadId, runId, holder, prevRunIndex, device, toolCallIds = [] } = request;
  const { deleted: _deleted, pending: _pending, ...rest } = head ?? { threadId };
  const branches = prevRunIndex !== (runIndex === firstOf(head) ? null : runIndex - 1);
  return {
    ...rest,
    epoch,
    runCount: runIndex + 1,
    activeRunIndex: runIndex,
    live: { runIndex, runId, ...(device !== undefined && { device }) },
    holder,
    ...(branches && { branched: true }),
    ...carried(head, prevRunIndex, runIndex, toolCallIds),
  };
}

/** @param last the id of the thread's last run; no parent of a run with the same id */
export function claimedRun(
  head: ThreadHead | undefined,
  request: Omit<ClaimRequest, "holder" | "base">,
  runIndex: number,
  epoch: number,
  last: string | undefined,
): RunRow {
  const { device, asker, answerId } = request;
  const end = head?.deleted === true ? null : (head?.activeRunIndex ?? null);
  const parentRunId = request.parentRunId ?? (last === request.runId ? undefined : last);
  return {
    threadId: request.threadId,
    runIndex,
    runId: request.runId,
    prevRunIndex: request.prevRunIndex,
    ...defined({ parentRunId, agentId: request.agentId }),
    status: "running",
    epoch,
    startedAt: request.startedAt,
    fingerprint: request.fingerprint,
    ...defined({ attempt: request.attempt, device, asker, answerId }),
    ...(end !== null && end !== request.prevRunIndex && { leaves: end }),
  };
}

/** The row of a thread in the store's own form. */
export interface AnyThread {
  readonly title: unknown;
  readonly named?: 1 | true;
  readonly runCount: number;
  readonly updatedAt: number;
}

/**
 * The thread's row with one more run. Its first message names a thread that nobody named. No run moves it down in the list,
 * whatever its device takes for now.
 */
export const claimedThread = <Row extends AnyThread>(
  row: Row,
  {
    title,
    agentId,
    startedAt,
    listedAt = startedAt,
  }: Pick<ClaimRequest, "agentId" | "startedAt" | "listedAt"> & { readonly title: Row["title"] },
): Row => ({
  ...row,
  ...(row.title === "" && row.named === undefined && { title }),
  ...(agentId !== undefined && { agentId }),
  updatedAt: Math.max(row.updatedAt, listedAt),
  runCount: row.runCount + 1,
});

/** The run's row after `chunk` ended it. */
export const endedRun = <Row extends AnyRow>(run: Row, status: SettledStatus, endedAt: number, chunk: Chunk): Row => ({
  ...run,
  status,
  endedAt,
  eventCount: chunk.firstSeq + chunk.count,
  ...((status === "broken" || status === "errored") && { closedFrom: chunk.firstSeq }),
});

/** The head after its run ended, without pending tool calls, but for answers that the run was not given. */
export function freed(head: ThreadHead): ThreadHead {
  const { live: _live, holder: _holder, stop: _stop, pending, ...rest } = head;
  return { ...rest, ...untaken(pending, head.activeRunIndex, head.activeRunIndex) };
}

/** The head after its run was settled by its holder. */
export const settledHead = (head: ThreadHead, runIndex: number, { left }: Settlement): ThreadHead => ({
  ...freed(head),
  ...leftBy(head.pending, runIndex, left),
});

/** The head after another host ended its run `runIndex` under a new epoch; its messages and state are to be derived. */
export const takenOver = (head: ThreadHead, epoch: number, runIndex: number): ThreadHead => ({
  ...freed(head),
  epoch,
  underived: [...(head.underived ?? []), runIndex],
});

/** What the live run is asked to end as. */
export const askedAs = (head: ThreadHead): StopRequest["as"] | undefined =>
  head.stop !== undefined && head.stop.runId === head.live?.runId ? head.stop.as : undefined;

/** A stop request takes precedence over an end that is not the agent's own. */
export const stopDecides = (head: ThreadHead, { status, ownTerminal }: Settlement): boolean =>
  (status === "finished" || status === "errored") && !ownTerminal && askedAs(head) !== undefined;

/** @returns the live run, and the head if the request changes it; undefined if no live run matches */
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
  const { device: _device, ...live } = head.live;
  const before = askedAs(head);
  const first = before === undefined;
  const changes = first || (before === "stopped" && as === "superseded");
  return {
    asked: { ...live, holder: head.holder, first },
    head: changes ? { ...head, stop: { runId: head.live.runId, at, as } } : undefined,
  };
}

/** @param derived whether the run's messages and state are stored now, or not wanted any more */
export function withoutUnderived(head: ThreadHead, derived: (runIndex: number) => boolean): ThreadHead {
  const { underived, ...rest } = head;
  const left = (underived ?? []).filter((runIndex) => !derived(runIndex));
  return left.length > 0 ? { ...rest, underived: left } : rest;
}

/** Whether the thread was deleted after `before`, and has begun anew. */
export const beganAnew = (head: ThreadHead | undefined, before: ThreadHead | undefined): boolean =>
  before !== undefined &&
  before.deleted !== true &&
  head?.deleted !== true &&
  head?.cut !== true &&
  firstOf(head) >= before.runCount;

export const readableClosing = ({ runStarted, customs, terminal }: RunClosing): RunClosing => ({
  runStarted: readable(runStarted),
  customs: readableItems(customs, mayHoldBytes),
  terminal: readable(terminal, true),
});
