import { deliverStop, isIt, type StopOfRun } from "../../lock/stop.js";
import type { RunnerContext } from "./recovery.js";

export type StopContext = Pick<RunnerContext, "parts" | "recovery">;

/** How long a stop of another host's run waits for its acknowledgement beyond the grace, in ms. */
export const STOP_ACK_MS = 2_000;

/**
 * Delivers a logged stop request to the run's holder; if the holder is frozen or hung, ends the run in its place. Resolves
 * when the run has ended.
 *
 * @param acknowledged called when the holder acknowledges the request
 */
export async function stopForeign(
  { parts, recovery }: StopContext,
  run: StopOfRun,
  acknowledged?: () => void,
): Promise<void> {
  const { threadId } = run;
  const patienceMs = parts.stopGraceMs + STOP_ACK_MS;
  const stolen = await deliverStop(parts, run, patienceMs, acknowledged);
  if (stolen === undefined) return;
  const as = run.supersede ? "superseded" : "stopped";
  try {
    await parts.reached?.("stopping.stolen", threadId);
    const head = await parts.store.head(threadId);
    if (head !== undefined && isIt(head, run)) await recovery.settleOrphan(head, as);
  } catch (error) {
    // Nobody executes it any more.
    recovery.settleLater(threadId, run, { as, error });
    throw error;
  } finally {
    await stolen.release();
  }
}
