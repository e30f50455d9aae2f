import { filter } from "rxjs";
import { Bell, ringOrSilence } from "../platform/bell.js";
import { lastSeq, sliceChunk } from "../run/pack.js";
import type { Chunk, SettledStatus } from "../run/types.js";
import type { RunnerParts } from "./parts.js";
import { completed } from "./recorded-run.js";
import type { RunFeed } from "./run-feed.js";

/** Events fetched from the log at a time. */
const PAGE_EVENTS = 4_096;
/** How long a follower of another host's run hears nothing before it looks into the log, in ms. */
const SILENCE_MS = 2_000;

interface Look {
  readonly chunks: readonly Chunk[];
  readonly ended: SettledStatus | undefined;
  /** The run's last event, where it has ended. */
  readonly lastSeq: number;
}

/**
 * Reads a run's committed chunks after `afterSeq`, without gap or overlap, then goes on with each new one until the run
 * is settled or `signal` aborts. Everyone reads this way: during the run, after it, in the holder and in other hosts.
 *
 * @param feed the run's feed where it is live in this host
 * @returns how the run ended; undefined when `signal` aborted first, or the events that are missing are not there any
 *   more (deleted, or cut off)
 */
export async function* tailRun(
  parts: Pick<RunnerParts, "store" | "channel" | "clock">,
  run: { readonly threadId: string; readonly runIndex: number },
  feed: RunFeed | undefined,
  afterSeq: number,
  signal: AbortSignal,
): AsyncGenerator<Chunk, SettledStatus | undefined> {
  let seq = afterSeq;
  if (feed !== undefined) {
    while (!signal.aborted && feed.state.is !== "lost") {
      const seen = feed.bell.count;
      const { state, publishedSeq } = feed;
      const kept = feed.after(seq);
      const before = seq;
      for (const chunk of missing(kept ?? (await readUpTo(parts, run, seq, publishedSeq)), seq)) {
        yield chunk;
        if (signal.aborted) return undefined;
        seq = lastSeq(chunk);
      }
      // Neither in memory nor in the log any more: what is left says how it stands.
      if (kept === undefined && seq === before) break;
      if (state.is === "ended" && seq >= publishedSeq) return state.status;
      if (seq >= feed.publishedSeq) await feed.bell.wait(seen, signal);
    }
  }

  if (feed?.state.is === "lost" && feed.state.error !== undefined) throw feed.state.error;

  const bell = new Bell();
  const hearing = parts.channel.messages$
    .pipe(filter((message) => message.threadId === run.threadId && message.type !== "claim"))
    .subscribe(() => bell.ring());
  try {
    while (!signal.aborted) {
      const seen = bell.count;
      const { chunks, ended, lastSeq: last } = await look(parts, run, seq);
      for (const chunk of missing(chunks, seq)) {
        yield chunk;
        if (signal.aborted) return undefined;
        seq = lastSeq(chunk);
      }
      if (chunks.length > 0) continue;
      if (ended !== undefined) return seq >= last ? ended : undefined;
      await ringOrSilence(bell, seen, parts.clock, SILENCE_MS, signal);
    }
    return undefined;
  } finally {
    hearing.unsubscribe();
  }
}

/** The chunks without what a reader up to `seq` has. */
function* missing(chunks: readonly Chunk[], seq: number): Generator<Chunk, void> {
  for (const chunk of chunks) {
    const rest = sliceChunk(chunk, seq + 1);
    if (rest !== undefined) yield rest;
  }
}

/** The run's end is read before its chunks: what is settled then has all its chunks in the log. */
async function look(
  { store }: Pick<RunnerParts, "store">,
  { threadId, runIndex }: { readonly threadId: string; readonly runIndex: number },
  seq: number,
): Promise<Look> {
  const run = await store.run(threadId, runIndex);
  const chunks = await completed(store, await store.chunks(threadId, runIndex, seq, PAGE_EVENTS));
  // A run that is not there any more was deleted.
  if (run === undefined) return { chunks, ended: "broken", lastSeq: Infinity };
  const ended = run.status === "running" ? undefined : run.status;
  return { chunks, ended, lastSeq: (run.eventCount ?? 0) - 1 };
}

/** The end of a run stands in the log a moment before its lock is free; it is shown after that. */
async function readUpTo(
  { store }: Pick<RunnerParts, "store">,
  { threadId, runIndex }: { readonly threadId: string; readonly runIndex: number },
  seq: number,
  publishedSeq: number,
): Promise<readonly Chunk[]> {
  const chunks = await store.chunks(threadId, runIndex, seq, PAGE_EVENTS);
  return chunks.filter((chunk) => lastSeq(chunk) <= publishedSeq);
}
