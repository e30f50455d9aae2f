import { EventType } from "@ag-ui/core";
import type { AssistantMessage, BaseEvent, Message, MessagesSnapshotEvent, Metadata } from "@ag-ui/client";
import { assignOwn, equalJson, isRecord } from "./json.js";

const COMMON = ["type", "timestamp", "subagentRunId", "metadata"];
const TEXT = new Set([...COMMON, "messageId", "delta"]);
const STATE = new Set([...COMMON, "snapshot", "delta"]);
const ACTIVITY = new Set([...COMMON, "messageId", "activityType", "content", "replace", "patch"]);

/** The fields that merging handles, by type of event. */
const FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  [EventType.TEXT_MESSAGE_CONTENT]: TEXT,
  [EventType.REASONING_MESSAGE_CONTENT]: TEXT,
  [EventType.TOOL_CALL_ARGS]: new Set([...COMMON, "toolCallId", "delta"]),
  [EventType.STATE_SNAPSHOT]: STATE,
  [EventType.STATE_DELTA]: STATE,
  [EventType.ACTIVITY_SNAPSHOT]: ACTIVITY,
  [EventType.ACTIVITY_DELTA]: ACTIVITY,
  [EventType.MESSAGES_SNAPSHOT]: new Set([...COMMON, "messages"]),
};

/** False where merging would lose something of the event: `rawEvent`, or a field that this version does not know. */
export function isMergeable(event: BaseEvent): boolean {
  const fields = FIELDS[event.type];
  if (fields === undefined || (event.metadata !== undefined && !isRecord(event.metadata))) return false;
  return Object.keys(event).every((key) => fields.has(key) || event[key] === undefined);
}

/**
 * Lower bounds for the number of keys of a document's objects while patches change it: an operation removes at most one.
 * Saves listing the keys of a large object at each look.
 */
export class KeyCounts {
  readonly #counts = new WeakMap<object, number>();
  #operations = 0;

  changed(operations: number): void {
    this.#operations += operations;
  }

  note(object: object, keys: number): void {
    if (keys > 100) this.#counts.set(object, keys + this.#operations);
  }

  atLeast(object: object): number {
    return (this.#counts.get(object) ?? 0) - this.#operations;
  }
}

/** The least size of a key with its value, in {@link jsonSize}. */
const FIELD_SIZE = 6;

/** The approximate length of a value as JSON; counting stops soon after `limit`. */
export function jsonSize(value: unknown, limit = Number.POSITIVE_INFINITY, counts?: KeyCounts): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 5;
  let size = 2;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (size > limit) break;
      size += 1 + jsonSize(item, limit - size, counts);
    }
    return size;
  }
  const least = counts === undefined ? 0 : counts.atLeast(value) * FIELD_SIZE;
  if (least > limit) return least;
  const fields = value as Readonly<Record<string, unknown>>; // any object may be read by its own keys
  const keys = Object.keys(fields);
  counts?.note(value, keys.length);
  for (const key of keys) {
    if (size > limit) break;
    size += key.length + 4 + jsonSize(fields[key], limit - size, counts);
  }
  return size;
}

/** The fields of a message that count beside its content. */
function frame(message: Message): readonly unknown[] {
  const { id, role, subagentRunId } = message;
  return [id, role, subagentRunId, role === "activity" ? message.activityType : undefined];
}

function callIds(message: Message): readonly string[] {
  return ((message as Partial<AssistantMessage>).toolCalls ?? []).map(({ id }) => id); // only some roles have calls
}

/**
 * True where `later` makes `earlier` redundant if nothing between them concerns messages: both have the same messages in
 * the same order, perhaps with other contents.
 */
export function saysAgain(earlier: MessagesSnapshotEvent, later: MessagesSnapshotEvent): boolean {
  if (earlier.messages.length !== later.messages.length) return false;
  if (!isMergeable(earlier) || !equalJson(earlier.metadata, later.metadata)) return false;
  const ids = new Set(earlier.messages.map(({ id }) => id));
  if (ids.size < earlier.messages.length) return false;
  return earlier.messages.every((message, n) => {
    const again = later.messages[n]!;
    const calls = new Set(callIds(again));
    return equalJson(frame(message), frame(again)) && callIds(message).every((id) => calls.has(id));
  });
}

/** Metadata of several events, merged key by key, the last one winning. Each key is copied once. */
class SharedMetadata {
  #keys: Metadata | undefined;

  add({ metadata }: BaseEvent): void {
    if (metadata !== undefined) assignOwn((this.#keys ??= {}), metadata);
  }

  get field(): { metadata?: Metadata } {
    return this.#keys === undefined ? {} : { metadata: this.#keys };
  }
}

/** Deltas of one message or tool call, joined into one in the place of the first. */
export class JoinedDeltas {
  readonly #first: BaseEvent;
  readonly #parts: unknown[] = [];
  readonly #metadata = new SharedMetadata();
  #owner: unknown;

  constructor(
    readonly place: number,
    first: BaseEvent,
  ) {
    this.#first = first;
    this.add(first);
  }

  /** An absent owner is the owner of the message; two named ones must be equal. */
  takes(event: BaseEvent): boolean {
    const owner = event["subagentRunId"];
    return (
      event.type === this.#first.type && (owner === undefined || this.#owner === undefined || owner === this.#owner)
    );
  }

  add(event: BaseEvent): void {
    this.#parts.push(event["delta"]);
    this.#metadata.add(event);
    this.#owner ??= event["subagentRunId"];
  }

  /** The joined delta; `undefined` where there is only the first, unchanged. */
  merged(): BaseEvent | undefined {
    if (this.#parts.length === 1) return undefined;
    return {
      ...this.#first,
      delta: this.#parts.join(""),
      ...(this.#owner === undefined ? {} : { subagentRunId: this.#owner }),
      ...this.#metadata.field,
    };
  }
}

/** Snapshots and patches of one document that one snapshot may replace. */
export class Window {
  readonly places: number[] = [];
  /** Of all events, as JSON. */
  #size = 0;
  readonly #metadata = new SharedMetadata();
  #first: BaseEvent | undefined;
  #last: BaseEvent | undefined;
  #oneOwner = true;

  add(place: number, event: BaseEvent): void {
    this.places.push(place);
    this.#size += jsonSize(event);
    this.#metadata.add(event);
    this.#first ??= event;
    this.#last = event;
    this.#oneOwner &&= event["subagentRunId"] === this.#first["subagentRunId"];
  }

  /** True where there are several events, and the snapshot is not larger than all of them. */
  isMoreThan(snapshot: BaseEvent, counts?: KeyCounts): boolean {
    return this.places.length > 1 && jsonSize(snapshot, this.#size, counts) <= this.#size;
  }

  /** The owner of the changes, where all have the same. */
  get owner(): { subagentRunId?: unknown } {
    const owner = this.#first?.["subagentRunId"];
    return this.#oneOwner && owner !== undefined ? { subagentRunId: owner } : {};
  }

  /** The metadata of all, and the time of the first or last. */
  common(which: "first" | "last"): { timestamp?: number; metadata?: Metadata } {
    const timestamp = (which === "first" ? this.#first : this.#last)?.timestamp;
    return { ...(timestamp === undefined ? {} : { timestamp }), ...this.#metadata.field };
  }
}
