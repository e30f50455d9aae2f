import { RunnerError } from "../../run/errors.js";
import { joinChunks, lastSeq } from "../../run/pack.js";
import type { Chunk } from "../../run/types.js";
import { isSealed, type PayloadCodec } from "../codec.js";
import { joinGroups } from "../repacking.js";
import type { RunStore } from "../run-store.js";
import { isChunk } from "./checks.js";
import { countingRun } from "./heads.js";
import { decodeEntries } from "./payloads.js";
import { quietly } from "./database-connection.js";
import { chunksFrom, encodeChunk } from "./records.js";
import type { Connection, RunRecord } from "./schema.js";

/** Most records that one transaction replaces: appends of all threads wait for it. A second pass joins the results. */
export const REPACK_PIECE = 64;

export async function repack(
  connection: Connection,
  codec: PayloadCodec,
  ...[threadId, runIndex, signal]: Parameters<RunStore["repack"]>
): Promise<void> {
  for (let joined = true; joined;) {
    joined = false;
    const run = await countingRun(connection, threadId, runIndex);
    if (run === undefined || run.status === "running") return;
    for (let next = 0; ;) {
      if (signal?.aborted === true) return;
      const chunks = await readPiece(connection, codec, run, next);
      if (chunks === undefined) return;
      for (const group of joinGroups(chunks)) {
        if (group.length === 1) continue;
        if (!(await replace(connection, codec, group))) return;
        joined = true;
      }
      if (chunks.length < REPACK_PIECE) break;
      next = lastSeq(chunks.at(-1)!) + 1;
    }
  }
}

/** @returns the records from event `next` on; undefined if one is invalid, which is reported to readers of the run */
async function readPiece(
  connection: Connection,
  codec: PayloadCodec,
  run: RunRecord,
  next: number,
): Promise<Chunk[] | undefined> {
  const range = chunksFrom(run, next);
  const records = await connection.read(["chunks"], (tx) => tx.objectStore("chunks").getAll(range, REPACK_PIECE));
  const chunks: Chunk[] = [];
  let seq = next;
  try {
    for (const record of records) {
      if (!isChunk(record) || record.firstSeq !== seq) return undefined;
      chunks.push({ ...record, entries: await decodeEntries(codec, record, run) });
      seq += record.count;
    }
    return chunks;
  } catch (error) {
    if (RunnerError.is(error, "corrupt-record")) return undefined;
    throw error;
  }
}

/** @returns false, nothing done, if the records have changed since the read: deleted, cut off or joined by another host */
async function replace(connection: Connection, codec: PayloadCodec, group: readonly Chunk[]): Promise<boolean> {
  const joined = joinChunks(group);
  const { threadId, runIndex, firstSeq } = joined;
  const last = group.at(-1)!;
  const record = await encodeChunk(codec, joined);
  const end = [threadId, runIndex, lastSeq(joined) + 1];
  const range = IDBKeyRange.bound([threadId, runIndex, firstSeq], end, false, true);
  return connection.write(["chunks"], "relaxed", async (tx) => {
    const store = tx.objectStore("chunks");
    const [keys, first, now] = await Promise.all([
      store.getAllKeys(range, group.length + 1),
      store.get([threadId, runIndex, firstSeq]),
      store.get([threadId, runIndex, last.firstSeq]),
    ]);
    // Somebody encrypts them now, in their order: this host does not have the key.
    if (codec.isPlain === true && (isSealed(first?.entries) || isSealed(now?.entries))) return false;
    // Records never overlap: if the keys and the last record are the same, all are.
    const isSame =
      keys.length === group.length &&
      keys.every(([, , key], n) => key === group[n]!.firstSeq) &&
      now?.count === last.count &&
      now.epoch === last.epoch;
    if (!isSame) return false;
    quietly(store.delete(range));
    quietly(store.put(record));
    return true;
  });
}
