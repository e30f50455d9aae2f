import { filter } from "rxjs";
import { Bell, ringOrSilence } from "../platform/bell.js";
import type { Clock } from "../platform/clock.js";
import type { HeldLock, Locks } from "../platform/locks.js";
import { threadLockName } from "../platform/names.js";
import type { RunStore, ThreadHead } from "../storage/run-store.js";
import type { HostChannel } from "./protocol.js";

export interface StopParts {
  readonly dbName: string;
  readonly locks: Locks;
  readonly channel: HostChannel;
  readonly store: Pick<RunStore, "head">;
  readonly clock: Clock;
}

/** The run to stop. A run that answers an interrupt may reuse the id of the run that asked: the index tells them apart. */
export interface StopOfRun {
  readonly threadId: string;
  readonly runId: string;
  readonly runIndex: number;
  /** Another run replaces it. */
  readonly supersede: boolean;
}

/** Whether the run is live. */
export const isIt = (head: ThreadHead | undefined, { runId, runIndex }: StopOfRun): boolean =>
  head?.live?.runId === runId && head.live.runIndex === runIndex;

/** Interval at which the stop message is repeated until it is acknowledged, in ms. */
const REPEAT_MS = 200;

/**
 * Delivers a stop request, which is already in the log, to the run's holder. Messages are not trusted: an
 * acknowledgement ends the repetition, and the head row decides whether the run has ended.
 *
 * @param patienceMs how long the holder may take to acknowledge it, and then again to end the run
 * @param acknowledged called once, at the first acknowledgement
 * @returns undefined once the run has ended; the stolen lock if the holder is frozen or hung: the caller must then fence
 *   and settle the run. Errors: those of storage
 */
export async function deliverStop(
  { dbName, locks, channel, store, clock }: StopParts,
  run: StopOfRun,
  patienceMs: number,
  acknowledged: () => void = () => undefined,
): Promise<HeldLock | undefined> {
  const { threadId, runId } = run;
  const isLive = async (): Promise<boolean> => isIt(await store.head(threadId), run);
  const bell = new Bell();
  // Changed by the listener below, which the compiler does not see.
  let receipt = "none" as "none" | "heard" | "taken";
  let ended = false;
  const listening = channel.messages$
    .pipe(filter((message) => message.threadId === threadId && message.runId === runId))
    .subscribe(({ type }) => {
      if (type === "ended") ended = true;
      else if (type === "stop-ack" && receipt === "none") receipt = "heard";
      else return;
      bell.ring();
    });
  const never = new AbortController().signal;
  try {
    let until = clock.elapsed() + patienceMs;
    for (let left = patienceMs; left > 0; left = until - clock.elapsed()) {
      const seen = bell.count;
      if (ended && !(await isLive())) return undefined;
      ended = false;
      if (receipt === "heard") {
        receipt = "taken";
        until = clock.elapsed() + patienceMs;
        acknowledged();
        continue;
      }
      if (receipt === "none") channel.post({ type: "stop", ...run });
      await ringOrSilence(bell, seen, clock, receipt === "none" ? Math.min(REPEAT_MS, left) : left, never);
    }
  } finally {
    listening.unsubscribe();
  }
  // Silence proves nothing: the message may be lost, or the lock may belong to the thread's next run. So read the head row.
  // L11: a holder that does not answer loses its lock.
  return (await isLive()) ? locks.steal(threadLockName(dbName, threadId)) : undefined;
}
