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
  const message = await log.at(below);
  const isIts = message?.thread === thread && message.isWhole;
  const first = isIts ? await firstPart(log, message) : undefined;
  // Somebody has removed it already; or something stands between its parts, which would be taken for the first entry.
  return first === undefined || log.purge(thread, first.seq);
}

async function firstPart(log: SpaceLog, last: LogMessage): Promise<LogMessage | undefined> {
  let message = last;
  while (message.part !== undefined && message.part.number > 1) {
    const { before } = message;
    const previous = before === undefined ? undefined : await log.at(before);
    if (previous === undefined) return undefined;
    if (log.isReplicated && (await log.next(message.thread, previous.seq + 1))?.seq !== message.seq) return undefined;
    message = previous;
  }
  return message;
}
