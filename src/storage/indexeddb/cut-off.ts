import { checkGarbage } from "./checks.js";
import type { ReadTransaction } from "./schema.js";

/** Keys in `meta` of the marks that garbage.ts writes begin with it. */
export const GARBAGE = "garbage:";

export const garbageKey = (threadId: string): string => GARBAGE + threadId;

/** Whether a cut removed the run, and records of it may be left. Needs `meta` in the transaction. */
export async function isCutOff(tx: ReadTransaction, threadId: string, runIndex: number): Promise<boolean> {
  const garbage = checkGarbage(await tx.objectStore("meta").get(garbageKey(threadId)), threadId);
  return garbage?.runs.some(([first, last]) => first <= runIndex && runIndex <= last) === true;
}
