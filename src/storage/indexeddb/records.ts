import type { PayloadCodec, PayloadPlace } from "../codec.js";
import { readable } from "../../run/readable.js";
import type { Chunk } from "../../run/types.js";
import type { Derived, RunRow, ThreadHead } from "../run-store.js";
import { isHead, isIndex, isRecord } from "./checks.js";
import { quietly } from "./database-connection.js";
import {
  EPOCH,
  type ChunkRecord,
  type MessageRecord,
  type RunRecord,
  type StateRecord,
  type StoredFailure,
  type ThreadRecord,
  type Stores,
  type ReadTransaction,
  type WaitingRecord,
  type WriteTransaction,
  type FormerId,
} from "./schema.js";

/** The scope of a write of payloads, see `refuseEncrypted`. */
export const withKeys = (...stores: readonly Stores[]): Stores[] => [...stores, "meta"];

/** Records read per transaction: appends of all threads wait for a long read. */
export const PAGE = 256;

/** The keys of runs `from` (inclusive) to `end` (exclusive, greater), in each store whose keys begin with thread and run. */
export const runRange = (threadId: string, from: number, end: number): IDBKeyRange =>
  IDBKeyRange.bound([threadId, from], [threadId, end], false, true);

/**
 * A new epoch for a write to the thread of `head`. A lost or outdated counter is restored from the heads, which hold the
 * newest epoch of each thread. Needs `meta` and `heads` in the transaction.
 */
export async function nextEpoch(tx: WriteTransaction, head: ThreadHead | undefined): Promise<number> {
  const meta = tx.objectStore("meta");
  const counter = await meta.get(EPOCH);
  const last = isIndex(counter) && counter >= (head?.epoch ?? 0) ? counter : await greatestEpoch(tx);
  quietly(meta.put(last + 1, EPOCH));
  return last + 1;
}

async function greatestEpoch(tx: WriteTransaction): Promise<number> {
  const heads = await tx.objectStore("heads").getAll();
  return heads.filter(isHead).reduce((greatest, { epoch }) => Math.max(greatest, epoch), 0);
}

/**
 * The records of a range of `messages`. One that reads as null is returned without content: invalid, but it tells whose
 * run it belongs to.
 */
export async function messageRecordsIn(
  tx: ReadTransaction,
  range: IDBKeyRange,
  limit?: number,
): Promise<MessageRecord[]> {
  const store = tx.objectStore("messages");
  const records = await store.getAll(range, limit);
  if (records.every(isRecord)) return records;
  const keys = await store.getAllKeys(range, limit);
  return keys.map(([threadId, runIndex, n], at) => records[at] ?? { threadId, runIndex, n });
}

/*
 * The places of payloads: what must not be read anywhere else, or beside other numbers.
 */
export const placeOfChunk = (chunk: Omit<ChunkRecord, "entries">): PayloadPlace => [
  "chunk",
  chunk.threadId,
  chunk.runIndex,
  chunk.firstSeq,
  chunk.count,
  chunk.epoch,
];
/** A run's index is not known before its claim is written; its id and fingerprint name its input. */
export const placeOfInput = (run: Pick<RunRecord, "threadId" | "runId" | "fingerprint">): PayloadPlace => [
  "input",
  run.threadId,
  Array.isArray(run.runId) ? run.runId[0] : run.runId,
  run.fingerprint,
];
export const placeOfClosing = (threadId: string, runIndex: number): PayloadPlace => ["closing", threadId, runIndex];
export const placeOfMessage = (record: Omit<MessageRecord, "message">): PayloadPlace => [
  "message",
  record.threadId,
  record.runIndex,
  record.n,
  record.messageId,
  record.after,
  record.addedBy,
  record.resets,
];
export const placeOfState = (threadId: string, runIndex: number): PayloadPlace => ["state", threadId, runIndex];
export const placeOfInterrupts = (threadId: string, runIndex: number): PayloadPlace => [
  "interrupts",
  threadId,
  runIndex,
];
export const placeOfTitle = (threadId: string): PayloadPlace => ["title", threadId];
export const placeOfResult = (threadId: string, toolCallId: string): PayloadPlace => ["result", threadId, toolCallId];
export const placeOfRequest = (threadId: string, runId: string): PayloadPlace => ["request", threadId, runId];
export const placeOfFailure = (
  { threadId, runId }: Pick<WaitingRecord, "threadId" | "runId">,
  { code }: Pick<StoredFailure, "code">,
): PayloadPlace => ["failure", threadId, runId, code];

export async function encodeChunk(codec: PayloadCodec, chunk: Chunk): Promise<ChunkRecord> {
  return { ...chunk, entries: await codec.encode(chunk.entries, placeOfChunk(chunk)) };
}

/** The row of a thread that has none yet. */
export const newThread = (threadId: string, createdAt: number, updatedAt = createdAt): ThreadRecord => ({
  threadId,
  title: "",
  archived: 0,
  pinned: 0,
  createdAt,
  updatedAt,
  runCount: 0,
  eventCount: 0,
});

/** The keys of a run's chunks from event `seq` on. */
export const chunksFrom = (
  { threadId, runIndex }: Pick<RunRecord, "threadId" | "runIndex">,
  seq: number,
): IDBKeyRange => IDBKeyRange.bound([threadId, runIndex, seq], [threadId, runIndex, Infinity]);

/** The bytes of a thread after an end of a run was written. Those of an earlier end of it may have gone with a cut. */
export const bytesAfter = ({ bytes: all = 0 }: ThreadRecord, run: RunRecord | undefined, bytes: number): number =>
  Math.max(0, all - (run?.bytes ?? 0)) + bytes;

/** An empty title is stored as it is. */
export const encodeTitle = async (codec: PayloadCodec, threadId: string, title: string): Promise<string | Uint8Array> =>
  // A codec makes text or bytes of a text.
  title === "" ? title : ((await codec.encode(title, placeOfTitle(threadId))) as string | Uint8Array);

export async function encodeDerived(
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
  derived: Derived,
): Promise<{ messages: MessageRecord[]; state: StateRecord }> {
  const messages: MessageRecord[] = await Promise.all(
    derived.messages.map(async ({ message, after, addedBy }, n) => {
      const record = {
        threadId,
        runIndex,
        n,
        messageId: message.id,
        ...(after !== undefined && { after }),
        ...(addedBy !== undefined && { addedBy }),
        ...(derived.rewritten && n === 0 && { resets: 1 as const }),
      };
      return { ...record, message: await codec.encode(message, placeOfMessage(record)) };
    }),
  );
  if (derived.rewritten && messages.length === 0) messages.push({ threadId, runIndex, n: 0, resets: 1 });
  const state: StateRecord = {
    threadId,
    runIndex,
    state: await codec.encode(derived.state, placeOfState(threadId, runIndex)),
    interrupts: await codec.encode(derived.interrupts, placeOfInterrupts(threadId, runIndex)),
  };
  return { messages, state };
}

export function putDerived(tx: WriteTransaction, records: { messages: MessageRecord[]; state: StateRecord }): void {
  for (const record of records.messages) quietly(tx.objectStore("messages").put(record));
  quietly(tx.objectStore("states").put(records.state));
}

/**
 * A record to be written back: payloads of older builds may be nested too deeply for the stack here, which would keep the
 * run from its end (L7).
 */
export const storable = (record: RunRecord): RunRecord => ({
  ...record,
  // A codec may have made bytes of it.
  input: readable(record.input, true),
  ...(record.closing !== undefined && { closing: readable(record.closing, true) }),
});

/** The id under which a run is found that is not the newest one of its id. */
export function formerId(run: RunRecord): FormerId {
  const { runId, fingerprint, answerId } = toRunRow(run);
  return answerId === undefined ? [runId, fingerprint] : [runId, fingerprint, answerId];
}

/** Callers compare a run with what they gave. @param digest what the codec makes of the given fingerprint */
export const asGiven = (run: RunRow, digest: string | undefined, given: string | undefined): RunRow =>
  given === undefined || run.fingerprint !== digest ? run : { ...run, fingerprint: given };

export function toRunRow(record: RunRecord): RunRow {
  const { input: _input, closing: _closing, bytes: _bytes, runId, ...row } = record;
  return { ...row, runId: Array.isArray(runId) ? runId[0] : runId };
}
