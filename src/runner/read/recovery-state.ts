import type { RunRecovery } from "../../run/recovery.js";
import type { RunStore } from "../../storage/run-store.js";

/** How many waiting runs are looked through: recoveries are added in front of the others. */
const LOOKED_AT = 32;

/** What becomes of the run `runIndex`, which ended in an error; undefined where nobody goes on with it. */
export async function recoveryState(
  store: Pick<RunStore, "run" | "waitingRuns">,
  threadId: string,
  runIndex: number,
): Promise<{ readonly runId: string; readonly recovery?: RunRecovery } | undefined> {
  // In this order: what waits no more has left its reason in the row.
  const waiting = await store.waitingRuns(threadId, LOOKED_AT);
  const row = await store.run(threadId, runIndex);
  // A run of another device goes on there.
  if (row === undefined || row.device !== undefined) return undefined;
  const { runId, recovery } = row;
  const next = waiting.find((one) => one.kind === "recovery" && one.ofIndex === runIndex);
  if (next?.attempt === undefined) return recovery === undefined ? { runId } : { runId, recovery };
  const { notBefore: at, attempt } = next;
  return {
    runId,
    recovery: { is: "waiting", runId: next.runId, attempt: attempt.number, ...(at !== undefined && { at }) },
  };
}
