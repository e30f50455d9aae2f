import type { BaseEvent } from "@ag-ui/client";
import { Fold, type ThreadContent } from "../../../src/run/fold.js";
import { unpackChunk } from "../../../src/run/pack.js";
import type { Cursor } from "../../../src/run/types.js";
import { withInput } from "../../../src/runner/history/run-input.js";
import type { MemoryData, MemoryRun } from "../../../src/storage/memory/memory-data.js";

/** What a reader shows. */
export const contentOf = ({ messages, state, interrupts }: ThreadContent): ThreadContent =>
  structuredClone({ messages, state, interrupts });

export const NOTHING: ThreadContent = { messages: [], state: {}, interrupts: [] };

/** The events of a run in the log, as they are handed out. */
export const loggedEvents = (run: MemoryRun): BaseEvent[] =>
  run.chunks.flatMap(unpackChunk).map(({ event, seq }) => (seq === 0 ? withInput(event, run.input) : event));

/** What the log says that a reader at a cursor shows; undefined where the log does not reach back that far. */
export function truthAt(data: MemoryData, threadId: string, { runIndex, seq }: Cursor): ThreadContent | undefined {
  const thread = data.threads.get(threadId);
  if (runIndex < 0 || thread === undefined) return NOTHING;
  const path: MemoryRun[] = [];
  for (let at: number | null = runIndex; at !== null;) {
    const run: MemoryRun | undefined = thread.runs.get(at);
    if (run === undefined) return undefined;
    path.unshift(run);
    at = run.row.prevRunIndex;
  }
  const first = path[0]!;
  const { head } = thread;
  let fold = new Fold(NOTHING);
  if (head.cut === true && first.row.runIndex === head.first) {
    if (first.left === undefined) return undefined;
    const { messages, state, interrupts } = first.left;
    fold = new Fold(structuredClone({ messages: messages.map(({ message }) => message), state, interrupts }));
    path.shift();
    if (path.length === 0 && seq + 1 < (first.row.eventCount ?? 0)) return undefined;
  }
  for (const run of path) {
    const upTo = run.row.runIndex === runIndex ? seq : Infinity;
    for (const [n, event] of structuredClone(loggedEvents(run)).entries()) if (n <= upTo) fold.apply(event);
  }
  return contentOf(fold);
}
