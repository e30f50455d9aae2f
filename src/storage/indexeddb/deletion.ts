import type { PayloadCodec } from "../codec.js";
import { branchesBefore, cutHead, firstOf, mayCut, tombstone } from "../decisions.js";
import type { CutBase, ThreadHead } from "../run-store.js";
import { checkHead, checkRun, isHead, isIndex, isRecord, isThread } from "./checks.js";
import type { Connection, WriteTransaction } from "./connection.js";
import { mark, sweepThread } from "./garbage.js";
import { readHead } from "./heads.js";
import { readRunsFrom } from "./reads.js";
import { encodeDerived, nextEpoch, putDerived, quietly, runRange, storable } from "./records.js";
import type { ThreadRecord } from "./schema.js";

/** The tombstone stands first, in one strict transaction; from then on nobody sees the rest, which goes in pieces. */
export async function deleteThread(connection: Connection, threadId: string): Promise<boolean> {
  let epoch: number | undefined;
  const bury = async (tx: WriteTransaction, head: ThreadHead | undefined): Promise<boolean> => {
    // From a first try whose end was not heard.
    if (head?.deleted === true && head.epoch === epoch) return true;
    if (head === undefined || head.deleted === true || head.live !== undefined) return false;
    epoch = await nextEpoch(tx, head);
    quietly(tx.objectStore("heads").put(tombstone(head, epoch)));
    quietly(tx.objectStore("threads").delete(threadId));
    await mark(tx, threadId, { epoch, below: head.runCount, chunksBelow: head.runCount, runs: [] });
    return true;
  };
  let deleted = await connection.write(["heads", "threads", "meta"], "strict", async (tx) => {
    const record = await tx.objectStore("heads").get(threadId);
    return record !== undefined && isHead(record) ? bury(tx, record) : undefined;
  });
  // Runs beside heads hold up appends: only where no head says what there is.
  deleted ??= await connection.write(["heads", "threads", "runs", "meta"], "strict", async (tx) => {
    const record = await tx.objectStore("heads").get(threadId);
    return bury(tx, record !== undefined && isHead(record) ? record : await lostHead(tx, threadId, record));
  });
  // Also what an earlier call did not get to.
  await sweepThread(connection, threadId);
  return deleted;
}

/** In place of a head that is not valid, or is not there: a thread of whatever runs there are, so that it can go. */
async function lostHead(tx: WriteTransaction, threadId: string, record: unknown): Promise<ThreadHead | undefined> {
  const newest = await tx.objectStore("runs").openKeyCursor(runRange(threadId, 0, Infinity), "prev");
  const runIndex = newest?.primaryKey[1];
  if (runIndex === undefined && record === undefined) return undefined;
  const epoch = isRecord(record) && isIndex(record["epoch"]) ? record["epoch"] : 0;
  return { threadId, epoch, runCount: isIndex(runIndex) ? runIndex + 1 : 0, activeRunIndex: -1 };
}

/** Neighbours as pairs of the first and the last. */
function pairsOf(runIndexes: readonly number[]): [number, number][] {
  const pairs: [number, number][] = [];
  for (const runIndex of runIndexes) {
    const last = pairs.at(-1);
    if (last?.[1] === runIndex - 1) last[1] = runIndex;
    else pairs.push([runIndex, runIndex]);
  }
  return pairs;
}

/**
 * What is shown of the thread changes in one strict transaction, which touches no chunk; what is not shown any more
 * goes in pieces.
 */
export async function cut(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  epoch: number,
  base: CutBase,
): Promise<number | undefined> {
  const { runIndex } = base;
  const head = await readHead(connection, threadId);
  if (head === undefined || !mayCut(head, runIndex)) return undefined;
  if (head.cut === true && head.first === runIndex) {
    // What an earlier call did not get to.
    await sweepThread(connection, threadId);
    return 0;
  }
  if (head.epoch !== epoch) return undefined;
  // Runs come and go with a new epoch only, so these are still all of them where the head's is the same below.
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
    const runs = tx.objectStore("runs");
    const [headRecord, runRecord, upToBase, thread] = await Promise.all([
      tx.objectStore("heads").get(threadId),
      runs.get([threadId, runIndex]),
      runs.count(runRange(threadId, firstOf(head), runIndex + 1)),
      tx.objectStore("threads").get(threadId),
    ]);
    const now = checkHead(headRecord);
    // From a first try whose end was not heard.
    if (done !== undefined && now?.epoch === done.epoch && now.cut === true && now.first === runIndex) return done.lost;
    const run = checkRun(runRecord);
    if (run === undefined || now?.epoch !== epoch || !mayCut(now, runIndex)) return undefined;
    const alreadyWithout = head.cut === true ? 1 : 0;
    done = { epoch: await nextEpoch(tx, now), lost: upToBase - alreadyWithout + removed.length };
    quietly(tx.objectStore("heads").put(cutHead(now, done.epoch, runIndex, removed)));
    quietly(runs.put({ ...storable(run), prevRunIndex: null }));
    // How much of it goes is not known without reading it.
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

/** Both kinds of threads are read from the oldest on, more of them as long as pinned and live ones stand in the way. */
export async function threadsBeyond(connection: Connection, keep: number): Promise<string[]> {
  const live = new Set(await connection.read(["heads"], (tx) => tx.objectStore("heads").index("holder").getAllKeys()));
  // Of a row that is not valid nobody knows whether somebody pinned it.
  const mayGo = (record: ThreadRecord): boolean =>
    isThread(record) && record.pinned === 0 && !live.has(record.threadId);
  const byTime = (a: ThreadRecord, b: ThreadRecord): number =>
    a.updatedAt - b.updatedAt || (a.threadId < b.threadId ? -1 : 1);
  return connection.read(["threads"], async (tx) => {
    const byAge = tx.objectStore("threads").index("updatedAt");
    const kinds = [0, 1].map((kind) => IDBKeyRange.bound([kind, -Infinity], [kind, Infinity]));
    const counts = await Promise.all(kinds.map((kind) => byAge.count(kind)));
    const all = counts.reduce((sum, count) => sum + count, 0);
    const tooMany = all - keep;
    if (tooMany <= 0) return [];
    for (let read = tooMany + live.size; ; read *= 2) {
      const [shown = [], archived = []] = await Promise.all(kinds.map((kind) => byAge.getAll(kind, read)));
      // Sure are those that no unread one can be older than.
      const oldest = [...shown, ...archived].sort(byTime).slice(0, read).filter(mayGo);
      if (oldest.length >= tooMany || read >= all) return oldest.slice(0, tooMany).map(({ threadId }) => threadId);
    }
  });
}
