import type { BaseEvent } from "@ag-ui/client";
import { filter } from "rxjs";
import { onAbort } from "../../platform/abort.js";
import { ringOrSilence, type Bell } from "../../platform/bell.js";
import { lastSeq } from "../../run/pack.js";
import { isTerminal } from "../../run/event-kinds.js";
import { isSameDatabase } from "../../run/epochs.js";
import { chunkSize } from "../../run/size.js";
import type { Chunk, SettledStatus } from "../../run/types.js";
import type { RunRow } from "../../storage/run-store.js";
import type { Frame } from "../../wire/shapes.js";
import { catchUp, FRAME_EVENTS, FRAME_SIZE } from "./catch-up.js";
import type { RunnerParts } from "../parts.js";
import { completed } from "../history/run-input.js";
import { isUnreadable } from "../history/run-log.js";
import type { Recovery } from "../claim/recovery.js";
import type { RunRef } from "../live/live-run.js";
import type { RunFeed } from "../../run/run-feed.js";

/** How long a follower of another host's run hears nothing before it reads the log, in ms. */
const SILENCE_MS = 2_000;

export interface TailContext {
  readonly parts: Pick<RunnerParts, "store" | "channel" | "clock">;
  readonly recovery: Pick<Recovery, "owes" | "endAbandoned">;
  /** A bell for the caller; rings when a run of the thread starts or ends, in any host. */
  readonly bell: (threadId: string) => { readonly bell: Bell; readonly release: () => void };
}

/** How a run ended for its reader. */
export type TailEnd =
  /** `seq`: of its last event. */
  | { readonly is: "settled"; readonly status: SettledStatus; readonly seq: number }
  /** It is over, but its end cannot be written because of `error`. */
  | { readonly is: "lost"; readonly error: unknown }
  /** Nothing behind `afterSeq` can be read. */
  | { readonly is: "unreadable"; readonly error: unknown };

/**
 * Reads a run's committed chunks after `afterSeq`, without gap or overlap, then goes on with each new one until the run
 * is settled or `signal` aborts. Everyone reads this way: during the run, after it, in the holder and in other hosts.
 *
 * @param feed the run's feed where it is live in this host
 * @param base events that go with the run's first chunk
 * @returns how the run ended; undefined when `signal` aborted first, or the missing events are gone (deleted, cut off,
 *   revised, or the database was recreated)
 */
export async function* tailRun(
  context: TailContext,
  run: RunRef,
  feed: RunFeed | undefined,
  afterSeq: number,
  signal: AbortSignal,
  base: readonly BaseEvent[] = [],
): AsyncGenerator<Frame, TailEnd | undefined> {
  const { parts, recovery } = context;
  const { threadId, runId } = run;
  // A recreated database has other runs under the same indexes.
  const isOther = ({ epoch }: { readonly epoch: number }): boolean => !isSameDatabase(epoch, run.epoch);
  // What it has given out of the run may not count any more: only a snapshot tells.
  const isRevised = ({ revised }: RunRow): boolean => revised !== undefined && revised.epoch > run.epoch;
  const frameOf = (chunk: Chunk): Frame =>
    chunk.firstSeq === 0 && base.length > 0 ? { type: "chunk", chunk, base } : { type: "chunk", chunk };
  /** Ends what listens for this reader. */
  const over = new AbortController();
  let seq = afterSeq;
  try {
    if (feed !== undefined) {
      onAbort(signal, () => feed.bell.ring(), over.signal);
      while (!signal.aborted && feed.state.is !== "lost") {
        const seen = feed.bell.count;
        const { state, publishedSeq } = feed;
        const kept = feed.after(seq);
        const { chunks, ahead } = kept === undefined ? await readUpTo(parts, run, seq, publishedSeq) : { chunks: kept };
        const before = seq;
        if (chunks.some(isOther)) return undefined;
        for (const chunk of catchUp(chunks, seq)) {
          seq = lastSeq(chunk);
          yield frameOf(chunk);
          if (signal.aborted) return undefined;
        }
        // Neither in memory nor in the log any more: the row read below tells why.
        if (kept === undefined && seq === before && ahead !== true) break;
        if (state.is === "ended" && seq >= publishedSeq) return { is: "settled", status: state.status, seq };
        if (seq >= feed.publishedSeq || ahead === true) await feed.bell.wait(seen);
      }
    }

    const { bell, release } = context.bell(threadId);
    onAbort(over.signal, release);
    const hearing = parts.channel.messages$
      .pipe(filter(({ type, runId: its }) => type === "advanced" && its === runId))
      // Ignores messages about events that were read already.
      .subscribe((message) => (message.seq ?? Infinity) > seq && bell.ring());
    onAbort(over.signal, () => hearing.unsubscribe());
    /** It has reached the end of the log once: from now on others announce more. */
    let caughtUp = false;
    let silent = false;
    let status: SettledStatus | undefined;
    while (!signal.aborted) {
      const seen = bell.count;
      const chunks = await completed(parts.store, await parts.store.chunks(threadId, run.runIndex, seq, FRAME_EVENTS));
      if (chunks.some(isOther)) return undefined;
      // Another host has written it: the end of a run that it took over, or events in place of others.
      if (chunks.some(({ epoch }) => epoch > run.epoch)) {
        const row = await parts.store.run(threadId, run.runIndex);
        if (row === undefined || isRevised(row)) return undefined;
      }
      let isEnd = false;
      for (const chunk of catchUp(chunks, seq)) {
        seq = lastSeq(chunk);
        isEnd = endsRun(chunk);
        yield frameOf(chunk);
        if (signal.aborted) return undefined;
      }
      if (chunks.length === 0) {
        // An empty page of a settled run: all of its chunks are in the log, so what is missing was deleted or cut off.
        // If the run settled after the page was read, read once more.
        if (status !== undefined) return undefined;
        const row = await parts.store.run(threadId, run.runIndex);
        if (row === undefined || isOther(row) || isRevised(row)) return undefined;
        if (row.status !== "running") {
          if (seq >= (row.eventCount ?? 0) - 1) return { is: "settled", status: row.status, seq };
          ({ status } = row);
          continue;
        }
        caughtUp = true;
        // Silence proves nothing; a free thread lock does.
        const lost = silent ? await recovery.endAbandoned(threadId, run) : recovery.owes(threadId, run);
        if (lost !== undefined) return { is: "lost", error: lost.error };
      } else if (!caughtUp || isEnd || status !== undefined || isFull(chunks)) {
        status = undefined;
        continue;
      }
      silent = !(await ringOrSilence(bell, seen, parts.clock, SILENCE_MS, signal));
    }
    return undefined;
  } catch (error) {
    if (!isUnreadable(error) || seq !== afterSeq) throw error;
    return { is: "unreadable", error };
  } finally {
    over.abort();
  }
}

/** The store may have more of them: it gives out so many events, or fewer large ones. */
const isFull = (chunks: readonly Chunk[]): boolean =>
  sumOf(chunks, ({ count }) => count) >= FRAME_EVENTS || sumOf(chunks, chunkSize) >= FRAME_SIZE;

const sumOf = (chunks: readonly Chunk[], of: (chunk: Chunk) => number): number =>
  chunks.reduce((sum, chunk) => sum + of(chunk), 0);

/** A run's terminal event is its last, and is in the log once the run is settled. */
const endsRun = ({ entries }: Chunk): boolean => isTerminal(entries.at(-1)?.event.type);

/**
 * Reads up to `publishedSeq`: the end of a run is in the log before its lock is free, and is shown after that.
 *
 * @returns `ahead`: all remaining chunks end after `publishedSeq`, because their records were joined
 */
async function readUpTo(
  { store }: Pick<RunnerParts, "store">,
  { threadId, runIndex }: { readonly threadId: string; readonly runIndex: number },
  seq: number,
  publishedSeq: number,
): Promise<{ readonly chunks: readonly Chunk[]; readonly ahead?: boolean }> {
  const all = await store.chunks(threadId, runIndex, seq, FRAME_EVENTS);
  const chunks = all.filter((chunk) => lastSeq(chunk) <= publishedSeq);
  return { chunks, ahead: chunks.length === 0 && all.length > 0 };
}
