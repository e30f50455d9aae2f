import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { Contestant } from "./contestant.js";
import { eventsOf, historyEvents, inputOf, type Workload } from "./workload.js";

/** From the call to the completion, with one subscriber. In ms. */
function timed(contestant: Contestant, events: readonly BaseEvent[], input: RunAgentInput): Promise<number> {
  const run = contestant.prepare(events, input);
  return new Promise((resolve, reject) => {
    let count = 0;
    let last = "nothing";
    const begun = performance.now();
    run().subscribe({
      next: ({ type }) => {
        count++;
        last = type;
      },
      error: reject,
      complete: () => {
        const ms = performance.now() - begun;
        if (count >= events.length && last === "RUN_FINISHED") resolve(ms);
        else reject(new Error(`${count} events of ${events.length}, the last ${last}`));
      },
    });
  });
}

/** One run of the workload in a fresh thread of a fresh runner. In ms. */
export async function wholeRun(open: () => Promise<Contestant>, workload: Workload): Promise<number> {
  const contestant = await open();
  try {
    const threadId = crypto.randomUUID();
    if (workload.history > 0) {
      const events = historyEvents(threadId, "history", workload.history);
      await timed(contestant, events, inputOf(threadId, "history"));
    }
    return await timed(contestant, eventsOf(workload, threadId, "run"), inputOf(threadId, "run", workload));
  } finally {
    await contestant.close();
  }
}
