import { RunnerError } from "../../run/errors.js";
import { lastSeq, sliceChunk } from "../../run/pack.js";
import type { BaseEvent } from "@ag-ui/client";
import { isSameDatabase } from "../../run/epochs.js";
import type { Chunk } from "../../run/types.js";
import { isNotOfRecord } from "../../storage/codec.js";
import type { RunRow, RunStore, ThreadHead } from "../../storage/run-store.js";
import { keep } from "./recent.js";
import { completed } from "./run-input.js";

/** Events fetched from the log at a time. */
const PAGE_EVENTS = 8_192;

/** Which run each run of a thread continues. A cut alone changes that, and `first` with it. */
interface Tree {
  readonly epoch: number;
  readonly first: number;
  /** All runs below it are known. */
  readonly below: number;
  readonly prevOf: Map<number, number | null>;
}

/** The record failed, not the store or its keys: it has a wrong shape, or cannot be copied. */
export const isUnreadable = (error: unknown): boolean => !isNotOfRecord(error);

/** Of what is found out otherwise, where its record cannot be read. @throws everything else, which may pass */
export function unlessUnreadable(error: unknown): undefined {
  if (!isUnreadable(error)) throw error;
}

/** Of what may be missing, where its record is damaged. @throws everything else, which may pass */
export function unlessDamaged(error: unknown): undefined {
  if (!RunnerError.is(error, "corrupt-record") || !isUnreadable(error)) throw error;
}

/** Replaces a run with an unreadable record: only that it is over is known. */
const standIn = ({ threadId, epoch, first = 0 }: ThreadHead, runIndex: number): RunRow => ({
  threadId,
  runIndex,
  runId: `unreadable-run-${runIndex}`,
  prevRunIndex: runIndex > first ? runIndex - 1 : null,
  status: "broken",
  epoch,
  startedAt: 0,
  endedAt: 0,
  eventCount: 0,
  fingerprint: "",
});

/** Its record is unreadable: every other settled run has events. */
export const hasNoRecord = (run: RunRow): boolean => run.eventCount === 0;

/** The runs of a thread and their events as the store has them, with stand-ins for what cannot be read. */
export class RunLog {
  private readonly trees = new Map<string, Tree>();

  constructor(private readonly store: RunStore) {}

  /** Indexes of the runs on the path to `runIndex`. */
  async pathTo(head: ThreadHead, runIndex: number): Promise<Set<number>> {
    const path = new Set<number>();
    try {
      const { prevOf } = await this.treeOf(head);
      for (let at: number | null | undefined = runIndex; at !== null && at !== undefined; at = prevOf.get(at)) {
        path.add(at);
      }
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      for (let at: number | null = runIndex; at !== null; at = (await this.run(head, at)).prevRunIndex) path.add(at);
    }
    return path;
  }

  /** L16: of a thread that was read before, only the runs since then are read. */
  private async treeOf({ threadId, epoch, first = 0, runCount }: ThreadHead): Promise<Tree> {
    const kept = this.trees.get(threadId);
    const known = kept?.first === first && isSameDatabase(kept.epoch, epoch) ? kept : undefined;
    const { below, prevOf } = known ?? { below: first, prevOf: new Map<number, number | null>() };
    if (below < runCount) {
      const since = await this.store.runsBefore({ threadId, before: runCount, limit: runCount - below });
      for (const run of since) prevOf.set(run.runIndex, run.prevRunIndex);
    }
    return keep(this.trees, threadId, { epoch, first, below: Math.max(below, runCount), prevOf });
  }

  /** A run that the head knows of; a stand-in where its record is unreadable: see {@link hasNoRecord}. */
  async run(head: ThreadHead, runIndex: number): Promise<RunRow> {
    return (await this.runIfThere(head, runIndex)) ?? standIn(head, runIndex);
  }

  /** The same; undefined where the run was cut off or does not exist yet. */
  async runIfThere(head: ThreadHead, runIndex: number): Promise<RunRow | undefined> {
    const run = await this.store.run(head.threadId, runIndex).catch(unlessUnreadable);
    const isKnown = runIndex >= (head.first ?? 0) && runIndex < head.runCount;
    return run ?? (isKnown ? standIn(head, runIndex) : undefined);
  }

  /** The run that `run` continues. */
  async runBefore(head: ThreadHead, { prevRunIndex }: RunRow): Promise<RunRow | undefined> {
    return prevRunIndex === null ? undefined : this.runIfThere(head, prevRunIndex);
  }

  /** The committed chunks of a run with events after `afterSeq`, in order, up to now. */
  async *chunksOf(run: { readonly threadId: string; readonly runIndex: number }, afterSeq: number) {
    for (let seq = afterSeq; ;) {
      const chunks = await completed(this.store, await this.store.chunks(run.threadId, run.runIndex, seq, PAGE_EVENTS));
      for (const chunk of chunks) {
        const rest = sliceChunk(chunk, seq + 1);
        if (rest === undefined) continue;
        yield rest;
        seq = lastSeq(rest);
      }
      if (chunks.length === 0) return;
    }
  }

  /** A run's events; undefined where they cannot be read. */
  async eventsIfReadable(threadId: string, runIndex: number): Promise<BaseEvent[] | undefined> {
    const events: BaseEvent[] = [];
    try {
      for await (const chunk of this.chunksOf({ threadId, runIndex }, -1)) {
        for (const { event } of chunk.entries) events.push(event);
      }
      // A run that is over has events.
      return events.length === 0 ? undefined : events;
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return undefined;
    }
  }

  /** Only the next chunk, so that an invalid one does not hide those before it. */
  async chunkAfter(run: RunRow, seq: number): Promise<Chunk | undefined> {
    const [chunk] = await completed(this.store, await this.store.chunks(run.threadId, run.runIndex, seq, 1));
    return chunk && sliceChunk(chunk, seq + 1);
  }

  /** The runs of these indexes. */
  async runsAt(head: ThreadHead, indexes: readonly number[]): Promise<RunRow[]> {
    const wanted = new Set(indexes);
    return (await this.runs(head)).filter(({ runIndex }) => wanted.has(runIndex));
  }

  /** All runs, on every branch; stand-ins for those with unreadable records. */
  async runs(head: ThreadHead): Promise<readonly RunRow[]> {
    const { threadId, first = 0, runCount } = head;
    const all = await this.store.runs(threadId).catch(unlessUnreadable);
    if (all !== undefined) return all;
    const runs: RunRow[] = [];
    for (let runIndex = first; runIndex < runCount; runIndex++) {
      const run = await this.store.run(threadId, runIndex).catch((error: unknown) => {
        if (!isUnreadable(error)) throw error;
        return standIn(head, runIndex);
      });
      if (run !== undefined) runs.push(run);
    }
    return runs;
  }
}
