import type { RunStore, ThreadRow } from "../storage/run-store.js";
import { runKey } from "./run-key.js";
import { runName } from "./run-name.js";
import type { SpaceMessage, ThreadMessage, WholeMessage } from "./messages.js";
import type { Listed, ThreadRecord } from "./sync-database.js";
import type { fold } from "./thread-state.js";

/**
 * The record after an entry of the thread.
 *
 * @param folded what the entry does. @param bytes its size. @param unsent the index of the thread's first run that a deletion
 * does not know. @param isSaid this device has added it, by what its log said
 */
export function recordAfter(
  before: ThreadRecord,
  message: SpaceMessage,
  { state, outcome }: ReturnType<typeof fold>,
  { bytes, unsent, isSaid }: { readonly bytes: number; readonly unsent: number; readonly isSaid: boolean },
): ThreadRecord {
  const isDeleted = outcome === "deleted";
  const { listed, activeIs: wasActive, ...others } = before;
  const moves = outcome === "active-run" || outcome === "active";
  const isAsBefore = !moves && state.active === before.state.active;
  const activeIs = isAsBefore ? wasActive : moves && isSaid ? "said" : undefined;
  const after: ThreadRecord = {
    ...others,
    ...(listed !== undefined && !isDeleted && { listed }),
    ...(activeIs !== undefined && { activeIs }),
    state,
    since: grown(before.since, bytes),
    ...(outcome !== "nothing" && sentBy(before, message)),
    ...(isDeleted && { sent: Math.max(before.sent, unsent), wasDeleted: true }),
  };
  if (outcome === "thread" && message.type === "thread") return { ...after, listed: changed(listed, message) };
  if (message.type !== "run" || after.listed !== undefined) return after;
  return { ...after, listed: { title: message.title, archived: false, pinned: false } };
}

/** The record without a run to send. @param leftOut its name, where it cannot be sent */
export function passedOver(record: ThreadRecord, runIndex: number, leftOut: string | undefined): ThreadRecord {
  // Of what has begun, others have a part.
  const isUnknown = leftOut !== undefined && (record.state.open[leftOut]?.nextSeq ?? 0) === 0;
  const left = isUnknown ? { leftOut: [...(record.leftOut ?? []), leftOut] } : {};
  return { ...record, ...left, sent: runIndex + 1 };
}

/** @param whole it stands for all entries before it */
export const grown = (
  { entries, bytes, whole }: NonNullable<ThreadRecord["since"]> = { entries: 0, bytes: 0, whole: 0 },
  size: number,
  isWhole?: WholeMessage,
): NonNullable<ThreadRecord["since"]> =>
  isWhole === undefined ? { entries: entries + 1, bytes: bytes + size, whole } : { entries: 0, bytes: 0, whole: size };

/** Which fields of the thread's entry in the list were changed here, and others are still to be told. */
export function changedHere(
  row: Pick<ThreadRow, "title" | "named" | "archived" | "pinned" | "absent"> | undefined,
  listed: Listed | undefined,
): ReadonlySet<keyof Listed> {
  if (row === undefined || row.absent === true || listed === undefined) return new Set();
  const fields = ["title", "archived", "pinned"] as const;
  return new Set(fields.filter((field) => row[field] !== listed[field] && (field !== "title" || row.named === true)));
}

/** The index of the thread's first run that is none of these. @param keys see {@link runKey} */
export async function firstUnknown(
  store: Pick<RunStore, "runs">,
  threadId: string,
  keys: readonly string[],
): Promise<number> {
  const known = new Set(keys);
  const rows = await store.runs(threadId);
  return rows.find((row) => !known.has(runKey(row)))?.runIndex ?? (rows.at(-1)?.runIndex ?? -1) + 1;
}

/** Which runs were sent since everything is sent. */
function sentBy({ revives, leftOut }: ThreadRecord, message: SpaceMessage): Pick<ThreadRecord, "revives" | "leftOut"> {
  if (message.type !== "run") return {};
  const name = runName(message);
  return {
    ...(revives !== undefined && !revives.includes(name) && { revives: [...revives, name] }),
    ...(leftOut?.includes(name) && { leftOut: leftOut.filter((one) => one !== name) }),
  };
}

const changed = (before: Listed | undefined, { title, archived, pinned }: ThreadMessage): Listed => ({
  title: title ?? before?.title ?? "",
  archived: archived ?? before?.archived ?? false,
  pinned: pinned ?? before?.pinned ?? false,
});
