import { beganAnew, firstOf, withoutUnderived } from "./decisions.js";
import type { ListedThread, ThreadHead } from "./run-store.js";

/*
 * Decisions on deletions and cuts, common to all stores. Loaded when something is deleted.
 */

/** Whether the head allows the deletion of its thread, asked for by whoever knew it as `before`. */
export const mayDelete = (head: ThreadHead | undefined, before: ThreadHead | undefined): head is ThreadHead =>
  head !== undefined && head.deleted !== true && head.live === undefined && !beganAnew(head, before);

/** A limit may still remove the thread. */
export const isAsListed = (row: ListedThread & { readonly pinned: boolean | 0 | 1 }, listed: ListedThread): boolean =>
  !row.pinned && row.updatedAt === listed.updatedAt && row.runCount === listed.runCount;

/** What remains of a deleted thread. The new epoch invalidates what was read before. */
export const tombstone = ({ threadId, runCount }: ThreadHead, epoch: number): ThreadHead => ({
  threadId,
  epoch,
  runCount,
  activeRunIndex: -1,
  first: runCount,
  deleted: true,
});

/** Whether the head allows a cut before `runIndex` (a tombstone does not: it has no active run). */
export const mayCut = (head: ThreadHead, runIndex: number): boolean =>
  head.live === undefined &&
  runIndex >= firstOf(head) &&
  runIndex <= head.activeRunIndex &&
  head.underived?.includes(runIndex) !== true;

/** The new epoch invalidates what was read before: it refers to runs that are gone. */
export const cutHead = (head: ThreadHead, epoch: number, runIndex: number, removed: readonly number[]): ThreadHead => {
  const gone = new Set(removed);
  const kept = withoutUnderived(head, (underived) => underived < runIndex || gone.has(underived));
  return { ...kept, epoch, first: runIndex, cut: true };
};

/**
 * The runs above `runIndex` that do not descend from it: branches that left the path before.
 *
 * @param above all runs above `runIndex`, in order
 * @returns undefined if the active run does not descend from it either
 */
export function branchesBefore(
  runIndex: number,
  above: readonly { readonly runIndex: number; readonly prevRunIndex: number | null }[],
  activeRunIndex: number,
): number[] | undefined {
  const passing = new Set([runIndex]);
  const removed: number[] = [];
  for (const run of above) {
    if (run.prevRunIndex !== null && passing.has(run.prevRunIndex)) passing.add(run.runIndex);
    else removed.push(run.runIndex);
  }
  return passing.has(activeRunIndex) ? removed : undefined;
}
