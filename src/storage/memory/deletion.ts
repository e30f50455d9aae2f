import { branchesBefore, cutHead, isAsListed, mayCut, mayDelete, tombstone } from "../deletion-decisions.js";
import type { CutBase, ListedThread, RunStore } from "../run-store.js";
import { anyWaits, dropAllWaiting } from "./waiting.js";
import { leave, removeRun, weigh, type MemoryData } from "./memory-data.js";

type Deletion = Pick<RunStore, "deleteThread" | "cut" | "sweep" | "threadsBeyond">;

/** Tombstones kept. Epochs are never used twice, so dropping one misleads no reader. */
const TOMBSTONES = 1_000;

function cut(data: MemoryData, threadId: string, epoch: number, base: CutBase): number | undefined {
  const thread = data.threads.get(threadId);
  const run = thread?.runs.get(base.runIndex);
  if (thread === undefined || run === undefined || !mayCut(thread.head, base.runIndex)) return undefined;
  const { head, runs } = thread;
  if (head.cut === true && head.first === base.runIndex) return 0;
  if (head.epoch !== epoch) return undefined;
  const rows = [...runs.values()].map(({ row }) => row);
  const above = rows.filter(({ runIndex }) => runIndex > base.runIndex);
  const removed = branchesBefore(base.runIndex, above, head.activeRunIndex);
  if (removed === undefined) return undefined;
  const { messages, state, interrupts } = structuredClone(base);

  const below = rows.filter(({ runIndex }) => runIndex < base.runIndex);
  for (const { runIndex } of below) removeRun(data, thread, runIndex);
  for (const runIndex of removed) removeRun(data, thread, runIndex);
  run.row = { ...run.row, prevRunIndex: null };
  run.chunks.length = 0;
  leave(thread, run, { messages: messages.map((message) => ({ message })), resets: true, state, interrupts });
  weigh(thread, run);
  thread.head = cutHead(head, ++data.epoch, base.runIndex, removed);
  const alreadyWithout = head.cut === true ? 1 : 0;
  return below.length - alreadyWithout + 1 + removed.length;
}

export const memoryDeletion = (data: MemoryData): Deletion => ({
  deleteThread: async (threadId, before, listed) => {
    const thread = data.threads.get(threadId);
    if (listed !== undefined) {
      const row = thread?.row;
      if (anyWaits(data, threadId) || row === undefined || !isAsListed(row, listed)) return false;
    }
    if (thread === undefined || thread.head.deleted === true) return dropAllWaiting(data, threadId);
    if (!mayDelete(thread.head, before)) return false;
    dropAllWaiting(data, threadId);
    for (const runIndex of thread.runs.keys()) removeRun(data, thread, runIndex);
    thread.head = tombstone(thread.head, ++data.epoch);
    thread.row = undefined;
    data.deleted.add(threadId);
    const [oldest] = data.deleted;
    if (data.deleted.size > TOMBSTONES && oldest !== undefined) {
      data.deleted.delete(oldest);
      data.threads.delete(oldest);
    }
    return true;
  },

  cut: async (threadId, epoch, base) => cut(data, threadId, epoch, base),

  // Deletions are synchronous: they leave nothing.
  sweep: () => Promise.resolve(),

  threadsBeyond: async (keep, most = Infinity) => {
    const threads = [...data.threads.values()].flatMap(({ row, bytes }) => (row === undefined ? [] : { row, bytes }));
    let tooMany = threads.length - keep;
    let tooLarge = threads.reduce((sum, { bytes }) => sum + bytes, 0) - most;
    if (tooMany <= 0 && tooLarge <= 0) return [];
    threads.sort((a, b) => a.row.updatedAt - b.row.updatedAt || (a.row.threadId < b.row.threadId ? -1 : 1));
    const last = threads.at(-1)?.row;
    const going: ListedThread[] = [];
    for (const { row, bytes } of threads) {
      if (tooMany <= 0 && (tooLarge <= 0 || row === last)) break;
      if (row.pinned || data.live.has(row.threadId) || anyWaits(data, row.threadId)) continue;
      going.push({ threadId: row.threadId, updatedAt: row.updatedAt, runCount: row.runCount });
      tooMany--;
      tooLarge -= bytes;
    }
    return going;
  },
});
