import type { PayloadCodec } from "../codec.js";
import type { Chunk } from "../../run/types.js";
import type { Derived, RunRow } from "../run-store.js";
import type { WriteTransaction } from "./connection.js";
import type { ChunkRecord, MessageRecord, RunRecord, StateRecord } from "./schema.js";

const EPOCH = "epoch";

/** A failed request of a transaction is told by the transaction; unhandled it would be reported a second time. */
export const quietly = (request: Promise<unknown>): void => void request.catch(() => undefined);

/**
 * Keys of runs from the first up to, but not including, the second, in any of the stores whose keys begin with thread
 * and run. There must be room for one.
 */
export const runRange = (threadId: string, from: number, end: number): IDBKeyRange =>
  IDBKeyRange.bound([threadId, from], [threadId, end], false, true);

/** Needs `meta` in the transaction. */
export async function nextEpoch(tx: WriteTransaction): Promise<number> {
  const meta = tx.objectStore("meta");
  const epoch = (Number(await meta.get(EPOCH)) || 0) + 1;
  quietly(meta.put(epoch, EPOCH));
  return epoch;
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
    derived.messages.map(async ({ message, after }, n) => ({
      threadId,
      runIndex,
      n,
      messageId: message.id,
      ...(after !== undefined && { after }),
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

export function toRunRow(record: RunRecord): RunRow {
  const { input: _input, closing: _closing, ...row } = record;
  return row;
}
