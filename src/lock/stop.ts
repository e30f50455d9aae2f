import { filter, take } from "rxjs";
import type { Clock } from "../platform/clock.js";
import type { HeldLock, Locks } from "../platform/locks.js";
import { threadLockName } from "../platform/names.js";
import type { RunStore } from "../storage/run-store.js";
import type { HostChannel } from "./protocol.js";

export interface StopParts {
  readonly dbName: string;
  readonly locks: Locks;
  readonly channel: HostChannel;
  readonly store: Pick<RunStore, "head">;
  readonly clock: Clock;
}

/** How often the stop message is said again until somebody answers, in ms. */
const REPEAT_MS = 200;

/**
 * Carries a stop request, which stands in the log already, to the run's holder.
 *
 * @param patienceMs how long a holder has to acknowledge it
 * @returns undefined once the holder acknowledged or the run ended; the stolen lock where the holder is frozen or hung:
 *   the caller must then fence and settle the run. Errors: those of storage
 */
export async function deliverStop(
  { dbName, locks, channel, store, clock }: StopParts,
  run: { readonly threadId: string; readonly runId: string; readonly supersede?: boolean },
  patienceMs: number,
): Promise<HeldLock | undefined> {
  const { threadId, runId, supersede = false } = run;
  const answered = new AbortController();
  const listening = channel.messages$
    .pipe(
      filter(
        (message) =>
          message.threadId === threadId &&
          message.runId === runId &&
          (message.type === "stop-ack" || message.type === "ended"),
      ),
      take(1),
    )
    .subscribe(() => answered.abort());
  try {
    const until = clock.elapsed() + patienceMs;
    while (!answered.signal.aborted && clock.elapsed() < until) {
      channel.post({ type: "stop", threadId, runId, ...(supersede && { supersede }) });
      await clock.after(REPEAT_MS, answered.signal);
    }
  } finally {
    listening.unsubscribe();
  }
  if (answered.signal.aborted) return undefined;
  // Silence proves nothing: the run may have ended unheard, and the lock be that of the thread's next run.
  if ((await store.head(threadId))?.live?.runId !== runId) return undefined;
  return locks.steal(threadLockName(dbName, threadId));
}
