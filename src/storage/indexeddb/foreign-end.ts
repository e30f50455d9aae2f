import type { OpenConstructs } from "../../run/types.js";
import type { PayloadCodec } from "../codec.js";
import { endedRun, freed, takenOver, withoutUnderived } from "../decisions.js";
import type { RunStore } from "../run-store.js";
import { checkHead, checkRun, corrupt, isChunk, isIndex, isRun } from "./checks.js";
import { quietly } from "./database-connection.js";
import {
  chunksFrom,
  encodeDerived,
  nextEpoch,
  placeOfClosing,
  putDerived,
  storable,
  toRunRow,
  withKeys,
} from "./records.js";
import { refuseEncrypted } from "./keyless.js";
import { KEYS, type Connection, type RunRecord, type WriteTransaction } from "./schema.js";
import { putRecovery } from "./waiting-rows.js";
import { scopeOf, touchThread } from "./writes.js";

/**
 * The end of a run whose holder is gone: first in the log, without reading its content (L9); readers derive the rest.
 */
export const indexedDBForeignEnds = (
  connection: Connection,
  codec: PayloadCodec,
): Pick<RunStore, "settleForeign" | "derive"> => ({
  settleForeign: async (threadId, runId, status, endedAt, build, recovery) => {
    let ended: RunRecord | undefined;
    let unreadable: number | undefined;
    const stores = scopeOf(["heads", "threads", "runs", "chunks", "meta"], recovery !== undefined);
    await connection.write(stores, "strict", async (tx) => {
      const runs = tx.objectStore("runs");
      const head = checkHead(await tx.objectStore("heads").get(threadId));
      if (head?.live?.runId !== runId) {
        // If this is a retry whose first try was committed, `ended` is set. Somebody else may have ended it, too.
        const now = ended && (await runs.get([threadId, ended.runIndex]));
        if (now?.epoch !== ended?.epoch || now?.status !== status) ended = undefined;
        return;
      }
      const { runIndex } = head.live;
      const [run, place, epoch] = await Promise.all([
        runs.get([threadId, runIndex]),
        endOfLog(tx, threadId, runIndex),
        nextEpoch(tx, head),
      ]);
      if (run !== undefined && isRun(run) && run.status !== "running") {
        // A run ends once (L7): only the head missed it.
        ended = run;
        quietly(tx.objectStore("heads").put({ ...freed(head), epoch }));
        return;
      }
      quietly(tx.objectStore("heads").put(takenOver(head, epoch, runIndex)));
      if (run === undefined || !isRun(run)) {
        unreadable = runIndex;
        return;
      }
      // Made of nothing but data outside of the payloads: a codec must not run inside the transaction.
      const chunk = build(toRunRow(run), place.nextSeq, place.open);
      const next = recovery?.(toRunRow(run), place.nextSeq, place.open);
      ended = { ...endedRun(storable(run), status, endedAt, chunk), epoch };
      quietly(tx.objectStore("chunks").put({ ...chunk, epoch }));
      quietly(runs.put(ended));
      if (next !== undefined) await putRecovery(tx, next);
      await touchThread(tx, threadId, endedAt, status);
    });
    // The thread is free and can be deleted; nothing is known of the run.
    if (unreadable !== undefined) throw corrupt("runs", { threadId, runIndex: unreadable });
    return ended && toRunRow(ended);
  },

  derive: async (threadId, runIndex, runClosing, derived) => {
    const closing = await codec.encode(runClosing, placeOfClosing(threadId, runIndex));
    const records = await encodeDerived(codec, threadId, runIndex, derived);
    await connection.write(withKeys("heads", "runs", "messages", "states"), "relaxed", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, [closing, records.state, ...records.messages]);
      const [headRecord, runRecord] = await Promise.all([
        tx.objectStore("heads").get(threadId),
        tx.objectStore("runs").get([threadId, runIndex]),
      ]);
      const head = checkHead(headRecord);
      const run = checkRun(runRecord);
      if (run === undefined || head?.underived?.includes(runIndex) !== true) return;
      putDerived(tx, records);
      quietly(tx.objectStore("runs").put({ ...storable(run), closing }));
      quietly(tx.objectStore("heads").put(withoutUnderived(head, (other) => other === runIndex)));
    });
  },
});

/**
 * Where to write the end of a run. An invalid chunk must not wedge the thread (L7): the end is written behind it, and it is
 * left as it is, so that its readers are told. Which constructs it left open is not known.
 */
async function endOfLog(
  tx: WriteTransaction,
  threadId: string,
  runIndex: number,
): Promise<{ readonly nextSeq: number; readonly open: OpenConstructs | undefined }> {
  let cursor = await tx.objectStore("chunks").openCursor(chunksFrom({ threadId, runIndex }, 0), "prev");
  for (; cursor !== null; cursor = await cursor.continue()) {
    const { value: chunk } = cursor;
    if (isChunk(chunk)) return { nextSeq: chunk.firstSeq + chunk.count, open: chunk.open };
    const [, , firstSeq] = cursor.primaryKey;
    // Invalid numbers are skipped.
    if (isIndex(firstSeq)) return { nextSeq: firstSeq + 1, open: undefined };
  }
  return { nextSeq: 0, open: undefined };
}
