import { unlessDamaged } from "../runner/history/run-log.js";
import type { RunnerParts } from "../runner/parts.js";
import { messageIn, type SpaceMessage } from "./messages.js";
import { changedHere } from "./record-changes.js";
import type { Restoring } from "./restoring.js";
import type { Space, SpaceEntry } from "./space.js";
import type { ThreadRecord } from "./sync-database.js";
import type { ThreadEntries } from "./thread-entries.js";
import { NO_ENTRIES } from "./thread-state.js";
import { isAheadOf } from "./compaction.js";
import { wholeThread } from "./whole-thread.js";

/** How long a thread whose entries were lost rests before it is read again, in ms. */
const REST_MS = 1_000;

interface Context {
  readonly space: Pick<Space, "entries">;
  readonly parts: RunnerParts;
}

/** Everything that is in the space comes (back). @returns the seq up to which it was to be read */
export async function restoreThread(
  context: Context,
  thread: ThreadEntries,
  restoring: Restoring,
  signal: AbortSignal,
): Promise<number> {
  const { parts } = context;
  let { from } = restoring;
  // What fails begins anew.
  restoring.from = undefined;
  if (from === undefined) thread.record = from = await begin(context, thread, restoring, signal);
  const { why, told } = restoring;
  const isLost = why === "lost";
  let upTo: number;
  // Of a run that goes on, more comes meanwhile: that is read after what was read.
  do {
    ({ upTo } = restoring);
    const place = { key: thread.record.key, upTo, after: thread.record.state.last };
    for await (const entry of wholeThread(context, place, signal)) {
      const message = messageIn(entry, from.threadId);
      if (isJoinedAhead(entry, message, thread.record.state.last)) {
        await thread.arrivals.giveUp(told);
        thread.read.clear();
        thread.record = from;
      }
      await thread.takeNow(entry, message);
    }
  } while (restoring.upTo > upTo && thread.record.state.last < restoring.upTo && !signal.aborted);
  restoring.from = from;
  if (thread.runsAre === "unread") thread.runsAre = "read";
  // What people have done here is told once more.
  const { lastRun, deleted, active } = thread.record.state;
  const { activeIs, deleting, state: before } = restoring.before;
  if (!isLost) {
    if (deleting !== undefined && deleting === lastRun) {
      // None of what others have of it comes back.
      await thread.arrivals.giveUp(told);
      thread.note({ deleting });
    }
    // What this device adds is in the space once more, and says nothing about the log.
    thread.endIs(active === before.active ? activeIs : undefined);
  }
  if (!isLost) return upTo;
  const { threadId } = from;
  // It may have been deleted since it began to be read.
  if ((await parts.store.head(threadId))?.deleted === true) {
    if (lastRun > 0 && deleted !== true) thread.note({ deleting: lastRun });
  } else thread.endIs(before.active === null ? undefined : "seen");
  return upTo;
}

/** From its first entry on: nothing is known of it. @returns the record for that */
async function begin(
  { parts }: Context,
  thread: ThreadEntries,
  restoring: Restoring,
  signal: AbortSignal,
): Promise<ThreadRecord> {
  if (!restoring.isBegun) restoring.before = thread.asInLog(restoring.before);
  restoring.isBegun = true;
  const { why, told } = restoring;
  const { key, threadId, unread, revives, listed } = restoring.before;
  const isLost = why === "lost";
  // Whoever changes each entry must not keep this device busy.
  if (isLost) await parts.clock.after(REST_MS, signal);
  const reads = [parts.store.head(threadId), parts.store.thread(threadId).catch(unlessDamaged)] as const;
  const [head, row] = await Promise.all(reads);
  await thread.taking;
  restoring.upTo = Math.max(restoring.upTo, thread.record.state.last);
  await thread.arrivals.giveUp(told);
  thread.added.forget(Infinity);
  thread.read.clear();
  restoring.untold = changedHere(row, listed);
  return {
    key,
    threadId,
    state: NO_ENTRIES,
    sent: head?.first ?? 0,
    first: head?.first ?? 0,
    ...(unread === true && { unread }),
    ...(isLost ? { revives: [] } : why === "unread" && revives && { revives }),
  };
}

/** It stands for entries that were not read, behind some that were: they were joined meanwhile. */
function isJoinedAhead({ after }: SpaceEntry, message: SpaceMessage | undefined, last: number): boolean {
  return message?.type === "whole" && last > 0 && isAheadOf(last, message, after);
}
