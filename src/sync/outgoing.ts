import { EventType } from "@ag-ui/core";
import { chunkSize } from "../run/size.js";
import type { Chunk, SettledStatus } from "../run/types.js";
import { idKey } from "../run/id-key.js";
import type { FedRun } from "../run/run-feed.js";
import type { DeviceName } from "../storage/devices.js";
import type { RunRow, RunStore, ThreadHead, ThreadRow } from "../storage/run-store.js";
import { catchUp } from "../runner/read/catch-up.js";
import { completed } from "../runner/history/run-input.js";
import { unlessDamaged } from "../runner/history/run-log.js";
import { isFresh } from "./asked-run.js";
import type { ToolResult } from "../run/pending-tool-calls.js";
import { pendingIn, type PendingToolCalls } from "../storage/pending-tool-calls.js";
import type { Brief, SentChunk, SpaceMessage } from "./messages.js";
import { changedHere } from "./record-changes.js";
import { runKey } from "./run-key.js";
import { namedRun, runName } from "./run-name.js";
import type { Listed, ThreadRecord } from "./sync-database.js";
import { openRun, takesResult } from "./thread-state.js";

/** About how much of a run goes into one entry (see `sizeOf`), and how many events at most. */
const ENTRY_SIZE = 256 * 1_024;
const ENTRY_EVENTS = 8_192;

/** What is to be sent next of a thread. */
export type Next =
  | { readonly is: "message"; readonly message: SpaceMessage }
  /** This run is in the space, whole. `leftOut`: the name of one that cannot be sent. */
  | { readonly is: "sent"; readonly runIndex: number; readonly leftOut?: string }
  /** Nothing for now. */
  | undefined;

type Reads = Pick<RunStore, "head" | "run" | "runNamed" | "input" | "chunks" | "thread" | "toolResults">;

interface SendContext {
  readonly device: DeviceName;
  /** Runs (see {@link idKey}) that hosts of this device were about to start before the head was read. */
  readonly starting: ReadonlySet<string>;
  /** What others have changed of the thread's entry in the list is in the log. */
  readonly isListed: boolean;
  /** Own runs that the space has whole, see {@link runKey}. */
  readonly whole: ReadonlySet<string>;
  /** Ms since the Unix epoch. */
  readonly now: number;
  /** A device is not heard of any more. */
  readonly isAway: (deviceId: string) => boolean;
  /** A fingerprint as other devices may know it. */
  readonly digest: (fingerprint: string) => Promise<string> | string;
}

/** What the log has of a run that is being sent. */
interface Sending {
  /** Its name. */
  readonly name: string;
  readonly row: RunRow;
  /** What comes after that which was sent. */
  readonly chunks: readonly Chunk[];
}

/** A thread in the log, and the run of it that is being sent, read at once: each read waits for the writes of a live run. */
export async function readToSend(
  store: Reads,
  { threadId, sent, state }: ThreadRecord,
  device: DeviceName,
): Promise<{ readonly head: ThreadHead | undefined; readonly sending: Sending | undefined }> {
  const own = Object.entries(state.open).find(([, open]) => open.device.id === device.id);
  if (own === undefined) return { head: await store.head(threadId), sending: undefined };
  const [name, { nextSeq }] = own;
  const reads = Promise.all([store.run(threadId, sent), store.chunks(threadId, sent, nextSeq - 1, ENTRY_EVENTS)]);
  const [head, sending] = await Promise.all([
    store.head(threadId),
    // What cannot be read fails where it is needed.
    reads
      .then(([row, chunks]) => (row !== undefined && runName(row) === name ? { name, row, chunks } : undefined))
      .catch(() => undefined),
  ]);
  return { head, sending };
}

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
  const chunks = upTo([...catchUp(handed, nextSeq - 1)], ENTRY_SIZE).map(sentOf);
  if (chunks.length === 0) return { next: undefined };
  return { next: { is: "message", message: { type: "events", runId, chunks, threadId, device } } };
}

/**
 * The next message of a thread, from what is in the log and what the space has. Nothing is remembered in between: after a
 * crash it goes on where it was.
 *
 * @param read see {@link readToSend}
 */
export async function nextToSend(
  store: Reads,
  read: Awaited<ReturnType<typeof readToSend>>,
  record: ThreadRecord,
  context: SendContext,
): Promise<Next> {
  const next = await unlisted(store, read, record, context);
  if (next?.is !== "message") return next;
  const { message } = next;
  if (message.type === "claim" || message.type === "events" || message.type === "deleted") return next;
  const row = await rowOf(store, record.threadId);
  return row === undefined ? next : { is: "message", message: { ...message, brief: briefOf(row) } };
}

/** How the thread is listed, where that can be read. */
const rowOf = (store: Reads, threadId: string): Promise<ThreadRow | undefined> =>
  store.thread(threadId).catch(unlessDamaged);

/** How a thread is listed. */
export const briefOf = ({ title, agentId, archived, pinned, createdAt, updatedAt, lastStatus }: ThreadRow): Brief => ({
  title,
  ...(agentId !== undefined && { agentId }),
  archived,
  pinned,
  createdAt,
  updatedAt,
  ...(lastStatus !== undefined && { lastStatus }),
});

/** See {@link nextToSend}, without how the thread is listed. */
async function unlisted(
  store: Reads,
  { head, sending }: Awaited<ReturnType<typeof readToSend>>,
  record: ThreadRecord,
  { device, starting, isListed, digest, whole, now, isAway }: SendContext,
): Promise<Next> {
  const { threadId, state, sent, activating, deleting } = record;
  const from = { threadId, device };
  for (const [name, open] of Object.entries(state.open)) {
    if (open.device.id !== device.id) continue;
    const read = sending?.name === name ? sending.row : store.runNamed(threadId, namedRun(name));
    const row = await Promise.resolve(read).catch(unlessDamaged);
    // One that was deleted here, and came back from the space, nobody executes any more.
    const isDead = row?.device?.id === device.id && row.status === "running";
    // The rest of it cannot be read: it must not hold the thread.
    const isLeftOut = row !== undefined && (row.device ?? device).id === device.id && row.runIndex < sent;
    if (row !== undefined && !isDead && !isLeftOut) continue;
    return { is: "message", message: { type: "abandon", runId: name, ...from } };
  }
  if (deleting !== undefined) {
    const counts = deleting === state.lastRun ? ({ counts: true } as const) : {};
    return { is: "message", message: { type: "deleted", knew: deleting, ...counts, ...from } };
  }
  const { lock } = state;
  // It was claimed, and never began: the host that claimed it has ended. What servers are asked for stands for a while.
  const isOwn = lock !== undefined && lock.device.id === device.id && !(lock.asks && isFresh(lock.asks, now));
  if (isOwn && !Object.hasOwn(state.open, runName(lock)) && !starting.has(idKey(threadId, lock.runId))) {
    const { runId } = lock;
    const row = await store.runNamed(threadId, lock).catch(unlessDamaged);
    // It stands in the log since a moment ago: until it is sent, the claim keeps others from the thread.
    const isNext = row !== undefined && row.device === undefined && row.runIndex >= sent;
    if (!isNext) return { is: "message", message: { type: "release", runId, ...from } };
  }
  if (head === undefined || head.deleted === true) return undefined;
  const { first = 0 } = head;
  if (sent < first) return { is: "sent", runIndex: first - 1 };
  const runIndex = sent;
  if (runIndex < head.runCount) {
    const row = sending?.row ?? (await store.run(threadId, runIndex));
    // What is left of it cannot be read.
    if (row === undefined) return { is: "sent", runIndex };
    const name = runName(row);
    const begunBy = Object.hasOwn(state.open, name) ? state.open[name]?.device.id : undefined;
    const isOver = row.status !== "running" && row.status !== "broken";
    // The servers have lost the rest of another device's run: that device sends it again, or is away.
    const isCutOff = row.device !== undefined && isOver && begunBy !== undefined && begunBy !== device.id;
    if (isCutOff && !isAway(begunBy)) return undefined;
    const isOthers = row.device !== undefined && begunBy !== device.id && record.revives?.includes(name) !== false;
    // It is another device's, or others have it.
    const isSent = (isOthers && !isCutOff) || whole.has(runKey(row)) || (head.cut === true && runIndex === head.first);
    if (isSent) return { is: "sent", runIndex };
    // Another device has a run of this name: a server that was faster, or one that nobody here knew of.
    if (lock?.isClaimed === true && runName(lock) === name && lock.device.id !== device.id) {
      if (!isOver || !isAway(lock.device.id)) return undefined;
      const { runId, answerId } = row;
      return { is: "message", message: { type: "claim", runId, ...(answerId !== undefined && { answerId }), ...from } };
    }
    const next = await nextOfRun(store, row, sending?.chunks, record, from);
    if (next?.is !== "message" || next.message.type !== "run") return next;
    const { message } = next;
    return { is: "message", message: { ...message, fingerprint: await digest(message.fingerprint) } };
  }
  if (activating !== undefined) {
    const { knew } = activating;
    // It may have gone on since.
    const end = await store.run(threadId, head.activeRunIndex).catch(unlessDamaged);
    const runId = end === undefined ? activating.runId : runName(end);
    return { is: "message", message: { type: "active", runId, knew, ...from } };
  }
  const answered = await unsentResult(store, head, record);
  if (answered !== undefined) return { is: "message", message: { type: "result", ...answered, ...from } };
  if (!isListed) return undefined;
  const changed = await listedChange(store, record);
  if (changed === undefined) return undefined;
  return { is: "message", message: { type: "thread", ...changed, ...from } };
}

/** A tool call that was answered on a device, as it is sent. */
export interface SentResult {
  readonly runId: string;
  readonly result: ToolResult;
  readonly followUp?: false;
}

/** The result of a tool call that others do not have: this device was not in step when it was given. */
async function unsentResult(store: Reads, head: ThreadHead, { state }: ThreadRecord): Promise<SentResult | undefined> {
  const pending = pendingIn(head);
  if (pending === undefined || !pending.calls.some(({ status }) => status === "answered")) return undefined;
  const run = await store.run(head.threadId, pending.runIndex);
  if (run === undefined) return undefined;
  const runId = runName(run);
  const results = await store.toolResults(head);
  const result = results.find(({ toolCallId }) => takesResult(state, runId, toolCallId));
  if (result === undefined) return undefined;
  const { followUp } = pending.calls.find(({ toolCallId }) => toolCallId === result.toolCallId) ?? {};
  return { runId, result, ...(followUp !== undefined && { followUp }) };
}

/** What this device has changed of the thread's entry in the list. */
async function listedChange(store: Reads, { threadId, listed }: ThreadRecord): Promise<Partial<Listed> | undefined> {
  const row = await rowOf(store, threadId);
  const changed = [...changedHere(row, listed)];
  return row && changed.length > 0 ? Object.fromEntries(changed.map((field) => [field, row[field]])) : undefined;
}

type From = Pick<SpaceMessage, "threadId" | "device">;

async function nextOfRun(
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
  const taken = upTo([...catchUp(read, nextSeq - 1)], ENTRY_SIZE);
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
  const pending = pendingIn(await store.head(from.threadId));
  const left = pending?.runIndex === runIndex ? pending.calls : [];
  return {
    is: "message",
    message: endMessage(runId, status, endedAt, closedFrom, last, left, from),
  };
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

async function runMessage(store: Reads, row: RunRow, record: ThreadRecord, from: From): Promise<SpaceMessage> {
  const { threadId, leftOut = [], state } = record;
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
    rowOf(store, threadId),
  ]);
  return {
    type: "run",
    runId,
    ...(answerId !== undefined && { answerId }),
    prev,
    knew: leaves === undefined ? prev : left,
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

const sentOf = ({ threadId: _threadId, runIndex: _runIndex, epoch: _epoch, ...sent }: Chunk): SentChunk => sent;

/** The first chunks of about this size, at least one. */
function upTo(chunks: readonly Chunk[], size: number): readonly Chunk[] {
  let left = size;
  const end = chunks.findIndex((chunk, at) => {
    left -= chunkSize(chunk);
    return left < 0 && at > 0;
  });
  return end < 0 ? chunks : chunks.slice(0, end);
}

/** A run's terminal event is its last. */
function endsRun(chunk: Chunk): boolean {
  const last = chunk.entries.at(-1)?.event.type;
  return last === EventType.RUN_FINISHED || last === EventType.RUN_ERROR;
}
