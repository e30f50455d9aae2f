import { isInLog } from "../decisions.js";
import {
  positionAtFront,
  type NewWaiting,
  type RecoveryWaiting,
  type WaitingRow,
  type WaitingStore,
} from "../waiting.js";
import { placeOfMove, positionAtEnd, updatedWaiting } from "../waiting-order.js";
import { runOfId, type MemoryData } from "./memory-data.js";

/** The thread's waiting runs, in order. */
const listOf = (data: MemoryData, threadId: string): readonly WaitingRow[] => data.waiting?.get(threadId) ?? [];

function setList(data: MemoryData, threadId: string, rows: readonly WaitingRow[]): void {
  data.waiting ??= new Map();
  if (rows.length === 0) data.waiting.delete(threadId);
  else data.waiting.set(threadId, rows);
}

const indexIn = (rows: readonly WaitingRow[], runId: string): number => rows.findIndex((row) => row.runId === runId);

const placed = (run: NewWaiting, position: number): WaitingRow => ({ ...structuredClone(run), position });

export const anyWaits = (data: MemoryData, threadId: string): boolean => listOf(data, threadId).length > 0;

/** The id of the first waiting run, and whether this one waits. */
export const waitingFor = (
  data: MemoryData,
  threadId: string,
  runId: string,
): { readonly first: string | undefined; readonly waits: boolean } => {
  const rows = listOf(data, threadId);
  return { first: rows[0]?.runId, waits: indexIn(rows, runId) >= 0 };
};

/** @returns whether it waited */
export function dropWaiting(data: MemoryData, threadId: string, runId: string): boolean {
  const rows = listOf(data, threadId);
  if (indexIn(rows, runId) < 0) return false;
  setList(
    data,
    threadId,
    rows.filter((row) => row.runId !== runId),
  );
  return true;
}

/** @returns whether any waited */
export const dropAllWaiting = (data: MemoryData, threadId: string): boolean => data.waiting?.delete(threadId) === true;

/** Adds a run that goes on with a broken one, unless it is there. */
export function putRecovery(data: MemoryData, recovery: RecoveryWaiting): void {
  const { threadId, runId } = recovery;
  const rows = listOf(data, threadId);
  if (indexIn(rows, runId) >= 0) return;
  setList(data, threadId, [placed(recovery, positionAtFront(rows[0]?.position)), ...rows]);
}

/** Every call is synchronous, and so atomic. */
export const memoryWaiting = (data: MemoryData): WaitingStore => ({
  addWaiting: async (run, most, answer) => {
    const { threadId, runId } = run;
    const rows = listOf(data, threadId);
    if (indexIn(rows, runId) >= 0) return { is: "waits" };
    const thread = data.threads.get(threadId);
    if (isInLog(thread?.head, runOfId(thread, runId, answer)?.row, answer)) return { is: "exists" };
    if (rows.length >= most) return { is: "full" };
    setList(data, threadId, [...rows, placed(run, positionAtEnd(rows.at(-1)?.position))]);
    return { is: "added" };
  },

  waitingRuns: async (threadId, limit) => structuredClone(listOf(data, threadId).slice(0, limit)),

  isWaiting: async (threadId, runId) => indexIn(listOf(data, threadId), runId) >= 0,

  waitingThreads: async () => [...(data.waiting?.keys() ?? [])].sort(),

  moveWaiting: async (threadId, runId, before) => {
    const rows = listOf(data, threadId);
    const place = placeOfMove(rows, runId, before);
    const moved = rows[indexIn(rows, runId)];
    if (place === undefined || moved === undefined) return false;
    if (place.is === "there") return true;
    const others = rows.filter((row) => row !== moved);
    others.splice(before === null ? others.length : indexIn(others, before), 0, moved);
    // Rows are few and in memory: all get new numbers.
    setList(
      data,
      threadId,
      others.map((row, position) => ({ ...row, position })),
    );
    return true;
  },

  removeWaiting: async (threadId, runId) => dropWaiting(data, threadId, runId),

  endRecovery: async ({ threadId, runId, of, ofIndex }, note) => {
    if (!dropWaiting(data, threadId, runId)) return false;
    const run = data.threads.get(threadId)?.runs.get(ofIndex);
    if (run?.row.runId === of && note !== undefined) run.row = { ...run.row, recovery: note };
    return true;
  },
  clearWaiting: async (threadId) => void dropAllWaiting(data, threadId),

  updateWaiting: async (threadId, runId, update) => {
    const rows = listOf(data, threadId);
    if (indexIn(rows, runId) < 0) return false;
    setList(
      data,
      threadId,
      rows.map((row) => (row.runId === runId ? updatedWaiting(row, structuredClone(update)) : row)),
    );
    return true;
  },
});
