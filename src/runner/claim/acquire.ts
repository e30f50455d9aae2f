import { claimThread, threadFreed } from "../../lock/claim.js";
import type { HeldLock } from "../../platform/locks.js";
import { RunnerError } from "../../run/errors.js";
import { isThatRun } from "../../run/interrupts.js";
import type { ClaimRequest, RunRow } from "../../storage/run-store.js";
import type { ConcurrentRunPolicy } from "../parts.js";
import type { RecordedRun } from "../history/recorded-run.js";
import { steadily } from "../../storage/steadily.js";
import { mayBeRefused, refusalBeside } from "./refusals.js";
import type { PlacedRequest } from "../request.js";
import type { RunnerContext } from "./recovery.js";
import { stopForeign, type StopContext } from "./stop-foreign.js";

export interface AcquireContext extends RunnerContext {
  readonly onConcurrentRun: ConcurrentRunPolicy;
}

/** Attempts to supersede live runs before the thread counts as busy. */
const SUPERSEDE_TRIES = 3;

/**
 * Takes the thread's lock for a run, or finds its id in the log while another run is live. A live run of another host is waited
 * for or ended first, where the policy says so.
 *
 * @param waiting `busy` is called, with the index of the live run and the interrupts that it answers, before waiting;
 *   `signal` ends the wait
 * @throws RunnerError `thread-busy`, `cancelled`, or why the run would be refused after a live one was ended for it
 */
export async function acquire(
  context: AcquireContext,
  asked: Pick<ClaimRequest, "threadId" | "runId" | "fingerprint"> & { readonly answers: boolean },
  request: PlacedRequest,
  waiting: {
    readonly busy: (runIndex: number | undefined, policy: ConcurrentRunPolicy, answered: readonly string[]) => void;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly lock: HeldLock } | { readonly run: RunRow }> {
  const { parts, recovery } = context;
  const { threadId, runId, fingerprint } = asked;
  const { onBusy: onConcurrentRun = context.onConcurrentRun } = request;
  for (let tries = 0; ; tries++) {
    try {
      return { lock: await claimThread(parts, threadId, runId) };
    } catch (error) {
      if (!RunnerError.is(error, "thread-busy")) throw error;
      const { runId: liveId, holderId } = error.details;
      recovery.watch(holderId);
      const run = await parts.store.runById(threadId, runId, fingerprint);
      if (run !== undefined && isThatRun(run, asked)) return { run };
      if (request.afterToolCalls === true && onConcurrentRun !== "throw") {
        throw new RunnerError("call-over", { threadId, ...(liveId !== undefined && { runId: liveId }) });
      }
      if (onConcurrentRun === "throw" || (onConcurrentRun === "supersede" && tries >= SUPERSEDE_TRIES)) throw error;
      const { runIndex } = error.details;
      const live = mayBeRefused(request) ? await liveRunOf(context, threadId) : undefined;
      waiting.busy(typeof runIndex === "number" ? runIndex : undefined, onConcurrentRun, live?.answered ?? []);
      if (onConcurrentRun === "supersede" && liveId !== undefined) {
        const refusal = live && (await refusalBeside(context, request, live));
        if (refusal !== undefined) throw refusal;
        await endForeign(context, threadId, liveId);
      } else await threadFreed(parts, threadId, waiting.signal);
      if (waiting.signal.aborted) throw new RunnerError("cancelled", { threadId, runId });
    }
  }
}

/** The thread's live run, from the log; undefined also where it cannot be read. */
const liveRunOf = ({ parts, history }: RunnerContext, threadId: string): Promise<RecordedRun | undefined> =>
  steadily(parts.store, threadId, async (head) =>
    head?.live === undefined ? undefined : history.viewOf(head, head.live.runIndex).catch(() => undefined),
  );

/** Asks another host to end its run in favour of one of ours. Resolves when the run has ended. */
async function endForeign(context: StopContext, threadId: string, runId: string): Promise<void> {
  const { store, clock } = context.parts;
  const asked = await store.requestStop(threadId, runId, clock.now(), "superseded");
  if (asked !== undefined) await stopForeign(context, { threadId, runId, runIndex: asked.runIndex, supersede: true });
}
