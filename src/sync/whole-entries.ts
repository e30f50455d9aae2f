import { equalJson } from "../run/json.js";
import type { WholeMessage } from "./messages.js";
import { fold, NO_ENTRIES, type ThreadState } from "./thread-state.js";

/*
 * An entry that stands for all before it, for whoever knows some of them.
 */

/** Who has read all that it stands for knows this. */
export function comesTo({ upTo, entries }: WholeMessage, state: ThreadState): boolean {
  const whole = entries.reduce((before, { seq, message }) => fold(before, seq, message).state, NO_ENTRIES);
  return equalJson({ ...whole, last: upTo }, state);
}

/** It stands for entries that were not read. One that was added after another entry than it says is none. */
export const isAheadOf = (last: number, { upTo }: WholeMessage, after = upTo): boolean => upTo > last && after === upTo;
