import { transformChunks, type BaseEvent } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { from } from "rxjs";
import { compactLog, NOTHING } from "./compact.js";
import type { ThreadContent } from "./fold.js";
import { checkKind, LIST, OBJECT, TEXT, type Check } from "./options.js";

const CHUNKS: ReadonlySet<string> = new Set([
  EventType.TEXT_MESSAGE_CHUNK,
  EventType.TOOL_CALL_CHUNK,
  EventType.REASONING_MESSAGE_CHUNK,
]);

function expandChunks(events: readonly BaseEvent[]): readonly BaseEvent[] {
  if (!events.some(({ type }) => CHUNKS.has(type))) return events;
  const all: BaseEvent[] = [];
  let failed: { readonly error: unknown } | undefined;
  transformChunks()(from(events)).subscribe({
    next: (event) => all.push(event),
    error: (error: unknown) => (failed = { error }),
  });
  if (failed !== undefined) throw failed.error;
  return all;
}

const ITERABLE: Check = [
  (given) => OBJECT[0](given) && Symbol.iterator in (given as object),
  "a list of AG-UI events, or what else gives them one by one",
];

function checkEvent(event: BaseEvent, at: number): BaseEvent {
  checkKind(`events[${at}].type`, (event as BaseEvent | undefined)?.type, TEXT);
  return event;
}

/**
 * What a plain AG-UI reader gets of settled history: fewer events that lead it from `base` to the same messages, in the
 * same order, the same state and interrupts, at the end of each run, and that are valid where the given ones are.
 * Linear in the events and their bytes. Nothing that is given is written to; parts of it are in what is returned.
 *
 * @param events a thread's log, or a part of it that begins with a RUN_STARTED
 * @param base what the reader holds before them; nothing by default
 * @throws RunnerError `invalid-input` for what are no events
 */
export function compact(events: Iterable<BaseEvent>, base: ThreadContent = NOTHING): BaseEvent[] {
  checkKind("events", events, ITERABLE);
  checkKind("base", base, OBJECT);
  checkKind("base.messages", base.messages, LIST);
  return compactLog(expandChunks(Array.from(events, checkEvent)), base);
}
