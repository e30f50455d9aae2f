import type { SettledStatus } from "../../run/types.js";
import {
  askedAs,
  askToStop,
  claimedHead,
  claimedRun,
  decideClaim,
  fenced,
  freed,
  holds,
  stopDecides,
  withoutUnderived,
} from "../decisions.js";
import type { Claim, ClaimRequest, ClaimResult, Derived, RunStore, ThreadRow } from "../run-store.js";
import {
  giveWay,
  leave,
  liveRun,
  putChunk,
  runOfId,
  weigh,
  type MemoryData,
  type MemoryLeft,
  type MemoryRun,
  type MemoryThread,
} from "./memory-data.js";

type Writes = Pick<
  RunStore,
  "claim" | "append" | "settle" | "settleForeign" | "derive" | "requestStop" | "updateThread"
>;

const leftBy = ({ messages, rewritten, state, interrupts }: Derived): MemoryLeft =>
  structuredClone({ messages, resets: rewritten, state, interrupts });

function ended(thread: MemoryThread, updatedAt: number, lastStatus: SettledStatus): void {
  if (thread.row !== undefined) thread.row = { ...thread.row, updatedAt, lastStatus };
}

/** The thread where the claim on it still stands. */
function heldThread(data: MemoryData, held: Claim): MemoryThread {
  const thread = data.threads.get(held.threadId);
  if (thread === undefined || !holds(thread.head, held)) throw fenced(held, thread?.head);
  return thread;
}

function claim(data: MemoryData, request: ClaimRequest): ClaimResult {
  const { threadId, runId, holder, startedAt, agentId } = request;
  const thread = data.threads.get(threadId);
  const same = runOfId(thread, runId, request.fingerprint)?.row;
  const decision = decideClaim(thread?.head, same, request);
  if (decision.is === "moved") return decision;
  if (decision.is === "exists") return { is: "exists", run: { ...decision.run } };
  if (decision.is === "again") {
    const { runIndex, epoch } = decision.run;
    return { is: "claimed", claim: { threadId, runId, runIndex, epoch, holder }, bytes: thread?.bytes ?? 0 };
  }

  const { runIndex, former } = decision;
  const input = structuredClone(request.input);
  const epoch = ++data.epoch;
  const head = claimedHead(thread?.head, request, runIndex, epoch);
  const before = thread?.row;
  const row: ThreadRow = {
    threadId,
    archived: false,
    pinned: false,
    createdAt: startedAt,
    ...before,
    title: before === undefined || before.title === "" ? request.title : before.title,
    ...(agentId !== undefined && { agentId }),
    updatedAt: startedAt,
    runCount: (before?.runCount ?? 0) + 1,
  };
  const claimed = thread ?? {
    head,
    row,
    runs: new Map<number, MemoryRun>(),
    indexOf: new Map<string, number>(),
    bytes: 0,
  };
  const last = claimed.runs.get(claimed.head.activeRunIndex)?.row.runId;
  if (former !== undefined) giveWay(claimed, former);
  claimed.runs.set(runIndex, { row: claimedRun(request, runIndex, epoch, last), input, chunks: [] });
  claimed.indexOf.set(runId, runIndex);
  claimed.head = head;
  claimed.row = row;
  data.threads.set(threadId, claimed);
  data.live.add(threadId);
  data.deleted.delete(threadId);
  data.threadsOfRun.set(runId, (data.threadsOfRun.get(runId) ?? new Set()).add(threadId));
  return { is: "claimed", claim: { threadId, runId, runIndex, epoch, holder }, bytes: thread?.bytes ?? 0 };
}

/** Everything in a call happens before it returns: nothing comes between what it reads and what it writes. */
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
    const { status, endedAt, chunk } = settlement;
    const row = data.threads.get(threadId)?.runs.get(runIndex)?.row;
    // From a first try whose end was not heard.
    if (row?.epoch === held.epoch && row.status === status) return "settled";
    const thread = heldThread(data, held);
    if (stopDecides(thread.head, settlement)) return "stop-requested";
    const run = liveRun(thread, runIndex);
    // What cannot be cloned fails here, before anything is written.
    const closing = structuredClone(settlement.closing);
    leave(thread, run, leftBy(settlement.derived));
    run.closing = closing;
    putChunk(run.chunks, chunk);
    weigh(thread, run);
    run.row = { ...run.row, status, endedAt, eventCount: chunk.firstSeq + chunk.count };
    thread.head = freed(thread.head);
    data.live.delete(threadId);
    ended(thread, endedAt, status);
    return "settled";
  },

  settleForeign: async (threadId, runId, status, endedAt, build) => {
    const thread = data.threads.get(threadId);
    const live = thread?.head.live;
    if (thread === undefined || live?.runId !== runId) return undefined;
    const run = liveRun(thread, live.runIndex);
    const last = run.chunks.at(-1);
    const chunk = build({ ...run.row }, last === undefined ? 0 : last.firstSeq + last.count, last?.open);
    const epoch = ++data.epoch;
    putChunk(run.chunks, { ...chunk, epoch });
    weigh(thread, run);
    run.row = { ...run.row, status, epoch, endedAt, eventCount: chunk.firstSeq + chunk.count };
    const { underived = [] } = thread.head;
    thread.head = { ...freed(thread.head), epoch, underived: [...underived, live.runIndex] };
    data.live.delete(threadId);
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

  updateThread: async (threadId, { title, archived, pinned }) => {
    const thread = data.threads.get(threadId);
    if (thread?.row === undefined) return undefined;
    thread.row = {
      ...thread.row,
      ...(title !== undefined && { title }),
      ...(archived !== undefined && { archived }),
      ...(pinned !== undefined && { pinned }),
    };
    return { ...thread.row };
  },
});
