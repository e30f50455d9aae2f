import type { OpenConstructs, SettledStatus } from "../../run/types.js";
import type { PayloadCodec } from "../codec.js";
import { freed, withoutUnderived } from "../decisions.js";
import type { BuildForeignEnd, Derived, RunClosing, RunRow } from "../run-store.js";
import { checkHead, checkRun, corrupt, isChunk, isIndex, isRun } from "./checks.js";
import type { Connection, WriteTransaction } from "./connection.js";
import { encodeDerived, nextEpoch, putDerived, quietly, storable, toRunRow } from "./records.js";
import type { RunRecord } from "./schema.js";
import { touchThread } from "./writes.js";

/*
 * The end of a run whose holder is gone: first in the log, without a look at its content; what it left behind is added
 * by whoever reads it.
 */

export async function settleForeign(
  connection: Connection,
  threadId: string,
  runId: string,
  status: SettledStatus,
  endedAt: number,
  build: BuildForeignEnd,
): Promise<RunRow | undefined> {
  let ended: RunRecord | undefined;
  let unreadable: number | undefined;
  await connection.write(["heads", "threads", "runs", "chunks", "meta"], "strict", async (tx) => {
    const runs = tx.objectStore("runs");
    const head = checkHead(await tx.objectStore("heads").get(threadId));
    if (head?.live?.runId !== runId) {
      // `ended` is from a first try whose end was not heard; unless somebody else did it in between.
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
    const underived = [...(head.underived ?? []), runIndex];
    if (run === undefined || !isRun(run)) {
      unreadable = runIndex;
      quietly(tx.objectStore("heads").put({ ...freed(head), epoch, underived }));
      return;
    }
    if (run.status !== "running") {
      // A run ends once (L7): only the head does not know of it.
      ended = run;
      quietly(tx.objectStore("heads").put({ ...freed(head), epoch }));
      return;
    }
    quietly(tx.objectStore("heads").put({ ...freed(head), epoch, underived }));
    // What the end is made of stands outside of the payloads, so no codec is needed inside the transaction.
    const chunk = build(toRunRow(run), place.nextSeq, place.open);
    const eventCount = chunk.firstSeq + chunk.count;
    ended = { ...storable(run), status, epoch, endedAt, eventCount };
    quietly(tx.objectStore("chunks").put({ ...chunk, epoch }));
    quietly(runs.put(ended));
    await touchThread(tx, threadId, endedAt, status, eventCount);
  });
  // The thread is free, so that it can be deleted; of the run nothing can be said.
  if (unreadable !== undefined) throw corrupt("runs", { threadId, runIndex: unreadable });
  return ended && toRunRow(ended);
}

/**
 * Where the end of a run is written. No thread is wedged by a chunk that is not valid (L7): the end is written after it,
 * and it is left as it is, so that whoever reads it is told. What such a chunk left open is not known.
 */
async function endOfLog(
  tx: WriteTransaction,
  threadId: string,
  runIndex: number,
): Promise<{ readonly nextSeq: number; readonly open: OpenConstructs | undefined }> {
  const all = IDBKeyRange.bound([threadId, runIndex, 0], [threadId, runIndex, Infinity]);
  for (
    let cursor = await tx.objectStore("chunks").openCursor(all, "prev");
    cursor !== null;
    cursor = await cursor.continue()
  ) {
    const { value: chunk } = cursor;
    if (isChunk(chunk)) return { nextSeq: chunk.firstSeq + chunk.count, open: chunk.open };
    const [, , firstSeq] = cursor.primaryKey;
    // Numbers that no run has are not among those that are used here.
    if (isIndex(firstSeq)) return { nextSeq: firstSeq + 1, open: undefined };
  }
  return { nextSeq: 0, open: undefined };
}

export async function derive(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
  runClosing: RunClosing,
  derived: Derived,
): Promise<void> {
  const closing = await codec.encode(runClosing);
  const records = await encodeDerived(codec, threadId, runIndex, derived);
  await connection.write(["heads", "runs", "messages", "states"], "relaxed", async (tx) => {
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
}
