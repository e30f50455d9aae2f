import { firstOf, hasNoEvents } from "../decisions.js";
import type { ThreadHead } from "../run-store.js";
import { checkGarbage, checkHead, corrupt } from "./checks.js";
import { quietly } from "./database-connection.js";
import { runRange } from "./records.js";
import type { Connection, Garbage, ReadTransaction, WriteTransaction } from "./schema.js";

/*
 * Records of deleted and cut threads are deleted in many short transactions, each over one store, so that appends of other
 * threads are not blocked. Until then a mark in `meta` names them: if the host dies, another one continues.
 */

/** Most records that one transaction deletes. */
export const PIECE = 256;

const PREFIX = "garbage:";
/** What comes after all keys with that prefix. */
const END = "garbage;";
const keyOf = (threadId: string): string => PREFIX + threadId;

/** Marks all runs of a thread. What was marked before is among them, also if that mark is invalid. Needs `meta`. */
export function markAll(tx: WriteTransaction, { threadId, runCount }: ThreadHead, epoch: number): void {
  const meta = tx.objectStore("meta");
  const all: Garbage = { epoch, below: runCount, chunksBelow: runCount, runs: [] };
  quietly(runCount === 0 ? meta.delete(keyOf(threadId)) : meta.put(all, keyOf(threadId)));
}

/** Adds to the thread's mark. Needs `meta` in the transaction. */
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

/** Whether a cut removed the run, and records of it may be left. Needs `meta` in the transaction. */
export async function isCutOff(tx: ReadTransaction, threadId: string, runIndex: number): Promise<boolean> {
  const garbage = checkGarbage(await tx.objectStore("meta").get(keyOf(threadId)), threadId);
  return garbage?.runs.some(([first, last]) => first <= runIndex && runIndex <= last) === true;
}

const BULK = ["chunks", "messages", "states", "runs"] as const;
type Bulk = (typeof BULK)[number];

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
 * The thread's mark, if nothing in it counts any more: the head has precedence over a mark. A cut deletes the rows of the
 * runs that it removes in the transaction that writes the mark.
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

/** Deletes the thread's garbage, if any, and then its mark. */
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

/** Deletes the garbage of all threads; throws the first error after the last thread. */
export async function sweep(connection: Connection): Promise<void> {
  const marks = IDBKeyRange.bound(PREFIX, END, false, true);
  const keys = await connection.read(["meta"], (tx) => tx.objectStore("meta").getAllKeys(marks));
  const errors: unknown[] = [];
  for (const key of keys) {
    await sweepThread(connection, key.slice(PREFIX.length)).catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw errors[0];
}
