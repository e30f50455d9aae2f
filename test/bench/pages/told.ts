/** Length of each message of a long thread, and of the deltas that it came in. */
const LENGTH = 500;
export const PIECE = 50;

/** Of how many messages a run of a long thread consists: a question, then answers. */
export const PER_RUN = 10;

export interface Told {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** Message `i` of a long thread. */
export const toldMessage = (i: number): Told => ({
  id: `told-${i}`,
  role: i % PER_RUN === 0 ? "user" : "assistant",
  content: `${i}: `.padEnd(LENGTH, "something that was said at length, "),
});

/**
 * Throws unless these are the thread's messages from `from` to `to`.
 *
 * @param messages as AG-UI has them
 */
export function checkTold(
  messages: readonly { readonly id: string; readonly role: string; readonly content?: unknown }[],
  from: number,
  to: number,
): void {
  if (messages.length !== to - from) throw new Error(`${messages.length} messages instead of ${to - from}`);
  messages.forEach(({ id, role, content }, i) => {
    const told = toldMessage(from + i);
    if (id !== told.id || role !== told.role || content !== told.content)
      throw new Error(`message ${from + i} is wrong`);
  });
}
