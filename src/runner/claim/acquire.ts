import { claimThread, threadFreed } from "../../lock/claim.js";
import { deliverStop } from "../../lock/stop.js";
import type { HeldLock } from "../../platform/locks.js";
import { RunnerError } from "../../run/errors.js";
import type { ClaimRequest, RunRow } from "../../storage/run-store.js";
import type { ConcurrentRunPolicy, RunnerParts } from "../parts.js";
import type { Recovery } from "./recovery.js";

export interface AcquireContext {
  readonly parts: RunnerParts;
  readonly recovery: Recovery;
  readonly onConcurrentRun: ConcurrentRunPolicy;
}

/** How long a stop of another host's run waits for its acknowledgement beyond the grace, in ms. */
export const STOP_ACK_MS = 2_000;
/** Attempts to supersede live runs before the thread counts as busy. */
const SUPERSEDE_TRIES = 3;

/** An answer reuses the id of the run that asked: it is a run of its own, which waits for that one as for any other. */
export const isThatRun = (
  run: RunRow,
  { fingerprint, answers }: Pick<ClaimRequest, "fingerprint" | "answers">,
): boolean => run.fingerprint === fingerprint || answers !== true;

/**
 * Takes the thread's lock for a run, or finds its id in the log while another run is live. A live run of another host is waited
 * for or ended first, where the policy says so.
 *
 * @param waiting `busy` is called, with the index of the live run, before waiting; `signal` ends the wait
 * @throws RunnerError `thread-busy`, `cancelled`
 */
export async function acquire(
  { parts, recovery, onConcurrentRun }: AcquireContext,
  asked: Pick<ClaimRequest, "threadId" | "runId" | "fingerprint" | "answers">,
  waiting: {
    readonly busy: (runIndex: number | undefined, policy: ConcurrentRunPolicy) => void;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly lock: HeldLock } | { readonly run: RunRow }> {
  const { threadId, runId, fingerprint } = asked;
  for (let tries = 0; ; tries++) {
    try {
      return { lock: await claimThread(parts, threadId, runId) };
    } catch (error) {
      if (!RunnerError.is(error, "thread-busy")) throw error;
      const { runId: liveId, holderId } = error.details;
      recovery.watch(holderId);
      const run = await parts.store.runById(threadId, runId, fingerprint);
      if (run !== undefined && isThatRun(run, asked)) return { run };
      if (onConcurrentRun === "throw" || (onConcurrentRun === "supersede" && tries >= SUPERSEDE_TRIES)) throw error;
      const { runIndex } = error.details;
      waiting.busy(typeof runIndex === "number" ? runIndex : undefined, onConcurrentRun);
      const isEnded =
        onConcurrentRun === "supersede" &&
        liveId !== undefined &&
        (await endForeign({ parts, recovery }, threadId, liveId));
      if (!isEnded) await threadFreed(parts, threadId, waiting.signal);
      if (waiting.signal.aborted) throw new RunnerError("cancelled", { threadId, runId });
    }
  }
}

/**
 * Asks another host to end its run in favour of one of ours.
 *
 * @returns true where the run has ended
 */
async function endForeign(
  context: Omit<AcquireContext, "onConcurrentRun">,
  threadId: string,
  runId: string,
): Promise<boolean> {
  const { store, clock } = context.parts;
  const asked = await store.requestStop(threadId, runId, clock.now(), "superseded");
  return asked === undefined || stopForeign(context, threadId, runId, true);
}

/**
 * Delivers a logged stop request to the run's holder; if the holder is frozen or hung, ends the run in its place.
 *
 * @param acknowledged called when the holder acknowledges the request
 * @returns true where the run was ended in its holder's place
 */
export async function stopForeign(
  { parts, recovery }: Omit<AcquireContext, "onConcurrentRun">,
  threadId: string,
  runId: string,
  supersede: boolean,
  acknowledged?: () => void,
): Promise<boolean> {
  const patienceMs = parts.stopGraceMs + STOP_ACK_MS;
  const stolen = await deliverStop(parts, { threadId, runId, supersede }, patienceMs, acknowledged);
  if (stolen === undefined) return false;
  const as = supersede ? "superseded" : "stopped";
  try {
    await parts.reached?.("stopping.stolen", threadId);
    const head = await parts.store.head(threadId);
    if (head?.live?.runId === runId) await recovery.settleOrphan(head, as);
  } catch (error) {
    // Nobody executes it any more.
    recovery.settleLater(threadId, runId, { as, error });
    throw error;
  } finally {
    await stolen.release();
  }
  return true;
}
