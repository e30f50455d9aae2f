import { RunnerError } from "../../run/errors.js";
import type { RunnerParts } from "../parts.js";
import { isUnreadable } from "./run-log.js";

const NOT_HERE =
  "The thread has not come to this device yet, which is not in step with the others: try again when it is";

/** Resolves when the thread is on this device, if any device has it. Errors: RunnerError `offline` where it cannot come now */
export async function here(
  { elsewhere, store }: Pick<RunnerParts, "elsewhere" | "store">,
  threadId: string,
): Promise<void> {
  if (elsewhere.known === undefined && elsewhere.fetch === undefined) return;
  // Before the row is read: a thread that leaves this device now is read as absent, or does not leave.
  elsewhere.used.add(threadId);
  const row = await store.thread(threadId).catch(async (error: unknown) => {
    // What needs no content, such as a deletion, needs no key. A thread that is not here must come first.
    const isLocked = RunnerError.is(error, "locked") && (await store.absent?.())?.includes(threadId) !== true;
    if (!isLocked && !isUnreadable(error)) throw error;
    return "unreadable" as const;
  });
  // One that is not here has a row that was written by this device.
  if (row === "unreadable" || (row !== undefined && row.absent !== true)) return;
  await elsewhere.known;
  if (elsewhere.fetch !== undefined) return elsewhere.fetch(threadId);
  if (row !== undefined) throw notHere(threadId);
}

/** For who has no time to wait. Errors: RunnerError `offline` where the thread is listed, but not on this device (any more) */
export async function checkHere(
  { elsewhere, store }: Pick<RunnerParts, "elsewhere" | "store">,
  threadId: string,
): Promise<void> {
  if (elsewhere.fetch === undefined || (await store.thread(threadId))?.absent !== true) return;
  throw notHere(threadId);
}

const notHere = (threadId: string): RunnerError => new RunnerError("offline", { threadId }, { message: NOT_HERE });
