import { firstOf, hasNoEvents } from "../decisions.js";
import type { ThreadHead } from "../run-store.js";
import { checkHead, checkRun, isHead } from "./checks.js";
import { isCutOff } from "./garbage.js";
import type { Connection } from "./connection.js";
import type { RunRecord } from "./schema.js";

export async function readHead(connection: Connection, threadId: string): Promise<ThreadHead | undefined> {
  return checkHead(await connection.read(["heads"], (tx) => tx.objectStore("heads").get(threadId)));
}

export async function readLiveHeads(connection: Connection): Promise<ThreadHead[]> {
  const heads = await connection.read(["heads"], (tx) => tx.objectStore("heads").index("holder").getAll());
  // One that is not valid is told to whoever reads its thread; it must not hide all others.
  return heads.filter(isHead);
}

/**
 * The run of which events were just read, where they count. It is asked after the read and in a transaction of its
 * own: `heads` in one scope with bulk stores would hold up all appends, and rows of a run that counts now were all there
 * before.
 */
export async function countingRun(
  connection: Connection,
  threadId: string,
  runIndex: number,
): Promise<RunRecord | undefined> {
  const [headRecord, run] = await connection.read(["heads", "runs"], (tx) =>
    Promise.all([tx.objectStore("heads").get(threadId), tx.objectStore("runs").get([threadId, runIndex])]),
  );
  const head = checkHead(headRecord);
  return hasNoEvents(head, runIndex) ? undefined : checkRun(run);
}

/** What was just read of the end of a run counts. Asked as {@link countingRun}; the run's own record is not read: it may not be valid. */
export function endCounts(connection: Connection, threadId: string, runIndex: number): Promise<boolean> {
  return connection.read(["heads", "runs", "meta"], async (tx) => {
    const head = checkHead(await tx.objectStore("heads").get(threadId));
    if (head === undefined || runIndex < firstOf(head) || runIndex >= head.runCount) return false;
    const key = await tx.objectStore("runs").getKey([threadId, runIndex]);
    return key !== undefined || !(await isCutOff(tx, threadId, runIndex));
  });
}

/**
 * Reads what takes several transactions as it was at one time: again, where the thread was cut or deleted meanwhile,
 * since what was read then, or how it failed, says nothing. `read` leaves out what stands below `first`.
 */
export async function unlessCut<T>(
  connection: Connection,
  threadId: string,
  read: (first: number, head: ThreadHead | undefined) => Promise<T>,
): Promise<T> {
  let head = await readHead(connection, threadId);
  for (;;) {
    const reading = read(firstOf(head), head);
    await reading.catch(() => undefined);
    const now = await readHead(connection, threadId);
    if (firstOf(now) === firstOf(head) && now?.cut === head?.cut) return reading;
    head = now;
  }
}
