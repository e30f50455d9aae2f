import type { Message } from "@ag-ui/client";
import type { ThreadBase } from "./input-plan.js";

/** Some of a thread's messages. */
export interface MessagePart {
  /** Oldest first. */
  readonly messages: readonly Message[];
  /** There are messages before the first one. */
  readonly earlier: boolean;
}

/**
 * The `limit` messages before the one with id `before`, or the last ones. As with the store's pages, of several messages
 * of one id only the first begins a page: it is the one that `before` names.
 *
 * @param messages not changed; the page shares them
 * @returns undefined where there is no message of the id `before`
 */
export function pageOf(
  messages: readonly Message[],
  before: string | undefined,
  limit: number,
): MessagePart | undefined {
  const placeOf = (wanted: string): number => messages.findIndex(({ id }) => id === wanted);
  const end = before === undefined ? messages.length : placeOf(before);
  if (end < 0) return undefined;
  let start = Math.max(0, end - limit);
  while (start < end && placeOf(messages[start]!.id) < start) start--;
  return { messages: messages.slice(start, end), earlier: start > 0 };
}

/** The last `limit` messages. */
export const lastOf = (messages: readonly Message[], limit: number): MessagePart =>
  // Without `before` there is always a page.
  pageOf(messages, undefined, limit)!;

/** A thread at the end of a path, with all of its messages or only the last ones. */
export type ThreadEnd = MessagePart &
  Pick<ThreadBase, "runIndex" | "state" | "interrupts"> & {
    /** Where all messages are shown: the run that added a message. */
    readonly addedBy?: (messageId: string) => number | undefined;
  };

/** @param limit how many of its messages are shown; absent: all */
export function endOf(base: ThreadBase, limit?: number): ThreadEnd {
  const { runIndex, messages, state, interrupts } = base;
  const end = { runIndex, state, interrupts };
  if (limit !== undefined) return { ...end, ...lastOf(messages, limit) };
  return { ...end, messages, earlier: false, addedBy: (id) => addedBy(base, id) };
}

/** The run that added a message. */
export const addedBy = (base: Pick<ThreadBase, "runOf" | "addedBy">, messageId: string): number | undefined =>
  base.addedBy.get(messageId) ?? base.runOf.get(messageId);
