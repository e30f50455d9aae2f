import type { Unsubscribable } from "rxjs";
import type { Lazy } from "../platform/lazy.js";
import type { WaitingThreads } from "../runner/local-agent-runner.js";
import type { WaitingRuns } from "./waiting/waiting-runs.js";

/** How often a host looks for waiting runs that nobody told it of, in ms: their host may have died with its message. */
const LOOK_MS = 60_000;
/** How long after its beginning a host looks first, in ms: out of the way of the tab that it was started for. */
const FIRST_LOOK_MS = 100;

/** Ends the listening of runtimes that nobody refers to any more. */
const abandoned = new FinalizationRegistry<Unsubscribable>((listening) => listening.unsubscribe());

/** Has the waiting runs of a log started: those that are there when a host begins, and those of later changes. */
export function startWaiting(
  { list, changed$, isOneProcess, clock, closed }: WaitingThreads,
  waiting: Lazy<Pick<WaitingRuns, "look">>,
): void {
  // A runner in memory outlives the runtimes that share it, one for each request: it must not keep them.
  const held = new WeakRef(waiting);
  // Storage or code that cannot be loaded now: at the next look.
  const look = async (find: () => Promise<readonly string[]>): Promise<void> => {
    const threadIds = await find().catch(() => []);
    if (threadIds.length === 0 || closed.aborted) return;
    const runs = await held
      .deref()
      ?.get()
      .catch(() => undefined);
    for (const threadId of threadIds) runs?.look(threadId);
  };
  abandoned.register(
    waiting,
    changed$.subscribe((threadId) => void look(async () => [threadId])),
  );
  const keepLooking = async (afterMs: number): Promise<void> => {
    await clock.after(afterMs, closed);
    if (closed.aborted) return;
    await look(list);
    if (!isOneProcess) void keepLooking(LOOK_MS);
  };
  void keepLooking(FIRST_LOOK_MS);
}
