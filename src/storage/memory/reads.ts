import type { Message } from "@ag-ui/client";
import { mayHoldBytes, readable, readableItems } from "../../run/readable.js";
import { byPlace } from "../../run/thread-order.js";
import type { Chunk } from "../../run/types.js";
import { readableClosing } from "../decisions.js";
import { answeredIn, resultOf } from "../pending-tool-calls.js";
import type { RunRow, RunReads, StoredMessageRow, ThreadRow } from "../run-store.js";
import { placeAfter, rowsOf, runOf, runOfId, type MemoryData, type MemoryRun } from "./memory-data.js";

/** Most run and thread rows are flat. */
const copyOf = <T extends RunRow | ThreadRow>(row: T): T => ("device" in row ? structuredClone(row) : { ...row });

/** Chunks are returned often, and checking one is not cheap. */
const readableChunks = new WeakMap<Chunk, Chunk>();

function readableChunk(chunk: Chunk): Chunk {
  const known = readableChunks.get(chunk);
  if (known !== undefined) return known;
  const entries = readableItems(chunk.entries, ({ event }) => mayHoldBytes(event));
  const shown = entries === chunk.entries ? chunk : { ...chunk, entries };
  readableChunks.set(chunk, shown);
  return shown;
}

const rowOf = (run: MemoryRun | undefined): RunRow | undefined => run && copyOf(run.row);

function chunksAfter(chunks: readonly Chunk[], afterSeq: number, limit: number): Chunk[] {
  const found: Chunk[] = [];
  let events = 0;
  for (let place = placeAfter(chunks, afterSeq); place < chunks.length && events < limit; place++) {
    const chunk = chunks[place]!;
    found.push(readableChunk(chunk));
    events += chunk.count;
  }
  return found;
}

function messageRows(
  runs: Iterable<MemoryRun>,
  upTo: number,
  path: ReadonlySet<number> | undefined,
): StoredMessageRow[] {
  const rows: StoredMessageRow[] = [];
  for (const { row, left } of runs) {
    const { runIndex } = row;
    if (runIndex > upTo) break;
    if (left === undefined || (path !== undefined && !path.has(runIndex))) continue;
    if (left.resets) rows.length = 0;
    if (left.resets && left.messages.length === 0) rows.push({ runIndex, resets: true, row: undefined });
    left.messages.forEach((message, n) => rows.push({ runIndex, resets: left.resets && n === 0, row: message }));
  }
  return structuredClone(readableItems(rows)) as StoredMessageRow[];
}

export const memoryReads = (data: MemoryData): Omit<RunReads, "messagePage"> => ({
  head: async (threadId) => structuredClone(data.threads.get(threadId)?.head),

  liveHeads: async () => [...data.live].flatMap((threadId) => structuredClone(data.threads.get(threadId)?.head) ?? []),

  heads: async (after) =>
    [...data.threads]
      .filter(([threadId]) => after === undefined || threadId > after)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, { head }]) => structuredClone(head)),

  run: async (threadId, runIndex) => rowOf(runOf(data, threadId, runIndex)),

  runById: async (threadId, runId, fingerprint) => rowOf(runOfId(data.threads.get(threadId), runId, fingerprint)),

  runsOfId: async (runId, limit) => {
    const rows: RunRow[] = [];
    for (const threadId of data.threadsOfRun.get(runId) ?? []) {
      if (rows.length >= limit) break;
      const row = rowOf(runOfId(data.threads.get(threadId), runId));
      if (row !== undefined) rows.push(row);
    }
    return rows;
  },

  runs: async (threadId) => [...(data.threads.get(threadId)?.runs.values() ?? [])].map(({ row }) => copyOf(row)),

  runsBefore: async ({ threadId, status, before = Infinity, limit }) => {
    const rows: RunRow[] = [];
    const thread = data.threads.get(threadId);
    if (thread === undefined) return rows;
    const { first = 0, runCount } = thread.head;
    for (let at = Math.min(before, runCount) - 1; at >= first && rows.length < limit; at--) {
      const row = thread.runs.get(at)?.row;
      if (row !== undefined && (status === undefined || row.status === status)) rows.push(copyOf(row));
    }
    return rows;
  },

  input: async (threadId, runIndex) => {
    const input = runOf(data, threadId, runIndex)?.input;
    return input && structuredClone({ ...input, messages: readableItems(input.messages) });
  },

  closing: async (threadId, runIndex) => {
    const closing = runOf(data, threadId, runIndex)?.closing;
    return closing && structuredClone(readableClosing(closing));
  },

  chunks: async (threadId, runIndex, afterSeq, limit) =>
    chunksAfter(runOf(data, threadId, runIndex)?.chunks ?? [], afterSeq, limit),

  messageRows: async (threadId, upTo, path) => messageRows(data.threads.get(threadId)?.runs.values() ?? [], upTo, path),

  messageForms: async (threadId, messageIds) => {
    const thread = data.threads.get(threadId);
    const byId = thread && rowsOf(thread).byId;
    const forms = new Map<string, Message[]>();
    for (const id of messageIds) {
      const places = byId?.get(id) ?? [];
      const found = places.flatMap(({ runIndex, n }) => thread?.runs.get(runIndex)?.left?.messages[n]?.message ?? []);
      if (found.length > 0) forms.set(id, structuredClone(found));
    }
    return forms;
  },

  stateAfter: async (threadId, runIndex) => {
    const left = runOf(data, threadId, runIndex)?.left;
    return left && structuredClone({ state: readable(left.state), interrupts: readable(left.interrupts, true) });
  },

  toolResults: async (head) => answeredIn(head).map((call) => resultOf(call, structuredClone(call.result))),

  thread: async (threadId) => {
    const row = data.threads.get(threadId)?.row;
    return row && copyOf(row);
  },

  threads: async ({ limit, before, agentId, archived }) =>
    [...data.threads.values()]
      .flatMap(({ row }) => row ?? [])
      .filter(
        (row) =>
          row.archived === archived &&
          (before === undefined || byPlace(before, row) < 0) &&
          (agentId === undefined || row.agentId === agentId),
      )
      .sort(byPlace)
      .slice(0, limit)
      .map(copyOf),
});
