import { firstOf, hasNoEvents } from "../decisions.js";
import type { ThreadHead } from "../run-store.js";
import { steadily } from "../steadily.js";
import { checkHead, checkRun } from "./checks.js";
import { isCutOff } from "./garbage.js";
import type { Connection, RunRecord } from "./schema.js";

export async function readHead(connection: Connection, threadId: string): Promise<ThreadHead | undefined> {
  return checkHead(await connection.read(["heads"], (tx) => tx.objectStore("heads").get(threadId)));
}

/** @param isGone whether the run does not count any more; then its record is not checked */
export async function readRun(
  connection: Connection,
  threadId: string,
  runIndex: number,
  isGone = (head: ThreadHead | undefined): boolean => runIndex < firstOf(head),
): Promise<RunRecord | undefined> {
  const [head, run] = await connection.read(["heads", "runs"], (tx) =>
    Promise.all([tx.objectStore("heads").get(threadId), tx.objectStore("runs").get([threadId, runIndex])]),
  );
  return isGone(checkHead(head)) ? undefined : checkRun(run);
}

/**
 * The run whose events were just read, if they still count. Called after that read, in a transaction of its own: one over
 * `heads` and bulk stores would block all appends. A run that counts now also counted during the read.
 */
export const countingRun = (
  connection: Connection,
  threadId: string,
  runIndex: number,
): Promise<RunRecord | undefined> => readRun(connection, threadId, runIndex, (head) => hasNoEvents(head, runIndex));

/** Like {@link countingRun}, for what a run left behind. Does not read the run's record, which may be invalid. */
export function endCounts(connection: Connection, threadId: string, runIndex: number): Promise<boolean> {
  return connection.read(["heads", "runs", "meta"], async (tx) => {
    const head = checkHead(await tx.objectStore("heads").get(threadId));
    if (head === undefined || runIndex < firstOf(head) || runIndex >= head.runCount) return false;
    const key = await tx.objectStore("runs").getKey([threadId, runIndex]);
    return key !== undefined || !(await isCutOff(tx, threadId, runIndex));
  });
}

/** A consistent read over several transactions, see {@link steadily}. `read` must ignore what is below `first`. */
export const unlessCut = <T>(
  connection: Connection,
  threadId: string,
  read: (first: number, head: ThreadHead | undefined) => Promise<T>,
): Promise<T> => steadily({ head: (of) => readHead(connection, of) }, threadId, (head) => read(firstOf(head), head));
