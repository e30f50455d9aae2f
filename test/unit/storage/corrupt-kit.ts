import type { RunStore } from "../../../src/storage/run-store.js";
import { baseAt, chunkOf, claimed, delta, foreignEnd, leaving, request, runOn, settlement, withRuns } from "./kit.js";
import { closing } from "./write-cases.js";

const OPEN = {
  textMessages: ["m"],
  reasoningSpans: [],
  reasoningMessages: [],
  toolCalls: [{ toolCallId: "call" }],
  unanswered: [],
  steps: [{ stepName: "step" }],
  subagents: [],
};

/**
 * A thread with one of everything: a branch, rewritten messages, runs that broke and were or were not derived, a live run
 * with several chunks that is asked to stop.
 */
export async function varied(store: RunStore, threadId: string): Promise<void> {
  await withRuns(store, threadId, ["r0", "r1"]);
  await runOn(store, threadId, "r2", 0);
  for (const [runId, prevRunIndex] of [
    ["r3", 2],
    ["r4", 3],
  ] as const) {
    const held = await claimed(store, threadId, runId, { base: (await store.head(threadId))!, prevRunIndex });
    await store.append(held, chunkOf(held, 0, [delta("a"), delta("b")], OPEN));
    await store.settleForeign(threadId, runId, "broken", 4_000, foreignEnd);
  }
  await store.derive(threadId, 3, closing, { ...leaving("r3-a", "anew", { n: 3 }), rewritten: true });
  const head = (await store.head(threadId))!;
  const live = await claimed(store, threadId, "r5", { base: head, prevRunIndex: 4, holder: `holder of ${threadId}` });
  for (let seq = 0; seq < 6; seq += 2) await store.append(live, chunkOf(live, seq, [delta("x"), delta("y")], OPEN));
  await store.requestStop(threadId, "r5", 5);
}

/** A thread that was cut before its run 1 and is idle. */
export async function cutOff(store: RunStore, threadId: string): Promise<void> {
  const { epoch } = await withRuns(store, threadId, ["r0", "r1", "r2"]);
  await store.cut(threadId, epoch, baseAt(1));
}

/** What a call came to: its value, or the code of its error. */
export type Outcome = { readonly value: unknown } | { readonly code: unknown; readonly details: unknown };

export const outcomeOf = (call: Promise<unknown>): Promise<Outcome> =>
  call.then(
    (value) => ({ value }),
    (error: { code?: unknown; details?: unknown }) => ({ code: error.code ?? error, details: error.details }),
  );

/** All that can be read of a thread with runs up to `last`, by the name of the read. */
export function readsOf(store: RunStore, threadId: string, last: number): Record<string, Promise<unknown>> {
  const reads: Record<string, Promise<unknown>> = {
    head: store.head(threadId),
    thread: store.thread(threadId),
    runs: store.runs(threadId),
    runsBefore: store.runsBefore({ threadId, limit: 3 }),
    messages: store.messageRows(threadId, last, undefined),
    path: store.messageRows(threadId, last, new Set([0, 2, 3, 4, 5])),
    "last page": store.messagePage(threadId, last, undefined, { before: undefined, limit: 2 }),
    "whole page": store.messagePage(threadId, last, new Set([0, 2, 3, 4, 5]), { before: undefined, limit: 100 }),
    "earlier page": store.messagePage(threadId, 2, undefined, { before: "r2-a", limit: 1 }),
  };
  for (let runIndex = 0; runIndex <= last; runIndex++) {
    reads[`run ${runIndex}`] = store.run(threadId, runIndex);
    reads[`runById ${runIndex}`] = store.runById(threadId, `r${runIndex}`);
    reads[`input ${runIndex}`] = store.input(threadId, runIndex);
    reads[`closing ${runIndex}`] = store.closing(threadId, runIndex);
    reads[`state ${runIndex}`] = store.stateAfter(threadId, runIndex);
    reads[`chunks ${runIndex}`] = store.chunks(threadId, runIndex, -1, Infinity);
    reads[`first chunk ${runIndex}`] = store.chunks(threadId, runIndex, -1, 1);
    reads[`later chunks ${runIndex}`] = store.chunks(threadId, runIndex, 2, 100);
  }
  return reads;
}

export async function outcomesOf(store: RunStore, threadId: string, last: number): Promise<Record<string, Outcome>> {
  const reads = Object.entries(readsOf(store, threadId, last));
  return Object.fromEntries(
    await Promise.all(reads.map(async ([name, read]) => [name, await outcomeOf(read)] as const)),
  );
}

/** What lists more than one thread. */
export const listsOf = (store: RunStore): Promise<unknown[]> =>
  Promise.all([
    store.threads({ limit: 100, archived: false }),
    store.liveHeads(),
    store.runsOfId("r1", 100),
    store.threadsBeyond(1),
  ]);

/** Every write to a thread like {@link varied}, one after the other, the run's end among them. */
export async function writesTo(store: RunStore, threadId: string): Promise<Outcome[]> {
  const head = await store.head(threadId).catch(() => undefined);
  const run = head?.live?.runIndex ?? 5;
  const held = { threadId, runIndex: run, runId: `r${run}`, epoch: head?.epoch ?? 6, holder: `holder of ${threadId}` };
  const outcomes: Outcome[] = [];
  const base = async () => (await store.head(threadId).catch(() => undefined)) ?? undefined;
  for (const write of [
    () => store.requestStop(threadId, undefined, 9, "superseded"),
    () => store.append(held, chunkOf(held, 6, [delta("z")])),
    () => store.settle(held, settlement(held, 7, { ownTerminal: false })),
    () => store.settleForeign(threadId, held.runId, "broken", 9_000, foreignEnd),
    () => store.derive(threadId, 4, closing, leaving("r4-a", "late", { n: 4 })),
    () => store.derive(threadId, 5, closing, leaving("r5-a", "late", { n: 5 })),
    async () => store.claim(request(threadId, "r6", { base: await base(), prevRunIndex: 5 })),
    async () => store.settleForeign(threadId, "r6", "broken", 9_000, foreignEnd),
    async () => store.cut(threadId, (await base())?.epoch ?? 0, baseAt(3)),
    () => store.updateThread(threadId, { title: "named", pinned: true }),
    () => store.deleteThread(threadId),
    () => store.sweep(),
    () => store.claim(request(threadId, "r7")),
  ]) {
    outcomes.push(await outcomeOf(write()));
  }
  return outcomes;
}
