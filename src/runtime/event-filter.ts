import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, MessagesSnapshotEvent, State, StateSnapshotEvent } from "@ag-ui/client";
import type { PackedEntry } from "../run/types.js";
import type { Frame } from "../wire/shapes.js";

/** Maps an event to what a reader sees; undefined hides it. */
export type EventFilter = (event: BaseEvent) => BaseEvent | undefined;

/** Filters a frame. It keeps its seq range even if it has fewer events, so cursors stay valid. */
function filterFrame(frame: Frame, filter: EventFilter): Frame {
  if (frame.type === "prelude") return { ...frame, events: filterEvents(frame.events, filter) };
  if (frame.type !== "chunk") return frame;
  const entries = frame.chunk.entries.flatMap((entry): readonly PackedEntry[] => {
    const event = filter(entry.event);
    if (event === undefined) return [];
    // Cut lengths do not fit a changed text.
    const isCut = entry.cuts !== undefined && (event as Delta).delta === (entry.event as Delta).delta;
    return [isCut ? { ...entry, event } : { event }];
  });
  const base = frame.base && filterEvents(frame.base, filter);
  return { ...frame, chunk: { ...frame.chunk, entries }, ...(base !== undefined && { base }) };
}

/** An event that may have a text delta. */
interface Delta {
  readonly delta?: unknown;
}

export async function* filterFrames(
  frames: AsyncGenerator<Frame, void>,
  filter: EventFilter,
): AsyncGenerator<Frame, void> {
  for await (const frame of frames) yield filterFrame(frame, filter);
}

export const filterEvents = (events: readonly BaseEvent[], filter: EventFilter): readonly BaseEvent[] =>
  events.flatMap((event) => filter(event) ?? []);

export function filterMessages(messages: readonly Message[], filter: EventFilter): readonly Message[] {
  const shown: MessagesSnapshotEvent = { type: EventType.MESSAGES_SNAPSHOT, messages: [...messages] };
  return (filter(shown) as MessagesSnapshotEvent | undefined)?.messages ?? []; // of the type that went in
}

export function filterState(state: State | undefined, filter: EventFilter): State | undefined {
  if (state === undefined) return undefined;
  const shown: StateSnapshotEvent = { type: EventType.STATE_SNAPSHOT, snapshot: state };
  return (filter(shown) as StateSnapshotEvent | undefined)?.snapshot as State | undefined; // of the type that went in
}
