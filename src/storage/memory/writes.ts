import { defined } from "../../platform/defined.js";
import { joinChunks } from "../../run/pack.js";
import type { Chunk, SettledStatus } from "../../run/types.js";
import {
  askedAs,
  askToStop,
  claimedHead,
  claimedRun,
  claimedThread,
  decideClaim,
  endedRun,
  fenced,
  granted,
  holds,
  settledHead,
  stopDecides,
  takenOver,
  withoutUnderived,
} from "../decisions.js";
import { changedCall } from "../pending-tool-calls.js";
import { joinGroups } from "../repacking.js";
import type { Claim, ClaimRequest, ClaimResult, RunStore } from "../run-store.js";
import {
  addRun,
  leave,
  leftBy,
  liveRun,
  newThread,
  putChunk,
  runOf,
  runOfId,
  runOfName,
  weigh,
  type MemoryData,
  type MemoryThread,
} from "./memory-data.js";
import { turnOf } from "../waiting.js";
import { dropWaiting, putRecovery, waitingFor } from "./waiting.js";

type Writes = Pick<
  RunStore,
  | "claim"
  | "append"
  | "settle"
  | "settleForeign"
  | "derive"
  | "requestStop"
  | "changeToolCall"
  | "updateThread"
  | "repack"
>;

function ended(thread: MemoryThread, updatedAt: number, lastStatus: SettledStatus): void {
  const { row } = thread;
  if (row !== undefined) thread.row = { ...row, updatedAt: Math.max(row.updatedAt, updatedAt), lastStatus };
}

/** The thread, if the claim on it still stands. */
function heldThread(data: MemoryData, held: Claim): MemoryThread {
  const thread = data.threads.get(held.threadId);
  if (thread === undefined || !holds(thread.head, held)) throw fenced(held, thread?.head);
  return thread;
}

function claim(data: MemoryData, request: ClaimRequest): ClaimResult {
  const { threadId, runId, listedAt = request.startedAt } = request;
  const thread = data.threads.get(threadId);
  const same = request.device === undefined ? runOfId(thread, runId, request.fingerprint) : runOfName(thread, request);
  const newest = runOfId(thread, runId);
  const decision = decideClaim(thread?.head, { same: same?.row, newest: newest?.row }, request);
  if (decision.is === "moved") return decision;
  if (decision.is === "exists") {
    if (request.waiting === true) dropWaiting(data, threadId, runId);
    return { is: "exists", run: { ...decision.run } };
  }
  if (decision.is === "again") return granted(request, decision.run, thread?.bytes);
  const { waits, first } = waitingFor(data, threadId, runId);
  const turn = turnOf(request, waits, first);
  if (turn !== "first") return { is: turn };

  const { runIndex, former } = decision;
  const input = structuredClone(request.input);
  const epoch = ++data.epoch;
  const last = thread?.runs.get(thread.head.activeRunIndex)?.row.runId;
  const { bytes } = addRun(data, thread, {
    head: claimedHead(thread?.head, request, runIndex, epoch),
    row: claimedThread(thread?.row ?? newThread(threadId, listedAt), request),
    run: { row: claimedRun(thread?.head, request, runIndex, epoch, last), input, chunks: [] },
    former,
    takesId: true,
  });
  data.live.add(threadId);
  if (request.waiting === true) dropWaiting(data, threadId, runId);
  return granted(request, { runIndex, epoch }, bytes);
}

/** Every call is synchronous, and so atomic. */
export const memoryWrites = (data: MemoryData): Writes => ({
  claim: async (request) => claim(data, request),

  append: async (held, chunk) => {
    const thread = heldThread(data, held);
    putChunk(liveRun(thread, held.runIndex).chunks, chunk);
    const stop = askedAs(thread.head);
    return stop === undefined ? {} : { stop };
  },

  settle: async (held, settlement) => {
    const { threadId, runIndex } = held;
    const { status, endedAt, listedAt = endedAt, chunk } = settlement;
    const row = runOf(data, threadId, runIndex)?.row;
    // This is a retry: the first try was committed.
    if (row?.epoch === held.epoch && row.status === status) return "settled";
    const thread = heldThread(data, held);
    if (stopDecides(thread.head, settlement)) return "stop-requested";
    const run = liveRun(thread, runIndex);
    // Cloning may fail; nothing is written yet.
    const closing = structuredClone(settlement.closing);
    leave(thread, run, leftBy(settlement.derived));
    run.closing = closing;
    putChunk(run.chunks, chunk);
    weigh(thread, run);
    run.row = endedRun(run.row, status, endedAt, chunk);
    thread.head = settledHead(thread.head, runIndex, settlement);
    data.live.delete(threadId);
    if (settlement.recovery !== undefined) putRecovery(data, settlement.recovery);
    ended(thread, listedAt, status);
    return "settled";
  },

  settleForeign: async (threadId, runId, status, endedAt, build, recovery) => {
    const thread = data.threads.get(threadId);
    const live = thread?.head.live;
    if (thread === undefined || live?.runId !== runId) return undefined;
    const run = liveRun(thread, live.runIndex);
    const last = run.chunks.at(-1);
    const nextSeq = last === undefined ? 0 : last.firstSeq + last.count;
    const chunk = build({ ...run.row }, nextSeq, last?.open);
    const next = recovery?.({ ...run.row }, nextSeq, last?.open);
    const epoch = ++data.epoch;
    putChunk(run.chunks, { ...chunk, epoch });
    weigh(thread, run);
    run.row = { ...endedRun(run.row, status, endedAt, chunk), epoch };
    thread.head = takenOver(thread.head, epoch, live.runIndex);
    data.live.delete(threadId);
    if (next !== undefined) putRecovery(data, next);
    ended(thread, endedAt, status);
    return { ...run.row };
  },

  derive: async (threadId, runIndex, closing, derived) => {
    const thread = data.threads.get(threadId);
    const run = thread?.runs.get(runIndex);
    if (thread === undefined || run === undefined || thread.head.underived?.includes(runIndex) !== true) return;
    const copy = structuredClone(closing);
    leave(thread, run, leftBy(derived));
    run.closing = copy;
    weigh(thread, run);
    thread.head = withoutUnderived(thread.head, (other) => other === runIndex);
  },

  requestStop: async (threadId, runId, at, as = "stopped") => {
    const thread = data.threads.get(threadId);
    const request = askToStop(thread?.head, runId, at, as);
    if (thread !== undefined && request?.head !== undefined) thread.head = request.head;
    return request?.asked;
  },

  changeToolCall: async (threadId, toolCallId, change, result) => {
    const thread = data.threads.get(threadId);
    const stored = structuredClone(result);
    const changed = changedCall(thread?.head, threadId, toolCallId, (call) => change(call, stored));
    if (thread !== undefined && changed.head !== undefined) thread.head = changed.head;
    return changed.change.is;
  },

  updateThread: async (threadId, { title, archived, pinned }) => {
    const thread = data.threads.get(threadId);
    if (thread?.row === undefined) return undefined;
    thread.row = {
      ...thread.row,
      ...(title !== undefined && { title, named: true as const }),
      ...defined({ archived, pinned }),
    };
    return { ...thread.row };
  },

  repack: async (threadId, runIndex) => {
    const run = runOf(data, threadId, runIndex);
    if (run === undefined || run.row.status === "running") return;
    let chunks: readonly Chunk[] = run.chunks;
    // A joined chunk is smaller than its parts were, so more may fit into a record the next time.
    for (let before = Infinity; chunks.length < before;) {
      before = chunks.length;
      chunks = joinGroups(chunks).map(joinChunks);
    }
    run.chunks.length = 0;
    for (const chunk of chunks) run.chunks.push(chunk);
  },
});
