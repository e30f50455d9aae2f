import type { Chunk } from "../../run/types.js";
import {
  activatedHead,
  activatesNew,
  decidePlace,
  eventsIn,
  isOnPathTo,
  mayActivate,
  mayReopen,
  placedHead,
  placedRun,
  placedThread,
  rebasedRun,
  reopenedHead,
  reopenedRun,
  replacedHead,
  replacedRun,
} from "../device-decisions.js";
import type { DeviceStore, PlacedRun } from "../devices.js";
import type { Claim, RunRow, ThreadRow } from "../run-store.js";
import {
  addRun,
  leave,
  leftBy,
  newThread,
  placeAfter,
  runOf,
  runOfId,
  runOfName,
  unleave,
  weigh,
  type MemoryData,
  type MemoryRun,
  type MemoryThread,
} from "./memory-data.js";

function reopen(data: MemoryData, threadId: string, runIndex: number, holder: string): Claim | undefined {
  const thread = data.threads.get(threadId);
  const run = thread?.runs.get(thread.head.activeRunIndex);
  if (thread === undefined || run === undefined) return undefined;
  const { row, chunks } = run;
  if (row.runIndex !== runIndex || !mayReopen(thread.head, row)) return undefined;
  const from = placeAfter(chunks, row.closedFrom - 1);
  // They were joined.
  if ((chunks[from]?.firstSeq ?? row.closedFrom) !== row.closedFrom) return undefined;
  const epoch = ++data.epoch;
  chunks.splice(from);
  unleave(thread, run);
  run.row = reopenedRun(row, epoch);
  thread.head = reopenedHead(thread.head, row, epoch, holder);
  data.live.add(threadId);
  return { threadId, runIndex, runId: row.runId, epoch, holder };
}

function placeRun(data: MemoryData, placed: PlacedRun): RunRow | undefined {
  eventsIn(placed);
  const { threadId, runId, prevRunIndex } = placed;
  const before = data.threads.get(threadId);
  const head = before?.head;
  const same = runOfName(before, placed);
  const newest = runOfId(before, runId);
  const prev = prevRunIndex === null ? undefined : runOf(data, threadId, prevRunIndex)?.row;
  const decision = decidePlace({ head, same: same?.row, newest: newest?.row, prev }, placed);
  if (decision.is === "blocked") return undefined;
  if (decision.is === "there") return structuredClone(decision.run);
  // Cloning may fail; nothing is written yet.
  const { input, closing } = structuredClone({ input: placed.input, closing: placed.closing });
  const left = leftBy(placed.derived);
  const { startedAt, endedAt, listedAt = endedAt, title } = placed;
  const rowOf = (thread: MemoryThread | undefined, isNew: boolean, isEnd: boolean): ThreadRow => {
    const row = thread?.row ?? newThread(threadId, Math.min(startedAt, listedAt), listedAt);
    return placedThread(row, placed, title, { isNew, isEnd });
  };
  const here = (runIndex: number, epoch: number): Chunk[] =>
    placed.chunks.map((chunk) => ({ ...chunk, threadId, runIndex, epoch }));

  if (decision.is === "replaces") {
    // Only a run that is there is replaced.
    const [thread, run] = [before!, same!];
    const { runIndex } = run.row;
    const isOnPath = isOnPathTo(thread.head.activeRunIndex, runIndex, (at) => thread.runs.get(at)?.row.prevRunIndex);
    // The live run began on what would be replaced.
    if (isOnPath && thread.head.live !== undefined) return undefined;
    const epoch = ++data.epoch;
    const active = thread.runs.get(thread.head.activeRunIndex);
    const isLast = placed.activates || active === run;
    if (isOnPath && active !== undefined && active !== run) active.row = rebasedRun(active.row, epoch);
    run.row = replacedRun(run.row, placed, epoch);
    run.chunks.splice(0, Infinity, ...here(runIndex, epoch));
    unleave(thread, run);
    thread.head = replacedHead(thread.head, run.row, placed, epoch, isOnPath);
    thread.row = rowOf(thread, false, isLast);
    return finish(thread, run, closing, left);
  }

  const { runIndex, former, takesId } = decision;
  const epoch = ++data.epoch;
  const run: MemoryRun = {
    row: structuredClone(placedRun(head, placed, runIndex, epoch)),
    input,
    chunks: here(runIndex, epoch),
  };
  const row = rowOf(before, true, activatesNew(head, placed));
  const thread = addRun(data, before, { head: placedHead(head, placed, runIndex, epoch), row, run, former, takesId });
  return finish(thread, run, closing, left);
}

function finish(
  thread: MemoryThread,
  run: MemoryRun,
  closing: NonNullable<MemoryRun["closing"]>,
  left: NonNullable<MemoryRun["left"]>,
): RunRow {
  leave(thread, run, left);
  run.closing = closing;
  weigh(thread, run);
  return structuredClone(run.row);
}

/** Every call is synchronous, and so atomic. */
export const memoryDevices = (data: MemoryData): DeviceStore => ({
  runNamed: async (threadId, name) => structuredClone(runOfName(data.threads.get(threadId), name)?.row),

  reopen: async (...args) => reopen(data, ...args),

  placeRun: async (placed) => placeRun(data, placed),

  activate: async (threadId, runIndex, epoch) => {
    const thread = data.threads.get(threadId);
    if (thread === undefined || !mayActivate(thread.head, thread.runs.get(runIndex)?.row)) return false;
    if (thread.head.activeRunIndex === runIndex) return true;
    if (thread.head.epoch !== (epoch ?? thread.head.epoch)) return false;
    thread.head = activatedHead(thread.head, runIndex, ++data.epoch);
    return true;
  },
});
