import type { Attempt } from "../../run/hosted.js";
import { attemptRunId, isRecoverable, type RunEnding } from "../../run/recovery.js";
import type { DeviceName } from "../../storage/devices.js";
import type { Asker, RunRow } from "../../storage/rows.js";
import type { RecoveryWaiting } from "../../storage/waiting.js";
import type { RunnerParts } from "../parts.js";

/** A run that ends. */
interface EndingRun {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  readonly agentId?: string | undefined;
  readonly attempt?: Attempt | undefined;
  readonly device?: DeviceName | undefined;
  readonly asker?: Asker | undefined;
}

/**
 * What waits from the end of a run on, in the transaction that writes the end. Whether the run really goes on is decided
 * later, by its content. Undefined where its agent's policy leaves such an end alone, and for a run of another device: only
 * that one goes on with it, or, where devices asked servers for it, another server.
 */
export function recoveryOf(
  { recovery, clock }: Pick<RunnerParts, "recovery" | "clock">,
  { threadId, runId, runIndex, agentId, attempt, device, asker }: EndingRun,
  ending: RunEnding,
): RecoveryWaiting | undefined {
  if (!mayRecover(recovery, { ...(device && { device }), ...(asker && { asker }) })) return undefined;
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
