import { isUnreadable, unlessDamaged } from "../runner/history/run-log.js";
import type { RunRow, ThreadHead } from "../storage/run-store.js";
import type { DeviceName } from "../storage/devices.js";
import type { Written } from "./incoming.js";
import type { ThreadMessage } from "./messages.js";
import type { MirrorContext } from "./mirror.js";
import type { ReadOfThread } from "./read-of-thread.js";
import { runKey } from "./run-key.js";
import { namedRun, runName } from "./run-name.js";
import type { Listed, ThreadRecord } from "./sync-database.js";

/*
 * What other devices change of a thread beside its runs, written down.
 */

interface Context extends Pick<MirrorContext, "parts"> {
  readonly self: DeviceName;
}

/**
 * Changes the thread's entry in the list as another device did, but for what was changed here since.
 *
 * @param before the entry as the space had it. @param untold what others are still to be told of it, where that is known
 */
export async function changeList(
  { parts }: Context,
  { threadId, title, archived, pinned }: ThreadMessage,
  before: Listed | undefined,
  untold: ReadonlySet<keyof Listed> | undefined,
): Promise<Written> {
  const row = await parts.store.thread(threadId);
  if (row === undefined) return "later";
  const isAsBefore = (field: keyof Listed): boolean =>
    before === undefined || row[field] === before[field] || (field === "title" && row.named !== true);
  const isFree = (field: keyof Listed): boolean => untold?.has(field) !== true && isAsBefore(field);
  const update = {
    ...(title !== undefined && title !== row.title && isFree("title") && { title }),
    ...(archived !== undefined && archived !== row.archived && isFree("archived") && { archived }),
    ...(pinned !== undefined && pinned !== row.pinned && isFree("pinned") && { pinned }),
  };
  if (Object.keys(update).length === 0) return "done";
  await parts.store.updateThread(threadId, update);
  parts.channel.post({ type: "changed", threadId });
  return "done";
}

const isOwn = ({ device }: RunRow, self: DeviceName): boolean => device === undefined || device.id === self.id;

/**
 * What stands in the log of a thread that a host of this device may have deleted: nothing, or what this device has added
 * since (`deleted`); what others have added since (`joined`); what was there before (`kept`).
 */
export async function afterDeletion(
  { parts, self }: Context,
  { threadId, state, first = 0 }: ThreadRecord,
): Promise<"deleted" | "joined" | "kept"> {
  const head = await parts.store.head(threadId);
  if (head === undefined || head.deleted === true) return "deleted";
  const isEndGone =
    state.active !== null && (await parts.store.runNamed(threadId, namedRun(state.active))) === undefined;
  if (!beginsLater(head, first) && !isEndGone) return "kept";
  const since = await parts.store.runs(threadId);
  return since.every((run) => isOwn(run, self)) ? "deleted" : "joined";
}

/** It was deleted since its first run was this one: what limits have cut off was not. */
const beginsLater = ({ cut, first = 0 }: ThreadHead, known: number): boolean => cut !== true && first > known;

/** The thread was deleted, here or elsewhere: what is missing may be there, or may come again. */
export const isFromBefore = (
  head: ThreadHead | undefined,
  { wasDeleted, deleting, first = 0 }: ThreadRecord,
): boolean =>
  wasDeleted === true ||
  deleting !== undefined ||
  head?.deleted === true ||
  (head !== undefined && beginsLater(head, first));

/**
 * Whether hosts of this device have deleted the thread while nobody looked, and nothing but what they have added since is in
 * the log. Unlike {@link afterDeletion} nobody says so: a run that had to be left out, or cannot be read, is none that is gone.
 */
export async function hasBegunAnew(
  context: Context,
  record: ThreadRecord,
  head: ThreadHead | undefined,
): Promise<boolean> {
  if (head === undefined || head.deleted === true || !beginsLater(head, record.first ?? 0)) return false;
  try {
    return (await afterDeletion(context, record)) === "deleted";
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return false;
  }
}

/**
 * Deletes the thread here, as another device did.
 *
 * @returns `kept` where somebody has added to it unseen: whoever has what was before that sends it again. `blocked` while
 *   a run is live
 */
export async function deleteHere(
  { parts, self }: Context,
  { threadId, sent, state }: ThreadRecord,
  { anew, whole, open }: Pick<ReadOfThread, "anew" | "whole" | "open">,
): Promise<"deleted" | "kept" | "blocked"> {
  const head = await parts.store.head(threadId);
  if (head === undefined || head.deleted === true) return "deleted";
  if (head.live !== undefined) return "blocked";
  const runs = await parts.store.runs(threadId);
  // It has begun anew here already.
  if (anew !== undefined && runs.length > 0 && runs.every((run) => anew.has(runName(run)))) return "deleted";
  const isGone = state.deleted === true || (anew !== undefined && !runs.some((run) => anew.has(runName(run))));
  // Of one that broke, others may lack nothing but the end that was made for it here.
  const isKnown = (run: RunRow): boolean =>
    run.status === "broken" && (run.closedFrom ?? Infinity) <= (open.get(runName(run)) ?? -1);
  const isUnsent = (run: RunRow): boolean =>
    run.runIndex >= sent && isOwn(run, self) && !whole.has(runKey(run)) && !isKnown(run);
  if (!isGone || runs.some(isUnsent)) return "kept";
  // What waits here, nobody else knows.
  const waiting = await parts.store.waitingRuns(threadId);
  if (waiting.some(({ kind }) => kind === "run")) return "kept";
  if (!(await parts.store.deleteThread(threadId))) return "blocked";
  parts.channel.post({ type: "changed", threadId, deleted: true });
  return "deleted";
}

/** Gives the thread the end of the active path, and the title, that all devices come to. It is left alone while it moves. */
export async function reconcile({ parts }: Context, record: ThreadRecord): Promise<void> {
  const { threadId, state, sent, listed, activeIs } = record;
  const { store, channel } = parts;
  if (state.active === null) return;
  const head = await store.head(threadId);
  if (head === undefined || head.deleted === true || head.live !== undefined || sent < head.runCount) return;
  const row = await store.runNamed(threadId, namedRun(state.active)).catch(unlessDamaged);
  const isEnd = row === undefined || row.status === "running" || row.runIndex === head.activeRunIndex;
  // Where the log has had it, people here have taken up another branch: others are told.
  if (!isEnd && activeIs === undefined && (await store.activate(threadId, row.runIndex, head.epoch)))
    channel.post({ type: "changed", threadId });
  // Which title a thread gets by itself depends on the run that was first here.
  const thread = await store.thread(threadId).catch(unlessDamaged);
  if (thread === undefined || listed === undefined || thread.named === true || thread.title === listed.title) return;
  await store.updateThread(threadId, { title: listed.title });
  channel.post({ type: "changed", threadId });
}
