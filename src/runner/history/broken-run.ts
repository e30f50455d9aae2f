import { attemptStart, BreakFinder, type AttemptStart } from "../../run/attempt-input.js";
import type { ThreadBase } from "../../run/input-plan.js";
import { addedBy } from "../../run/message-page.js";
import type { PersistedInput, RunRow, RunStore } from "../../storage/run-store.js";
import type { RunLog } from "./run-log.js";

/** A broken run at the end of the path, as whoever goes on with it needs it. */
export interface BrokenRun {
  readonly row: RunRow;
  readonly input: PersistedInput;
  /** What an attempt starts from, for an agent that continues, or one that is asked again. */
  readonly startFor: (agent: { readonly continues: boolean }) => AttemptStart;
}

/**
 * Reads what the run `runId` left, if it is the last one of the path and broke.
 *
 * @param base the thread at the end of its path
 * @returns undefined if the thread went on, or the run was written by an older build
 */
export async function brokenRunOf(
  store: Pick<RunStore, "run" | "input">,
  log: RunLog,
  threadId: string,
  base: ThreadBase,
  runId: string,
): Promise<BrokenRun | undefined> {
  const [row, input] = await Promise.all([store.run(threadId, base.runIndex), store.input(threadId, base.runIndex)]);
  if (row?.runId !== runId || input === undefined || row.closedFrom === undefined) return undefined;
  if (row.status !== "broken" && row.status !== "errored") return undefined;
  const chain = await chainTo(store, row);
  const indexes = new Set(chain.map(({ runIndex }) => runIndex));
  // An attempt whose first events were committed starts from a snapshot without what earlier ends had added.
  const from = chain.findLastIndex(({ closedFrom }) => closedFrom !== 0);
  const finder = new BreakFinder();
  for (const run of chain.slice(Math.max(from, 0))) {
    for await (const { firstSeq, entries } of log.chunksOf(run, -1)) {
      let seq = firstSeq;
      for (const { event, cuts } of entries) {
        finder.note(event, seq >= (run.closedFrom ?? 0));
        seq += cuts?.length ?? 1;
      }
    }
  }
  const broke = finder.point;
  const frontEndTools = new Set((input.again?.tools ?? []).map(({ name }) => name));
  const isOwn = (messageId: string): boolean => indexes.has(addedBy(base, messageId) ?? -1);
  return {
    row,
    input,
    startFor: ({ continues }) => attemptStart({ messages: base.messages, broke, frontEndTools, continues, isOwn }),
  };
}

/** The runs that `last` goes on with, and itself, oldest first. */
async function chainTo(store: Pick<RunStore, "run">, last: RunRow): Promise<readonly RunRow[]> {
  const chain = [last];
  for (let run = last; run.attempt !== undefined && run.prevRunIndex !== null;) {
    const before = await store.run(run.threadId, run.prevRunIndex);
    // Cut off.
    if (before?.runId !== run.attempt.of) break;
    chain.unshift(before);
    run = before;
  }
  return chain;
}
