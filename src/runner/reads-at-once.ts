import type { BaseEvent, Message, State } from "@ag-ui/client";
import type { ThreadRecord } from "../run/contract.js";
import { compactLog } from "../run/compact.js";
import { Fold } from "../run/fold.js";
import { settledPrelude } from "../run/prelude.js";
import type { MemoryData, MemoryRun, MemoryThread } from "../storage/memory/memory-data.js";
import { threadRecordOf } from "../wire/thread-record.js";
import { ownEvent } from "./agent/accept.js";
import { withInput } from "./history/run-input.js";

/**
 * A promise whose value can also be read synchronously: CopilotKit's runtime 1.75 reads a runner's threads without
 * awaiting them. The synchronous value is computed on demand.
 */
export type AtOnce<T, Now> = Promise<T> & { toJSON(): Now };
/** The same for a list. */
export type ListAtOnce<T, Now> = AtOnce<T, Now[]> & Pick<Now[], "map" | "filter">;

export function atOnce<T, Now>(later: Promise<T>, now: () => Now): AtOnce<T, Now> {
  // If nobody awaits it, a failure is no unhandled rejection.
  later.catch(() => undefined);
  return Object.assign(later, { toJSON: now });
}

export function listAtOnce<T, Now>(later: Promise<T>, now: () => Now[]): ListAtOnce<T, Now> {
  const list: Pick<Now[], "map" | "filter"> = {
    map: (to) => now().map(to),
    // The overloads of `filter` differ in types only.
    filter: (is: (value: Now, index: number, array: Now[]) => unknown) => now().filter(is),
  };
  return Object.assign(atOnce(later, now), list);
}

/** Synchronous reads of an in-memory store. All answers are copies. */
export class ReadsAtOnce {
  constructor(private readonly data: MemoryData) {}

  /** All threads that are not archived, newest first. */
  threads(): ThreadRecord[] {
    return [...this.data.threads.values()]
      .flatMap(({ row }) => (row === undefined || row.archived ? [] : row))
      .toSorted((a, b) => b.updatedAt - a.updatedAt || (a.threadId < b.threadId ? 1 : -1))
      .map(threadRecordOf);
  }

  messages(threadId: string): Message[] {
    return structuredClone([...this.fold(threadId).messages]);
  }

  events(threadId: string): BaseEvent[] {
    return compactLog(this.pathEvents(threadId)).map(ownEvent);
  }

  /** Null where there is none. */
  state(threadId: string): State | null {
    const { state } = this.fold(threadId);
    return isEmpty(state) ? null : structuredClone(state);
  }

  private fold(threadId: string): Fold {
    const fold = new Fold({ messages: [], state: {}, interrupts: [] });
    for (const event of this.pathEvents(threadId)) fold.apply(event);
    return fold;
  }

  /** As `History.pathEvents`. */
  private pathEvents(threadId: string): BaseEvent[] {
    const thread = this.data.threads.get(threadId);
    return thread === undefined ? [] : pathOf(thread).flatMap((run) => eventsOf(thread, run));
  }
}

function pathOf({ head, runs }: MemoryThread): MemoryRun[] {
  const path: MemoryRun[] = [];
  for (let at: number | null = head.activeRunIndex; at !== null;) {
    const run = runs.get(at);
    if (run === undefined) break;
    path.push(run);
    at = run.row.prevRunIndex;
  }
  return path.toReversed();
}

function eventsOf({ head }: MemoryThread, { row, closing, left, input, chunks }: MemoryRun): BaseEvent[] {
  if (head.cut === true && row.runIndex === head.first && closing !== undefined && left !== undefined) {
    return settledPrelude({ ...closing, state: left.state, messages: left.messages.map(({ message }) => message) });
  }
  return chunks.flatMap(({ entries }) => entries.map(({ event }) => withInput(event, input)));
}

const isEmpty = (state: unknown): boolean =>
  state === undefined || state === null || (typeof state === "object" && Object.keys(state).length === 0);
