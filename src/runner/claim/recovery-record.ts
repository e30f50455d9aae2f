import { attemptRunId, isRecoverable, type RunEnding } from "../../run/recovery.js";
import type { RunRow } from "../../storage/run-store.js";
import type { RecoveryWaiting } from "../../storage/waiting.js";
import type { RunnerParts } from "../parts.js";

/** A run that ends. */
type EndingRun = Pick<RunRow, "threadId" | "runId" | "runIndex" | "device" | "asker"> & {
  readonly [Field in "agentId" | "attempt"]?: RunRow[Field] | undefined;
};

/**
 * What waits from the end of a run on, in the transaction that writes the end. Whether the run really goes on is decided
 * later, by its content. Undefined where its agent's policy leaves such an end alone, and for a run of another device: only
 * that one goes on with it, or, where devices asked servers for it, another server.
 */
export function recoveryOf(
  { recovery, clock }: Pick<RunnerParts, "recovery" | "clock">,
  run: EndingRun,
  ending: RunEnding,
): RecoveryWaiting | undefined {
  const { threadId, runId, runIndex, agentId, attempt } = run;
  if (!mayRecover(recovery, run)) return undefined;
  const policy = recovery.policyOf?.(agentId);
  if (policy === undefined || agentId === undefined || !isRecoverable(ending, policy)) return undefined;
  const number = (attempt?.number ?? 1) + 1;
  return {
    kind: "recovery",
    threadId,
    runId: attemptRunId(runId, number),
    agentId,
    since: clock.now(),
    attempt: { of: runId, number },
    of: runId,
    ofIndex: runIndex,
  };
}

/** Whether this host may go on with a run that broke. */
export const mayRecover = ({ takesOver }: RunnerParts["recovery"], run: Pick<RunRow, "device" | "asker">): boolean =>
  run.device === undefined || takesOver?.(run) === true;
