import type { RunFinishedEvent } from "@ag-ui/client";
import { RunnerError } from "../../run/errors.js";
import { planInput, type ThreadBase } from "../../run/input-plan.js";
import { describeFaults, resumeFaults, unknownAnswers } from "../../run/interrupts.js";
import { firstOf } from "../../storage/decisions.js";
import { isNextAfterCalls } from "../../storage/pending-tool-calls.js";
import type { RunClosing, ThreadHead } from "../../storage/run-store.js";
import { newThread } from "../history/history.js";
import type { RecordedRun } from "../history/recorded-run.js";
import { unlessUnreadable } from "../history/run-log.js";
import { steadily } from "../../storage/steadily.js";
import type { RunnerParts } from "../parts.js";
import type { PlacedRequest } from "../request.js";
import type { RunnerContext } from "./recovery.js";

type Reading = Pick<RunnerContext, "parts" | "history">;

/** What a branch starts from. Undefined where this host's knowledge is stale: another host cut the run off. */
export const startOf = (
  { parts, history }: Reading,
  threadId: string,
  runIndex: number,
): Promise<ThreadBase | undefined> =>
  steadily(parts.store, threadId, async (head) => {
    if (head === undefined || head.deleted === true) return newThread();
    return runIndex >= 0 && runIndex < firstOf(head) ? undefined : history.baseAt(head, runIndex);
  });

export function noBranchPoint({ threadId, branchBefore }: PlacedRequest): RunnerError {
  const message = `The thread's path has no message "${branchBefore}" to branch before`;
  return new RunnerError("invalid-input", { threadId, field: "branchBefore", messageId: branchBefore }, { message });
}

/** Why the run may not start: an open interrupt has no valid answer, or what it answers was settled meanwhile. */
export function refusalFor(
  parts: RunnerParts,
  request: PlacedRequest,
  { start, head }: { readonly start: ThreadBase; readonly head?: ThreadHead },
): RunnerError | undefined | Promise<RunnerError | undefined> {
  const { threadId, input, answered, afterToolCalls, attempt } = request;
  const { runId, resume } = input;
  if (afterToolCalls === true && !isNextAfterCalls(head, runId))
    return new RunnerError("call-over", { threadId, runId });
  const interruptIds = start.interrupts.map(({ id }) => id);
  // An attempt repeats an answer that was given in time.
  const faults = resumeFaults(start.interrupts, resume, attempt === undefined ? parts.clock.now() : -Infinity);
  if (faults !== undefined) {
    return new RunnerError(
      "interrupts-open",
      { threadId, runId, interruptIds, ...faults },
      { message: describeFaults(faults) },
    );
  }
  return lateAnswer(request, interruptIds, answered?.() ?? []) ?? staleAnswer(parts, request, start, interruptIds);
}

/** Only the first of several answers counts. */
function lateAnswer(
  { threadId, input: { runId, resume } }: PlacedRequest,
  interruptIds: readonly string[],
  settled: readonly string[],
): RunnerError | undefined {
  const late = unknownAnswers(interruptIds, resume).filter((id) => settled.includes(id));
  if (late.length === 0) return undefined;
  const message = `What the run answers was settled meanwhile: ${late.join(", ")}`;
  return new RunnerError("interrupts-open", { threadId, runId, interruptIds, settled: late }, { message });
}

/** Over how many runs of the path a late answer is recognized. */
const LOOK_BACK = 100;

/**
 * The same, where the run that answered first, or that closed the interrupts, is over: the sender was asked by an earlier
 * run of the path and does not know how it went on. Reads nothing unless an entry names no open interrupt.
 */
function staleAnswer(
  { store }: RunnerParts,
  request: PlacedRequest,
  start: Pick<ThreadBase, "runIndex">,
  interruptIds: readonly string[],
): undefined | Promise<RunnerError | undefined> {
  const { threadId, input } = request;
  if (unknownAnswers(interruptIds, input.resume).length === 0) return undefined;
  const look = async (at: number | null, left: number): Promise<RunnerError | undefined> => {
    if (at === null || at < 0 || left === 0) return undefined;
    const [run, closing] = await Promise.all([store.run(threadId, at), store.closing(threadId, at)]);
    const stale = closing && lateAnswer(request, interruptIds, askedBy(closing));
    return stale ?? look(run?.prevRunIndex ?? null, left - 1);
  };
  // What cannot be read is told to who reads it.
  return look(start.runIndex, LOOK_BACK).catch(unlessUnreadable);
}

/** Ids of the interrupts that a run ended with. */
function askedBy({ terminal }: RunClosing): readonly string[] {
  const { outcome } = terminal as Partial<RunFinishedEvent>; // a RUN_ERROR has none
  return outcome?.type === "interrupt" ? outcome.interrupts.map(({ id }) => id) : [];
}

/** Whether a request may be refused because of a live run that it is to supersede: see {@link refusalBeside}. */
export const mayBeRefused = ({ branchBefore, input }: PlacedRequest): boolean =>
  branchBefore !== undefined || (input.resume ?? []).length > 0;

/**
 * Why a request would be refused once it has superseded the live run. Decided first, so that nothing ends in vain; at
 * once, unless the log must be read: meanwhile the live run goes on.
 */
export function refusalBeside(
  reading: Reading,
  request: PlacedRequest,
  live: RecordedRun,
): RunnerError | undefined | Promise<RunnerError | undefined> {
  const { threadId, input, branchBefore } = request;
  const { parts } = reading;
  // The end of the live run leaves no interrupt open.
  if (branchBefore === undefined) {
    return lateAnswer(request, [], live.answered) ?? staleAnswer(parts, request, live.start, []);
  }
  if (!live.has(branchBefore)) return noBranchPoint(request);
  // Before a message of the live run, the thread is as that run found it.
  if (!live.start.runOf.has(branchBefore)) return refusalFor(parts, request, live);
  const plan = planInput(live.start, input, { branchBefore });
  if (plan?.is !== "branch") return undefined;
  // Before an earlier message, it is as an earlier run left it. What cannot be read is told of by the request's own fence.
  return startOf(reading, threadId, plan.afterRunIndex).then(
    (start) => start && refusalFor(parts, request, { start }),
    () => undefined,
  );
}
