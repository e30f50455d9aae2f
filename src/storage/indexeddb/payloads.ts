import type { BaseEvent, Interrupt, Message, State } from "@ag-ui/client";
import { mayHoldBytes, readable, readableItems } from "../../run/readable.js";
import type { PackedEntry } from "../../run/types.js";
import { loaded } from "../../run/loaded.js";
import { decoded, isNotOfRecord, isSealed, type PayloadCodec } from "../codec.js";
import { readableClosing } from "../decisions.js";
import type { PersistedInput, RunClosing } from "../run-store.js";
import {
  placeOfChunk,
  placeOfClosing,
  placeOfInput,
  placeOfInterrupts,
  placeOfMessage,
  placeOfState,
  placeOfTitle,
} from "./records.js";
import { corrupt, isIndex, isRecord, isText } from "./checks.js";
import type { ChunkRecord, MessageRecord, RunRecord, StateRecord, ThreadRecord } from "./schema.js";

/*
 * Decodes payloads and checks the fields that this project relies on. All others belong to the agent.
 */

const isEvent = (value: unknown): value is BaseEvent => isRecord(value) && isText(value["type"]);
/** Older builds let a patch replace an activity's content by any value. */
const isMessage = (value: unknown): value is Message =>
  isRecord(value) &&
  isText(value["id"]) &&
  isText(value["role"]) &&
  (value["role"] !== "activity" || isRecord(value["content"]));
const isInterrupt = (value: unknown): value is Interrupt => isRecord(value) && isText(value["id"]);

const isInput = (value: unknown): value is PersistedInput =>
  isRecord(value) &&
  Array.isArray(value["messages"]) &&
  value["messages"].every(isMessage) &&
  (value["resume"] === undefined || Array.isArray(value["resume"])) &&
  (value["again"] === undefined || isAgain(value["again"]));
const isAgain = (value: unknown): boolean =>
  isRecord(value) &&
  [value["tools"], value["context"]].every(
    (list) => list === undefined || (Array.isArray(list) && list.every(isRecord)),
  );

const isClosing = (value: unknown): value is RunClosing =>
  isRecord(value) &&
  isEvent(value["runStarted"]) &&
  Array.isArray(value["customs"]) &&
  value["customs"].every(isEvent) &&
  isEvent(value["terminal"]);

/** The title of a thread. An empty one is stored as it is. */
export const decodeTitle = async (codec: PayloadCodec, { threadId, title }: ThreadRecord): Promise<string> => {
  if (title === "") return title;
  const found = await decoded(codec, title, placeOfTitle(threadId), () => corrupt("threads", { threadId }));
  if (!isText(found)) throw corrupt("threads", { threadId });
  return found;
};

export async function decodeInput(codec: PayloadCodec, record: RunRecord): Promise<PersistedInput> {
  const input = await decoded(codec, record.input, placeOfInput(record), () => corrupt("runs", record));
  if (!isInput(input)) throw corrupt("runs", record);
  const { again } = input;
  return { ...input, messages: readableItems(input.messages), ...(again !== undefined && { again: readable(again) }) };
}

export async function decodeClosing(codec: PayloadCodec, record: RunRecord): Promise<RunClosing | undefined> {
  if (record.closing === undefined) return undefined;
  const closing = await decoded(codec, record.closing, placeOfClosing(record.threadId, record.runIndex), () =>
    corrupt("runs", record),
  );
  if (!isClosing(closing)) throw corrupt("runs", record);
  return readableClosing(closing);
}

/** How many events are packed in the entry; undefined if it is invalid. */
function eventsIn(entry: unknown): number | undefined {
  if (!isRecord(entry) || !isEvent(entry["event"])) return undefined;
  const { event, cuts } = entry;
  if (cuts === undefined) return 1;
  const { delta } = event as { readonly delta?: unknown };
  if (!Array.isArray(cuts) || !cuts.every(isIndex) || !isText(delta)) return undefined;
  return cuts.reduce((sum, length) => sum + length, 0) === delta.length ? cuts.length : undefined;
}

/** It was written by whoever ended the run of a host that was gone. */
const isForeignEnd = (record: ChunkRecord, { status, epoch, eventCount, revised }: RunRecord): boolean =>
  (status === "broken" || status === "stopped" || status === "superseded") &&
  // What it begins on may have been revised since.
  (record.epoch === epoch || (revised !== undefined && record.epoch < epoch)) &&
  record.firstSeq + record.count === eventCount;

export async function decodeEntries(
  codec: PayloadCodec,
  record: ChunkRecord,
  run: RunRecord,
): Promise<readonly PackedEntry[]> {
  const stored = record.entries;
  const entries = await decoded(codec, stored, placeOfChunk(record), () => corrupt("chunks", record)).catch(
    async (error: unknown) => {
      const isBare = !isNotOfRecord(error) && !isSealed(stored) && isForeignEnd(record, run);
      // A host without the key may have ended the run: what anybody could have written is read without its texts.
      const bare = isBare ? (await loaded(import("../../run/bare-end.js"))).bareEnd(stored, run.status) : undefined;
      if (bare === undefined) throw error;
      return bare;
    },
  );
  if (!Array.isArray(entries)) throw corrupt("chunks", record);
  let count = 0;
  for (const entry of entries) count += eventsIn(entry) ?? NaN;
  if (count !== record.count) throw corrupt("chunks", record);
  // Each entry was checked.
  return readableItems(entries as PackedEntry[], ({ event }) => mayHoldBytes(event));
}

/** @returns undefined for a row that only resets */
export async function decodeMessage(codec: PayloadCodec, record: MessageRecord): Promise<Message | undefined> {
  if (record.message === undefined) return undefined;
  const message = readable(
    await decoded(codec, record.message, placeOfMessage(record), () => corrupt("messages", record)),
  );
  if (!isMessage(message) || message.id !== record.messageId) throw corrupt("messages", record);
  return message;
}

export async function decodeState(
  codec: PayloadCodec,
  record: StateRecord,
): Promise<{ state: State; interrupts: Interrupt[] }> {
  const { threadId, runIndex } = record;
  const state = readable(
    await decoded(codec, record.state, placeOfState(threadId, runIndex), () => corrupt("states", record)),
  );
  const interrupts = readable(
    await decoded(codec, record.interrupts, placeOfInterrupts(threadId, runIndex), () => corrupt("states", record)),
    true,
  );
  if (!("state" in record) || !Array.isArray(interrupts) || !interrupts.every(isInterrupt))
    throw corrupt("states", record);
  // A state may be any value.
  return { state: state as State, interrupts };
}
