import type { PayloadCodec } from "../codec.js";
import { readable } from "../../run/readable.js";
import type { Chunk } from "../../run/types.js";
import type { Derived, RunRow, ThreadHead } from "../run-store.js";
import { isHead, isIndex, isRecord } from "./checks.js";
import type { ReadTransaction, WriteTransaction } from "./connection.js";
import { EPOCH, type ChunkRecord, type MessageRecord, type RunRecord, type StateRecord } from "./schema.js";

/** Rows fetched in one transaction: a long read would make the appends of all threads wait behind it. */
export const PAGE = 256;

/** A failed request of a transaction is told by the transaction; unhandled it would be reported a second time. */
export const quietly = (request: Promise<unknown>): void => void request.catch(() => undefined);

/**
 * Keys of runs from the first up to, but not including, the second, in any of the stores whose keys begin with thread
 * and run. There must be room for one.
 */
export const runRange = (threadId: string, from: number, end: number): IDBKeyRange =>
  IDBKeyRange.bound([threadId, from], [threadId, end], false, true);

/**
 * A new epoch for what is going to be written to the thread of `head`. Where the counter is lost, or has fallen behind,
 * it is found again: the newest epoch of each thread stands in its head. Needs `meta` and `heads` in the transaction.
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
 * The records of a range of `messages`. One that reads as null is told as a record of its place without content, which is
 * not valid: whoever reads it learns whose run it is of.
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

export async function encodeChunk(codec: PayloadCodec, chunk: Chunk): Promise<ChunkRecord> {
  return { ...chunk, entries: await codec.encode(chunk.entries) };
}

export async function encodeDerived(
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
  derived: Derived,
): Promise<{ messages: MessageRecord[]; state: StateRecord }> {
  const messages: MessageRecord[] = await Promise.all(
    derived.messages.map(async ({ message, after, addedBy }, n) => ({
      threadId,
      runIndex,
      n,
      messageId: message.id,
      ...(after !== undefined && { after }),
      ...(addedBy !== undefined && { addedBy }),
      ...(derived.rewritten && n === 0 && { resets: 1 as const }),
      message: await codec.encode(message),
    })),
  );
  if (derived.rewritten && messages.length === 0) messages.push({ threadId, runIndex, n: 0, resets: 1 });
  const state: StateRecord = {
    threadId,
    runIndex,
    state: await codec.encode(derived.state),
    interrupts: await codec.encode(derived.interrupts),
  };
  return { messages, state };
}

export function putDerived(tx: WriteTransaction, records: { messages: MessageRecord[]; state: StateRecord }): void {
  for (const record of records.messages) quietly(tx.objectStore("messages").put(record));
  quietly(tx.objectStore("states").put(records.state));
}

/**
 * A row that was read, to be written again: what an older build stored in it may be too deep for the stack here, and
 * would keep the run from its end (L7).
 */
export const storable = (record: RunRecord): RunRecord => ({
  ...record,
  // A codec may make bytes of them.
  input: readable(record.input, true),
  ...(record.closing !== undefined && { closing: readable(record.closing, true) }),
});

export function toRunRow(record: RunRecord): RunRow {
  const { input: _input, closing: _closing, runId, ...row } = record;
  return { ...row, runId: Array.isArray(runId) ? runId[0] : runId };
}
