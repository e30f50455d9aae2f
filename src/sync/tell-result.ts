import { abortWith } from "../platform/abort.js";
import { ringOrSilence } from "../platform/bell.js";
import type { AnsweredCall } from "../runner/parts.js";
import { pendingIn } from "../storage/pending-tool-calls.js";
import { CLAIM_MS } from "./admissions.js";
import { briefOf } from "./outgoing.js";
import { runName } from "./run-name.js";
import { SpaceOffline } from "./space.js";
import type { SyncHost } from "./sync-host.js";
import { isEnd, resultsOf } from "./thread-state.js";

/**
 * Tells the other devices the result of a tool call, before it counts here: of several results the first one in the space
 * counts, and resolves when that stands in the log. Where this device is not in step, or others do not know of the call
 * yet, nothing is told: it is sent later, from the log.
 */
export async function tellResult(
  { parts: { clock, store }, context, isCurrent, threadOf, moved, closed }: SyncHost,
  { threadId, result, followUp }: AnsweredCall,
): Promise<void> {
  const { toolCallId } = result;
  const until = abortWith(closed);
  const late = clock.after(CLAIM_MS, until.signal).then(() => until.abort());
  try {
    while (isCurrent() && !until.signal.aborted) {
      const seen = moved.count;
      const thread = await threadOf(threadId);
      const device = context()?.self;
      const pending = pendingIn(await store.head(threadId));
      if (thread === undefined || device === undefined || pending === undefined) return;
      const [run, row] = await Promise.all([store.run(threadId, pending.runIndex), store.thread(threadId)]);
      if (run === undefined) return;
      const runId = runName(run);
      const { state } = thread.record;
      if (isEnd(state, runId)) {
        // Maybe this very one, which was told before its host ended: the log decides.
        if (resultsOf(state, runId).includes(toolCallId)) return void (await Promise.race([thread.settled(), late]));
        const brief = row && { brief: briefOf(row) };
        const message = { type: "result", runId, result, threadId, device, ...brief } as const;
        // While somebody is about to go on, it would not count.
        const added = state.lock === undefined && thread.add(followUp ? message : { ...message, followUp });
        // Where it is late, it may be there: what others have read of it is not told again.
        if ((await Promise.race([added, late])) !== false) return;
      } else if (!thread.arrivals.areBehind) return;
      await ringOrSilence(moved, seen, clock, CLAIM_MS, until.signal);
    }
  } catch (error) {
    if (!(error instanceof SpaceOffline)) throw error;
  } finally {
    until.abort();
  }
}
