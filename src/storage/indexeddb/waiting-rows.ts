import type { ClaimRequest } from "../run-store.js";
import { positionAtFront, turnOf, type RecoveryWaiting, type Turn } from "../waiting.js";
import { isRecord, isText } from "./checks.js";
import { quietly } from "./database-connection.js";
import type { ReadTransaction, WriteTransaction } from "./schema.js";

/*
 * What claims, ends and deletions of runs do to those that wait, in their own transactions, which have `waiting` in their
 * scope only then.
 */

/** The keys of a thread's waiting runs. */
export const waitingRange = (threadId: string): IDBKeyRange =>
  IDBKeyRange.bound([threadId, -Infinity], [threadId, Infinity]);

/** Whether a run may start by those that wait; if so, it waits no more. */
export async function takeTurn(tx: WriteTransaction, request: ClaimRequest): Promise<Turn> {
  const { threadId, runId } = request;
  const store = tx.objectStore("waiting");
  const key = await store.index("runId").getKey([threadId, runId]);
  let first = await store.openCursor(waitingRange(threadId));
  // One whose id cannot be read can be neither started nor cancelled: it must not keep the others waiting for good.
  while (first !== null && !isNamed(first.value)) first = await first.continue();
  const turn = turnOf(request, key !== undefined, first?.value.runId);
  if (turn === "first" && key !== undefined) quietly(store.delete(key));
  return turn;
}

/** A run that is in the log waits no more. */
export async function dropWaiting(tx: WriteTransaction, { threadId, runId }: ClaimRequest): Promise<void> {
  const store = tx.objectStore("waiting");
  const key = await store.index("runId").getKey([threadId, runId]);
  if (key !== undefined) quietly(store.delete(key));
}

const isNamed = (record: unknown): boolean => isRecord(record) && isText(record["runId"]);

/** Adds a run that goes on with a broken one, unless it is there. */
export async function putRecovery(tx: WriteTransaction, recovery: RecoveryWaiting): Promise<void> {
  const { threadId, runId } = recovery;
  const store = tx.objectStore("waiting");
  const [there, first] = await Promise.all([
    store.index("runId").getKey([threadId, runId]),
    store.openKeyCursor(waitingRange(threadId)),
  ]);
  if (there === undefined) quietly(store.put({ ...recovery, position: positionAtFront(first?.primaryKey[1]) }));
}

/** Whether runs wait in the thread. */
export const anyWaits = async (tx: ReadTransaction | WriteTransaction, threadId: string): Promise<boolean> =>
  (await tx.objectStore("waiting").getKey(waitingRange(threadId))) !== undefined;
