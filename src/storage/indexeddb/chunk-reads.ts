import { sizeOf } from "../../run/size.js";
import type { PayloadCodec } from "../codec.js";
import type { RunStore } from "../run-store.js";
import { corrupt, isChunk } from "./checks.js";
import { countingRun } from "./heads.js";
import { decodeEntries } from "./payloads.js";
import { PAGE } from "./records.js";
import type { ChunkRecord, Connection, RunRecord } from "./schema.js";

/**
 * The first chunk may begin at or before `afterSeq + 1`: chunks are returned whole, and the reader drops what it has
 * (`sliceChunk`).
 */
export const indexedDBChunks =
  (connection: Connection, codec: PayloadCodec): RunStore["chunks"] =>
  async (threadId, runIndex, afterSeq, limit) => {
    for (let again = false; ; again = true) {
      const { records, isAll } = await readRecords(connection, threadId, runIndex, afterSeq, limit);
      const run = await countingRun(connection, threadId, runIndex);
      if (run === undefined) return [];
      const end = checkSequence(run, records, afterSeq);
      // If the run ended after the chunks were read, there are more. If it had ended before, some are lost.
      if (isAll && run.status !== "running" && end < (run.eventCount ?? 0)) {
        if (again) throw corrupt("chunks", run);
        continue;
      }
      return Promise.all(
        records.map(async (record) => ({ ...record, entries: await decodeEntries(codec, record, run) })),
      );
    }
  };

/** Size of the first page; each further one is twice as large: after a repack, few records hold much. */
const FIRST_PAGE = 8;
/** No more is read than about this much, see `sizeOf`: a reader that stands still holds it in memory (L14). */
const MOST = 2 ** 20;

/** @returns unchecked records, none after an invalid one. `isAll`: there are no more */
async function readRecords(
  connection: Connection,
  threadId: string,
  runIndex: number,
  afterSeq: number,
  limit: number,
): Promise<{ records: ChunkRecord[]; isAll: boolean }> {
  const last = [threadId, runIndex, Infinity];
  const records: ChunkRecord[] = [];
  let next = afterSeq + 1;
  let events = 0;
  let left = limit === Infinity ? Infinity : MOST;
  for (let size = FIRST_PAGE; events < limit; size = Math.min(2 * size, PAGE)) {
    const page = await connection.read(["chunks"], async (tx) => {
      const store = tx.objectStore("chunks");
      // The chunk that holds `next` is the last one that begins at or before it.
      const upTo = IDBKeyRange.bound([threadId, runIndex, 0], [threadId, runIndex, next]);
      const first = await store.openKeyCursor(upTo, "prev");
      return store.getAll(IDBKeyRange.bound(first?.key ?? [threadId, runIndex, 0], last), size);
    });
    const read = records.length;
    for (const record of page) {
      const isFirst = records.length === read;
      if (isChunk(record) && record.firstSeq + record.count <= (isFirst ? next : afterSeq + 1)) continue;
      // A repack has joined it with a record of the previous page; the next call returns the rest.
      if (read > 0 && isFirst && isChunk(record) && record.firstSeq < next) return { records, isAll: false };
      records.push(record);
      events += isChunk(record) ? record.count : Infinity;
      left -= left === Infinity || events >= limit ? 0 : sizeOf(record.entries, left);
      if (events >= limit || left <= 0) return { records, isAll: false };
      next = record.firstSeq + record.count;
    }
    if (page.length < size) return { records, isAll: true };
  }
  return { records, isAll: false };
}

/**
 * Returned chunks are valid, without gap or overlap (L2), and written by this run: with its epoch, except for the end that
 * a host wrote that took the run over, and for what was written before its events were revised.
 *
 * @returns the sequence number after the last event
 */
function checkSequence(run: RunRecord, records: readonly ChunkRecord[], afterSeq: number): number {
  const takenOver = run.status === "broken" || run.status === "stopped" || run.status === "superseded";
  let next = afterSeq + 1;
  let epoch = takenOver || run.revised !== undefined ? 0 : run.epoch;
  for (const [n, record] of records.entries()) {
    const valid =
      isChunk(record) &&
      (n === 0 ? record.firstSeq <= next : record.firstSeq === next) &&
      record.epoch >= epoch &&
      record.epoch <= run.epoch;
    if (!valid) throw corrupt("chunks", { threadId: run.threadId, runIndex: run.runIndex });
    next = record.firstSeq + record.count;
    ({ epoch } = record);
  }
  if (records.length > 0 && run.status !== "running" && next > (run.eventCount ?? 0)) throw corrupt("chunks", run);
  return next;
}
