import { firstOf, hasNoEvents } from "../decisions.js";
import { checkGarbage, checkHead, corrupt } from "./checks.js";
import type { Connection, ReadTransaction, WriteTransaction } from "./connection.js";
import { quietly, runRange } from "./records.js";
import type { Garbage } from "./schema.js";

/*
 * What a deletion or a cut leaves behind goes in many short transactions, each over one store, so that the appends of
 * other threads come in between. Until it is gone a mark in `meta` tells of it: whoever dies over it has a successor.
 */

/** Records that one transaction deletes at most. */
export const PIECE = 256;

const PREFIX = "garbage:";
const keyOf = (threadId: string): string => PREFIX + threadId;

/** Marks the thread's garbage beside what is marked already. Needs `meta` in the transaction. */
export async function mark(tx: WriteTransaction, threadId: string, garbage: Garbage): Promise<void> {
  const meta = tx.objectStore("meta");
  const before = checkGarbage(await meta.get(keyOf(threadId)), threadId);
  const all: Garbage = {
    epoch: garbage.epoch,
    below: Math.max(garbage.below, before?.below ?? 0),
    chunksBelow: Math.max(garbage.chunksBelow, before?.chunksBelow ?? 0),
    runs: [...(before?.runs ?? []), ...garbage.runs],
  };
  quietly(meta.put(all, keyOf(threadId)));
}

/** A cut took the run off the path; what is left of it is still to be deleted. Needs `meta` in the transaction. */
export async function isCutOff(tx: ReadTransaction, threadId: string, runIndex: number): Promise<boolean> {
  const garbage = checkGarbage(await tx.objectStore("meta").get(keyOf(threadId)), threadId);
  return garbage?.runs.some(([first, last]) => first <= runIndex && runIndex <= last) === true;
}

const BULK = ["chunks", "messages", "states", "runs"] as const;
type Bulk = (typeof BULK)[number];

/** Which records of which stores go. */
function rangesOf(threadId: string, { below, chunksBelow, runs }: Garbage): [Bulk, IDBKeyRange][] {
  const whole: [number, number][] = runs.map(([first, last]) => [first, last + 1]);
  if (below > 0) whole.push([0, below]);
  return [
    ["chunks", runRange(threadId, 0, chunksBelow)],
    ...whole.flatMap(([from, end]) => BULK.map((store): [Bulk, IDBKeyRange] => [store, runRange(threadId, from, end)])),
  ];
}

/** @returns whether there may be more */
function deletePiece(connection: Connection, store: Bulk, range: IDBKeyRange): Promise<boolean> {
  return connection.write([store], "relaxed", async (tx) => {
    const keys = await tx.objectStore(store).getAllKeys(range, PIECE);
    if (keys.length > 0) quietly(tx.objectStore(store).delete(IDBKeyRange.bound(keys[0], keys.at(-1))));
    return keys.length === PIECE;
  });
}

/**
 * What is marked of the thread, where nothing of it counts any more: a mark that says more than the head is not believed.
 * The rows of runs that left the path went with the mark itself.
 */
async function readGarbage(connection: Connection, threadId: string): Promise<Garbage | undefined> {
  return connection.read(["heads", "runs", "meta"], async (tx) => {
    const garbage = checkGarbage(await tx.objectStore("meta").get(keyOf(threadId)), threadId);
    if (garbage === undefined) return undefined;
    const { below, chunksBelow, runs } = garbage;
    const [headRecord, ...counting] = await Promise.all([
      tx.objectStore("heads").get(threadId),
      ...runs.map(([from, to]) => tx.objectStore("runs").getKey(runRange(threadId, from, to + 1))),
    ]);
    const head = checkHead(headRecord);
    const isGarbage =
      head !== undefined &&
      below <= firstOf(head) &&
      hasNoEvents(head, chunksBelow - 1) &&
      runs.every(([, to], n) => to < firstOf(head) || (to < head.runCount && counting[n] === undefined));
    if (!isGarbage) throw corrupt("meta", { threadId });
    return garbage;
  });
}

/** Deletes the thread's garbage, if there is any, and then its mark. */
export async function sweepThread(connection: Connection, threadId: string): Promise<void> {
  const key = keyOf(threadId);
  for (;;) {
    const garbage = await readGarbage(connection, threadId);
    if (garbage === undefined) return;
    for (const [store, range] of rangesOf(threadId, garbage)) {
      while (await deletePiece(connection, store, range));
    }
    // More may have been marked since.
    await connection.write(["meta"], "relaxed", async (tx) => {
      const now = checkGarbage(await tx.objectStore("meta").get(key), threadId);
      if (now?.epoch === garbage.epoch) quietly(tx.objectStore("meta").delete(key));
    });
  }
}

/** Deletes the garbage of all threads. What fails in one does not keep that of the others. */
export async function sweep(connection: Connection): Promise<void> {
  const marks = IDBKeyRange.bound(PREFIX, `${PREFIX}\uffff`);
  const keys = await connection.read(["meta"], (tx) => tx.objectStore("meta").getAllKeys(marks));
  const errors: unknown[] = [];
  for (const key of keys) {
    await sweepThread(connection, key.slice(PREFIX.length)).catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw errors[0];
}
