import { EventType, type BaseEvent } from "@ag-ui/client";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import { closingEvents } from "../../../src/run/finalize.js";
import { ChunkBuilder } from "../../../src/run/pack.js";
import type { Chunk } from "../../../src/run/types.js";
import type {
  Claim,
  ClaimRequest,
  CutBase,
  Derived,
  RunStore,
  Settlement,
  ThreadHead,
} from "../../../src/storage/run-store.js";

export const delta = (text: string): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_CONTENT,
  messageId: "m",
  delta: text,
});

export const request = (threadId: string, runId: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  threadId,
  runId,
  holder: "host-1",
  startedAt: 1_000,
  base: undefined,
  prevRunIndex: null,
  input: { messages: [{ id: "u", role: "user", content: "hi" }] },
  fingerprint: runId,
  title: "hi",
  ...more,
});

export async function claimed(store: RunStore, ...args: Parameters<typeof request>): Promise<Claim> {
  const result = await store.claim(request(...args));
  if (result.is !== "claimed") throw new Error(`not claimed: ${result.is}`);
  return result.claim;
}

export function chunkOf(claim: Claim, firstSeq: number, events: readonly BaseEvent[], open?: Chunk["open"]): Chunk {
  const builder = new ChunkBuilder({ ...claim, firstSeq });
  for (const event of events) builder.add(event, 2_000);
  return builder.take(open)!;
}

export const settlement = (claim: Claim, firstSeq: number, more: Partial<Settlement> = {}): Settlement => {
  const terminal: BaseEvent = { type: EventType.RUN_FINISHED, threadId: claim.threadId, runId: claim.runId };
  return {
    status: "finished",
    endedAt: 3_000,
    chunk: chunkOf(claim, firstSeq, [terminal]),
    ownTerminal: true,
    closing: { runStarted: { type: EventType.RUN_STARTED }, customs: [], terminal },
    bytes: 0,
    derived: {
      messages: [{ message: { id: "a", role: "assistant", content: "yes" } }],
      rewritten: false,
      state: { n: 1 },
      interrupts: [],
    },
    ...more,
  };
};

export const foreignEnd: Parameters<RunStore["settleForeign"]>[4] = (run, nextSeq, open) => {
  const builder = new ChunkBuilder({ ...run, firstSeq: nextSeq });
  for (const event of closingEvents(open, { ...run, status: "broken", ids: () => "made-up" }))
    builder.add(event, 4_000);
  return builder.take()!;
};

/** An answer with `content`, and the state after it. */
export const leaving = (id: string, content: string, state: unknown): Derived => ({
  messages: [{ message: { id, role: "assistant", content } }],
  rewritten: false,
  state,
  interrupts: [],
});

/**
 * Runs `runIds` in a thread, one after the other, each with one event and the end. Run r says "from r" in message r-a
 * and leaves the state { after: r }.
 */
export async function withRuns(store: RunStore, threadId: string, runIds: readonly string[]): Promise<ThreadHead> {
  for (const runId of runIds) {
    const head = await store.head(threadId);
    await runOn(store, threadId, runId, head === undefined || head.deleted === true ? null : head.activeRunIndex);
  }
  return (await store.head(threadId))!;
}

/** The same for one run that continues run `prevRunIndex`. */
export async function runOn(
  store: RunStore,
  threadId: string,
  runId: string,
  prevRunIndex: number | null,
): Promise<Claim> {
  const head = await store.head(threadId);
  const claim = await claimed(store, threadId, runId, {
    base: head?.deleted === true ? undefined : head,
    prevRunIndex,
  });
  await store.append(claim, chunkOf(claim, 0, [delta(runId)]));
  await store.settle(
    claim,
    settlement(claim, 1, { derived: leaving(`${runId}-a`, `from ${runId}`, { after: runId }) }),
  );
  return claim;
}

/** What messages a path's rows come to, where none is replaced or put in between. */
export const idsOf = (threads: readonly { readonly threadId: string }[]): string[] =>
  threads.map(({ threadId }) => threadId);

export const contents = async (store: RunStore, threadId: string, upTo: number, path?: ReadonlySet<number>) =>
  (await store.messageRows(threadId, upTo, path)).flatMap(({ row }) => row?.message.content ?? []);

/** Everything that can be read of run `runIndex`, whoever asks for it by its index. */
export const rowsOfRun = (store: RunStore, threadId: string, runIndex: number): Promise<unknown[]> =>
  Promise.all([
    store.run(threadId, runIndex),
    store.input(threadId, runIndex),
    store.closing(threadId, runIndex),
    store.stateAfter(threadId, runIndex),
    store.chunks(threadId, runIndex, -1, 100),
    store.messageRows(threadId, runIndex, new Set([runIndex])),
  ]);

/** What {@link rowsOfRun} gives of a run that is not there. */
export const NOTHING = [undefined, undefined, undefined, undefined, [], []];

/** Time that is 30 times as short for whoever waits. */
export const impatient: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(ms / 30, signal) };

/** A thread cut before run `runIndex`, in which one message says "base". */
export const baseAt = (runIndex: number): CutBase => ({
  runIndex,
  messages: [{ id: "base", role: "assistant", content: "base" }],
  state: {},
  interrupts: [],
});

/** Ends the task: reads that follow one another at once share a transaction. */
export const apart = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
