import { filter } from "rxjs";
import { Bell, ringOrSilence } from "../platform/bell.js";
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
 * Carries a stop request, which stands in the log already, to the run's holder. Nothing heard is believed: a receipt ends
 * the repeating, and the head row says whether the run has ended.
 *
 * @param patienceMs how long a holder has to acknowledge it, and then to end the run
 * @param acknowledged called once when somebody says that he is the holder and has heard of it
 * @returns undefined once the run has ended; the stolen lock where the holder is frozen or hung: the caller must then
 *   fence and settle the run. Errors: those of storage
 */
export async function deliverStop(
  { dbName, locks, channel, store, clock }: StopParts,
  run: { readonly threadId: string; readonly runId: string; readonly supersede?: boolean },
  patienceMs: number,
  acknowledged: () => void = () => undefined,
): Promise<HeldLock | undefined> {
  const { threadId, runId, supersede = false } = run;
  const isLive = async (): Promise<boolean> => (await store.head(threadId))?.live?.runId === runId;
  const bell = new Bell();
  // The listener below changes it, which the compiler does not see.
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
      if (receipt === "none") channel.post({ type: "stop", threadId, runId, ...(supersede && { supersede }) });
      await ringOrSilence(bell, seen, clock, receipt === "none" ? Math.min(REPEAT_MS, left) : left, never);
    }
  } finally {
    listening.unsubscribe();
  }
  // Silence proves nothing: the run may have ended unheard, and the lock be that of the thread's next run.
  return (await isLive()) ? locks.steal(threadLockName(dbName, threadId)) : undefined;
}
