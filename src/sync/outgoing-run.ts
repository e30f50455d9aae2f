import type { BaseEvent } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { ChunkBuilder } from "../run/pack.js";
import type { FedRun } from "../run/run-feed.js";
import { chunkSize } from "../run/size.js";
import type { Chunk, SettledStatus } from "../run/types.js";
import { completed } from "../runner/history/run-input.js";
import { unlessDamaged } from "../runner/history/run-log.js";
import { catchUp } from "../runner/read/catch-up.js";
import type { DeviceName } from "../storage/devices.js";
import { pendingIn, type PendingToolCalls } from "../storage/pending-tool-calls.js";
import type { RunRow, RunStore } from "../storage/run-store.js";
import { endsRun, sentOf, type RunMessage, type SpaceMessage } from "./messages.js";
import { namedRun, runName } from "./run-name.js";
import type { ThreadRecord } from "./sync-database.js";
import { openRun } from "./thread-state.js";

/*
 * The messages that bring a run to other devices: its beginning, its events, its end.
 */

/** About how much of a run goes into one entry (see `sizeOf`), and how many events at most. */
const ENTRY_SIZE = 256 * 1_024;
export const ENTRY_EVENTS = 8_192;

/** What is to be sent next of a thread. */
export type Next =
  | { readonly is: "message"; readonly message: SpaceMessage }
  /** This run is in the space, whole. `leftOut`: the name of one that cannot be sent. */
  | { readonly is: "sent"; readonly runIndex: number; readonly leftOut?: string }
  /** Nothing for now. */
  | undefined;

type Reads = Pick<RunStore, "head" | "run" | "runNamed" | "input" | "chunks" | "thread">;

/**
 * More of a run that is live in this context, from what it has handed out: the log need not be read.
 *
 * @returns `next` undefined: there is no more yet. Undefined where only the log can tell what is to be sent
 */
export function nextOfLive(
  { threadId, state, sent, deleting }: ThreadRecord,
  live: FedRun | undefined,
  device: DeviceName,
): { readonly next: Next } | undefined {
  if (live?.runIndex !== sent || live.feed.state.is !== "open" || deleting !== undefined) return undefined;
  const runId = runName(live);
  const own = Object.entries(state.open).filter(([, open]) => open.device.id === device.id);
  const [name, open] = own[0] ?? [];
  const { lock } = state;
  const isFree = lock === undefined || (lock.device.id === device.id && runName(lock) === runId);
  if (own.length !== 1 || open === undefined || name !== runId || !isFree) return undefined;
  const { nextSeq } = open;
  const handed = live.feed.after(nextSeq - 1);
  if (handed === undefined || handed.some(endsRun)) return undefined;
  const chunks = upTo(catchUp(handed, nextSeq - 1), ENTRY_SIZE).map(sentOf);
  if (chunks.length === 0) return { next: undefined };
  return { next: { is: "message", message: { type: "events", runId, chunks, threadId, device } } };
}

type From = Pick<SpaceMessage, "threadId" | "device">;

/** What of the run is to be sent next, by what stands in the log. @param unsent what comes after that which was sent, if it was read */
export async function nextOfRun(
  store: Reads,
  row: RunRow,
  unsent: readonly Chunk[] | undefined,
  record: ThreadRecord,
  from: From,
): Promise<Next> {
  const { runIndex } = row;
  const runId = runName(row);
  const open = openRun(record.state, runId, from.device);
  if (open === undefined) {
    return { is: "message", message: await runMessage(store, row, record, from) };
  }
  const { nextSeq } = open;
  const chunks = unsent ?? (await store.chunks(from.threadId, runIndex, nextSeq - 1, ENTRY_EVENTS));
  const read = await completed(store, chunks);
  // Records that were joined meanwhile may begin earlier.
  const taken = upTo(catchUp(read, nextSeq - 1), ENTRY_SIZE);
  const last = taken.at(-1);
  // Some of what was sent is not in the log any more, or ended otherwise: it is sent again, as a whole.
  const isOther =
    row.status !== "running" && ((row.eventCount ?? 0) <= nextSeq || (row.closedFrom ?? Infinity) < nextSeq);
  if (isOther) return { is: "message", message: { type: "abandon", runId, ...from } };
  if (last === undefined) return undefined;
  if (!endsRun(last)) {
    const message: SpaceMessage = { type: "events", runId, chunks: taken.map(sentOf), ...from };
    return { is: "message", message };
  }
  if (taken.length > 1) {
    const message: SpaceMessage = { type: "events", runId, chunks: taken.slice(0, -1).map(sentOf), ...from };
    return { is: "message", message };
  }
  // The end is in the log in one transaction with the run's status.
  const ended = row.status === "running" ? await store.run(from.threadId, runIndex) : row;
  if (ended === undefined || ended.status === "running") return undefined;
  const { status, endedAt = ended.startedAt, closedFrom } = ended;
  const left = await leftCallsOf(store, ended);
  return { is: "message", message: endMessage(runId, status, endedAt, closedFrom, last, left, from) };
}

/**
 * The first run of a thread whose log was kept within limits before it came into the space: what is left of it, and of the
 * runs before, is a snapshot.
 */
export async function nextOfCut(
  store: Reads,
  row: RunRow,
  snapshot: () => Promise<readonly BaseEvent[]>,
  record: ThreadRecord,
  from: From,
): Promise<Next> {
  const runId = runName(row);
  const open = openRun(record.state, runId, from.device);
  if (open === undefined) {
    const message = await runMessage(store, row, record, from);
    const { active } = record.state;
    // What others have of the thread was cut off here: it goes on from there.
    const isBehind = active !== null && (await store.runNamed(from.threadId, namedRun(active))) === undefined;
    const place = isBehind ? { prev: active, knew: active } : {};
    // The messages are in the snapshot, in their place.
    return { is: "message", message: { ...message, ...place, input: { ...message.input, messages: [] } } };
  }
  // Some of it was sent while it had its events.
  if (open.nextSeq > 0) return { is: "message", message: { type: "abandon", runId, ...from } };
  const events = await snapshot();
  const builder = new ChunkBuilder({ threadId: from.threadId, runIndex: 0, epoch: 0 });
  const { endedAt = row.startedAt } = row;
  // Interrupts that a run before it has left open stand in front of it, in a run of their own.
  const begin = events.findLastIndex(({ type }) => type === EventType.RUN_STARTED);
  for (const event of events.slice(begin)) builder.add(event, endedAt);
  const chunk = builder.take();
  if (chunk === undefined || row.status === "running") return undefined;
  const closedFrom = row.closedFrom === undefined ? undefined : chunk.count - 1;
  const left = await leftCallsOf(store, row);
  return { is: "message", message: endMessage(runId, row.status, endedAt, closedFrom, chunk, left, from) };
}

/** The calls that the run has left to the tabs. */
async function leftCallsOf(store: Reads, { threadId, runIndex }: RunRow): Promise<PendingToolCalls["calls"]> {
  const pending = pendingIn(await store.head(threadId));
  return pending?.runIndex === runIndex ? pending.calls : [];
}

const endMessage = (
  runId: string,
  status: SettledStatus,
  endedAt: number,
  closedFrom: number | undefined,
  last: Chunk,
  left: PendingToolCalls["calls"],
  from: From,
): SpaceMessage => ({
  type: "end",
  runId,
  status,
  endedAt,
  ...(closedFrom !== undefined && { closedFrom }),
  chunk: sentOf(last),
  ...(left.length > 0 && { left: left.map(({ toolCallId, name }) => ({ toolCallId, name })) }),
  ...from,
});

async function runMessage(store: Reads, row: RunRow, record: ThreadRecord, from: From): Promise<RunMessage> {
  const { threadId, leftOut = [], state, activeIs } = record;
  const { runId, runIndex, prevRunIndex, leaves, agentId, parentRunId, startedAt, fingerprint, attempt, asker } = row;
  const { answerId } = row;
  // What continues a run that others cannot have stands behind the one before that.
  const nameOf = async (index: number | null | undefined, unknown: string | null): Promise<string | null> => {
    if (typeof index !== "number") return null;
    const run = await store.run(threadId, index).catch(unlessDamaged);
    if (run === undefined) return unknown;
    return leftOut.includes(runName(run)) ? nameOf(run.prevRunIndex, unknown) : runName(run);
  };
  const [prev, left, input, thread] = await Promise.all([
    nameOf(prevRunIndex, state.active),
    nameOf(leaves, null),
    store.input(threadId, runIndex),
    store.thread(threadId).catch(unlessDamaged),
  ]);
  return {
    type: "run",
    runId,
    ...(answerId !== undefined && { answerId }),
    prev,
    // Whoever began it here knew what this device had made the end before: people may have gone back from there.
    knew: activeIs === "said" ? state.active : leaves === undefined ? prev : left,
    ...(parentRunId !== undefined && { parentRunId }),
    ...(agentId !== undefined && { agentId }),
    startedAt,
    fingerprint,
    ...(attempt !== undefined && { attempt }),
    input: input ?? { messages: [] },
    title: thread?.title ?? "",
    ...(asker !== undefined && { asker }),
    ...from,
  };
}

/** The first chunks of about this size, at least one. */
function upTo(chunks: readonly Chunk[], size: number): readonly Chunk[] {
  let left = size;
  const end = chunks.findIndex((chunk, at) => {
    left -= chunkSize(chunk);
    return left < 0 && at > 0;
  });
  return end < 0 ? chunks : chunks.slice(0, end);
}
