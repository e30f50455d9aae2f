import { RunnerError } from "../../run/errors.js";
import type { RunnerParts } from "../parts.js";

const NOT_HERE =
  "The thread has not come to this device yet, which is not in step with the others: try again when it is";

/** Resolves when the thread is on this device, if any device has it. Errors: RunnerError `offline` where it cannot come now */
export async function here(
  { elsewhere, store }: Pick<RunnerParts, "elsewhere" | "store">,
  threadId: string,
): Promise<void> {
  if (elsewhere.known === undefined && elsewhere.fetch === undefined) return;
  const row = await store.thread(threadId);
  if (row !== undefined && row.absent !== true) return;
  await elsewhere.known;
  if (elsewhere.fetch !== undefined) return elsewhere.fetch(threadId);
  if (row !== undefined) throw new RunnerError("offline", { threadId }, { message: NOT_HERE });
}
