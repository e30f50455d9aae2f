import { branchesBefore, cutHead, mayCut, tombstone } from "../decisions.js";
import type { CutBase, RunStore } from "../run-store.js";
import { leave, removeRun, type MemoryData } from "./memory-data.js";

type Deletion = Pick<RunStore, "deleteThread" | "cut" | "sweep" | "threadsBeyond">;

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
  thread.head = cutHead(head, ++data.epoch, base.runIndex, removed);
  const alreadyWithout = head.cut === true ? 1 : 0;
  return below.length - alreadyWithout + 1 + removed.length;
}

export const memoryDeletion = (data: MemoryData): Deletion => ({
  deleteThread: async (threadId) => {
    const thread = data.threads.get(threadId);
    if (thread === undefined || thread.head.deleted === true || thread.head.live !== undefined) return false;
    for (const runIndex of thread.runs.keys()) removeRun(data, thread, runIndex);
    thread.head = tombstone(thread.head, ++data.epoch);
    thread.row = undefined;
    return true;
  },

  cut: async (threadId, epoch, base) => cut(data, threadId, epoch, base),

  // Nothing is ever left behind: a call deletes all that it deletes.
  sweep: () => Promise.resolve(),

  threadsBeyond: async (keep) => {
    const rows = [...data.threads.values()].flatMap(({ row }) => row ?? []);
    const byAge = rows.sort((a, b) => a.updatedAt - b.updatedAt || (a.threadId < b.threadId ? -1 : 1));
    return byAge
      .filter(({ threadId, pinned }) => !pinned && !data.live.has(threadId))
      .slice(0, Math.max(0, byAge.length - keep))
      .map(({ threadId }) => threadId);
  },
});
