import type { LogMessage } from "./parts.js";
import type { SpaceLog } from "./space-log.js";

/** No thread has this name. */
const NOBODY = "-";

/**
 * Removes the messages of a thread before those of the entry `below`, which may have several parts.
 *
 * @param below its seq; 0: nothing is removed. @returns false where it is not allowed. Errors: those of the log
 */
export async function removeBefore(log: SpaceLog, thread: string, below: number): Promise<boolean> {
  if (below === 0) return log.purge(NOBODY, Infinity);
  let first: LogMessage | undefined = await log.at(below);
  while (first?.part !== undefined && first.part.number > 1) {
    first = first.before === undefined ? undefined : await log.at(first.before);
  }
  // Somebody has removed it already.
  if (first === undefined || first.thread !== thread) return true;
  return log.purge(thread, first.seq);
}
