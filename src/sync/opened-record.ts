import { unlessDamaged } from "../runner/history/run-log.js";
import { hasBegunAnew } from "./log-changes.js";
import type { SpaceList } from "./space-list.js";
import type { ThreadRecord } from "./sync-database.js";
import type { SyncHost } from "./sync-host.js";
import { NO_ENTRIES } from "./thread-state.js";

/** What is known of a thread that is opened: as it was saved, but for what hosts of this device have done since. */
export async function openedRecord(
  { parts, database, self, revives }: SyncHost,
  list: SpaceList,
  key: string,
  threadId: string,
): Promise<ThreadRecord> {
  const known = await database.thread(key);
  // One damaged record must not keep other threads (L19): what is done in its thread fails for itself.
  const headNow = () => parts.store.head(threadId).catch(unlessDamaged);
  // Of entries that say nothing, only the place of the last one is known.
  if (known === undefined || known.threadId === "") {
    const head = await headNow();
    const { state = NO_ENTRIES } = known ?? {};
    const isLost = revives() && head !== undefined;
    return { key, threadId, state, sent: 0, first: head?.first ?? 0, ...(isLost && { revives: [] }) };
  }
  const { state, deleting = state.lastRun } = known;
  // It has left this device, and that is not saved.
  const isAbsent = await list.hasRow(threadId);
  // It may have been deleted while nobody looked, and have begun anew.
  const mayBeGone = !isAbsent && state.lastRun > 0 && state.deleted !== true;
  const head = mayBeGone ? await headNow() : undefined;
  const isAnew = known.unread !== true && (await hasBegunAnew({ parts, self: self() }, known, head));
  const isDeleted = head?.deleted === true || isAnew;
  const its: ThreadRecord = { ...known, threadId, ...(isDeleted && { deleting, first: head?.first ?? 0 }) };
  if (known.unread !== true && !isAbsent) return its;
  const last = Math.max(state.last, list.lastOf(key));
  return { ...its, unread: true, state: { ...NO_ENTRIES, last, lastRun: state.lastRun } };
}
