import type { BaseEvent } from "@ag-ui/client";
import type { Chunk } from "../run/types.js";
import { idKey } from "../run/id-key.js";
import type { DeviceName } from "../storage/devices.js";
import type { RunRow, RunStore, ThreadHead, ThreadRow } from "../storage/run-store.js";
import { unlessDamaged } from "../runner/history/run-log.js";
import { isFresh } from "./asked-run.js";
import type { ToolResult } from "../run/pending-tool-calls.js";
import { pendingIn } from "../storage/pending-tool-calls.js";
import type { Brief } from "./messages.js";
import { ENTRY_EVENTS, nextOfCut, nextOfRun, type Next } from "./outgoing-run.js";
import { changedHere } from "./record-changes.js";
import { runKey } from "./run-key.js";
import { namedRun, runName } from "./run-name.js";
import type { Listed, ThreadRecord } from "./sync-database.js";
import { takesResult } from "./thread-state.js";

type Reads = Pick<RunStore, "head" | "run" | "runNamed" | "input" | "chunks" | "thread" | "toolResults">;

interface SendContext {
  readonly device: DeviceName;
  /** Runs (see {@link idKey}) that hosts of this device were about to start before the head was read. */
  readonly starting: ReadonlySet<string>;
  /** What others have changed of the thread's entry in the list is in the log. */
  readonly isListed: boolean;
  /** The end of the active path that others have made is. */
  readonly isEndHere: boolean;
  /** Own runs that the space has whole, see {@link runKey}. */
  readonly whole: ReadonlySet<string>;
  /** Ms since the Unix epoch. */
  readonly now: number;
  /** The device of the run does not send the rest of it, as it seems. */
  readonly isGivenUp: (deviceId: string, name: string) => boolean;
  /** A fingerprint as other devices may know it. */
  readonly digest: (fingerprint: string) => Promise<string> | string;
  /** What a thread came to up to a run: see `History.pathEvents`. */
  readonly eventsUpTo: (head: ThreadHead, runIndex: number) => Promise<readonly BaseEvent[]>;
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
  { device, starting, isListed, isEndHere, digest, whole, now, isGivenUp, eventsUpTo }: SendContext,
): Promise<Next> {
  const { threadId, state, sent, deleting } = record;
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
    // The servers have lost the rest of another device's run: that device sends it again, unless it does not know.
    const isCutOff = row.device !== undefined && isOver && begunBy !== undefined && begunBy !== device.id;
    if (isCutOff && !isGivenUp(begunBy, name)) return undefined;
    const isOthers = row.device !== undefined && begunBy !== device.id && record.revives?.includes(name) !== false;
    // It is another device's, or others have it.
    const isSent = (isOthers && !isCutOff) || whole.has(runKey(row));
    if (isSent) return { is: "sent", runIndex };
    // Another device has a run of this name: a server that was faster, or one that nobody here knew of.
    if (lock?.isClaimed === true && runName(lock) === name && lock.device.id !== device.id) {
      if (!isOver || !isGivenUp(lock.device.id, name)) return undefined;
      const { runId, answerId } = row;
      return { is: "message", message: { type: "claim", runId, ...(answerId !== undefined && { answerId }), ...from } };
    }
    const isWithoutEvents = head.cut === true && runIndex === head.first;
    const next = isWithoutEvents
      ? await nextOfCut(store, row, () => eventsUpTo(head, runIndex), record, from)
      : await nextOfRun(store, row, sending?.chunks, record, from);
    if (next?.is !== "message" || next.message.type !== "run") return next;
    const { message } = next;
    return { is: "message", message: { ...message, fingerprint: await digest(message.fingerprint) } };
  }
  const end = isEndHere ? await takenUp(store, head, record) : undefined;
  if (end !== undefined) return { is: "message", message: { type: "active", runId: end, knew: state.active, ...from } };
  const answered = await unsentResult(store, head, record);
  if (answered !== undefined) return { is: "message", message: { type: "result", ...answered, ...from } };
  if (!isListed) return undefined;
  const changed = await listedChange(store, record);
  if (changed === undefined) return undefined;
  return { is: "message", message: { type: "thread", ...changed, ...from } };
}

/** The run whose branch people here have taken up, where others do not know that yet. */
async function takenUp(
  store: Reads,
  { threadId, activeRunIndex }: ThreadHead,
  { activeIs, leftOut = [], state }: ThreadRecord,
): Promise<string | undefined> {
  if (activeIs === undefined || state.active === null) return undefined;
  const end = await store.run(threadId, activeRunIndex).catch(unlessDamaged);
  const name = end && runName(end);
  return name === state.active || leftOut.includes(name ?? "") ? undefined : name;
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
