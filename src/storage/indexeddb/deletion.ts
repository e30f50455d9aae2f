import type { PayloadCodec } from "../codec.js";
import { firstOf } from "../decisions.js";
import { branchesBefore, cutHead, isAsListed, mayCut, mayDelete, tombstone } from "../deletion-decisions.js";
import type { ListedThread, RunStore, ThreadHead } from "../run-store.js";
import { checkHead, checkRun, isHead, isIndex, isRecord, isThread } from "./checks.js";
import { mark, markAll, sweepThread } from "./garbage.js";
import { readHead } from "./heads.js";
import { readRunsFrom } from "./reads.js";
import { quietly } from "./database-connection.js";
import { refuseEncrypted } from "./keyless.js";
import { encodeDerived, nextEpoch, putDerived, runRange, storable } from "./records.js";
import { KEYS, type Connection, type WriteTransaction } from "./schema.js";
import { anyWaits, waitingRange } from "./waiting-rows.js";

/** One strict transaction writes the tombstone, which hides the rest; that is then deleted in pieces. */
export async function deleteThread(
  connection: Connection,
  threadId: string,
  before?: ThreadHead,
  listed?: ListedThread,
): Promise<boolean> {
  let epoch: number | undefined;
  let hadLeftovers = false;
  const bury = async (tx: WriteTransaction, head: ThreadHead | undefined): Promise<boolean> => {
    // This is a retry: the first try was committed.
    if (head?.deleted === true && head.epoch === epoch) return true;
    const threads = tx.objectStore("threads");
    const [waits, row] = await Promise.all([anyWaits(tx, threadId), threads.get(threadId)]);
    if (listed !== undefined && (waits || row === undefined || !isThread(row) || !isAsListed(row, listed)))
      return false;
    const isNoThread = head === undefined || head.deleted === true;
    if (!isNoThread && !mayDelete(head, before)) return false;
    if (waits) quietly(tx.objectStore("waiting").delete(waitingRange(threadId)));
    if (row !== undefined) quietly(threads.delete(threadId));
    // Also where this is a retry.
    if (isNoThread) return (hadLeftovers ||= waits || row !== undefined);
    epoch = await nextEpoch(tx, head);
    hide(tx, head, epoch);
    return true;
  };
  let deleted = await connection.write(["heads", "threads", "meta", "waiting"], "strict", async (tx) => {
    const record = await tx.objectStore("heads").get(threadId);
    return record !== undefined && isHead(record) ? bury(tx, record) : undefined;
  });
  // A transaction over runs and heads blocks appends: only if the head is lost.
  deleted ??= await connection.write(["heads", "threads", "runs", "meta", "waiting"], "strict", async (tx) => {
    const record = await tx.objectStore("heads").get(threadId);
    return bury(tx, record !== undefined && isHead(record) ? record : await lostHead(tx, threadId, record));
  });
  // Also what an interrupted call left.
  await sweepThread(connection, threadId);
  return deleted;
}

/** Puts a tombstone in the place of the thread's head. The runs below are deleted later. Needs `heads` and `meta`. */
export function hide(tx: WriteTransaction, head: ThreadHead, epoch: number): void {
  quietly(tx.objectStore("heads").put(tombstone(head, epoch)));
  markAll(tx, head, epoch);
}

/** Replaces a head that is invalid or missing, so that the thread's runs, whichever there are, can be deleted. */
async function lostHead(tx: WriteTransaction, threadId: string, record: unknown): Promise<ThreadHead | undefined> {
  const newest = await tx.objectStore("runs").openKeyCursor(runRange(threadId, 0, Infinity), "prev");
  const runIndex = newest?.primaryKey[1];
  if (runIndex === undefined && record === undefined) return undefined;
  const epoch = isRecord(record) && isIndex(record["epoch"]) ? record["epoch"] : 0;
  return { threadId, epoch, runCount: isIndex(runIndex) ? runIndex + 1 : 0, activeRunIndex: -1 };
}

/** First and last of consecutive indexes. */
function pairsOf(runIndexes: readonly number[]): [number, number][] {
  const pairs: [number, number][] = [];
  for (const runIndex of runIndexes) {
    const last = pairs.at(-1);
    if (last?.[1] === runIndex - 1) last[1] = runIndex;
    else pairs.push([runIndex, runIndex]);
  }
  return pairs;
}

/** One strict transaction, which touches no chunk, changes what readers see; what they do not see is deleted in pieces. */
export async function cut(
  connection: Connection,
  codec: PayloadCodec,
  ...[threadId, epoch, base]: Parameters<RunStore["cut"]>
): Promise<number | undefined> {
  const { runIndex } = base;
  const head = await readHead(connection, threadId);
  if (head === undefined || !mayCut(head, runIndex)) return undefined;
  if (head.cut === true && head.first === runIndex) {
    // What an interrupted call left.
    await sweepThread(connection, threadId);
    return 0;
  }
  if (head.epoch !== epoch) return undefined;
  // Runs change with the epoch only: if it is the same below, these are still all of them.
  const above = head.branched === true ? await readRunsFrom(connection, threadId, runIndex + 1) : [];
  const removed = head.branched === true ? branchesBefore(runIndex, above, head.activeRunIndex) : [];
  if (removed === undefined) return undefined;
  const pairs = pairsOf(removed);
  const records = await encodeDerived(codec, threadId, runIndex, {
    messages: base.messages.map((message) => ({ message })),
    rewritten: true,
    state: base.state,
    interrupts: base.interrupts,
  });

  let done: { readonly epoch: number; readonly lost: number } | undefined;
  const stores = ["heads", "threads", "runs", "messages", "states", "meta"] as const;
  const lost = await connection.write([...stores], "strict", async (tx) => {
    await refuseEncrypted(tx, codec, KEYS, [records.state, ...records.messages]);
    const runs = tx.objectStore("runs");
    const [headRecord, runRecord, upToBase, thread] = await Promise.all([
      tx.objectStore("heads").get(threadId),
      runs.get([threadId, runIndex]),
      runs.count(runRange(threadId, firstOf(head), runIndex + 1)),
      tx.objectStore("threads").get(threadId),
    ]);
    const now = checkHead(headRecord);
    // This is a retry: the first try was committed.
    if (done !== undefined && now?.epoch === done.epoch && now.cut === true && now.first === runIndex) return done.lost;
    const run = checkRun(runRecord);
    if (run === undefined || now?.epoch !== epoch || !mayCut(now, runIndex)) return undefined;
    // A run placed beside the path does not change the epoch.
    if (now.runCount !== head.runCount) return undefined;
    const alreadyWithout = head.cut === true ? 1 : 0;
    done = { epoch: await nextEpoch(tx, now), lost: upToBase - alreadyWithout + removed.length };
    quietly(tx.objectStore("heads").put(cutHead(now, done.epoch, runIndex, removed)));
    quietly(runs.put({ ...storable(run), prevRunIndex: null }));
    // How much is left is not known without reading it.
    if (thread !== undefined && isThread(thread)) quietly(tx.objectStore("threads").put({ ...thread, bytes: 0 }));
    for (const [from, to] of pairs) quietly(runs.delete(runRange(threadId, from, to + 1)));
    quietly(tx.objectStore("messages").delete(runRange(threadId, runIndex, runIndex + 1)));
    putDerived(tx, records);
    await mark(tx, threadId, { epoch: done.epoch, below: runIndex, chunksBelow: runIndex + 1, runs: pairs });
    return done.lost;
  });
  await sweepThread(connection, threadId);
  return lost;
}
