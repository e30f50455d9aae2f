import { RunnerError } from "../run/errors.js";
import { isRecord } from "../run/json.js";
import { isSealed } from "../storage/codec.js";
import type { CheckpointName } from "./config.js";
import type {
  ChannelSource,
  ChannelVersion,
  CheckpointRecord,
  Serialized,
  ValueRecord,
  WriteRecord,
} from "./schema.js";

/*
 * Checks records before they are trusted: another build, a person or a fault may have written them. Parts of keys that
 * records are looked up by need no check.
 */

const isText = (value: unknown): value is string => typeof value === "string";

/** A valid, comparable database key. */
export const isVersion = (value: unknown): value is ChannelVersion => isText(value) || Number.isFinite(value);

export const isSerialized = (value: unknown): value is Serialized =>
  isRecord(value) && isText(value["type"]) && ArrayBuffer.isView(value["data"]);

const isStored = (value: unknown): boolean => isSealed(value) || isSerialized(value);

const isSource = (value: unknown): value is ChannelSource =>
  isRecord(value) && isText(value["channel"]) && isVersion(value["version"]) && isText(value["writer"]);

export function checkCheckpoint(record: CheckpointRecord): CheckpointRecord {
  const valid =
    isText(record.threadId) &&
    isText(record.ns) &&
    isText(record.id) &&
    (record.parentId === undefined || isText(record.parentId)) &&
    Number.isFinite(record.format) &&
    isStored(record.checkpoint) &&
    isStored(record.metadata) &&
    Array.isArray(record.channels) &&
    record.channels.every(isSource);
  if (!valid) throw corrupt("checkpoints", record);
  return record;
}

/** @param at the checkpoint that references the value */
export function checkValue(record: ValueRecord | undefined, at: CheckpointRecord): ValueRecord {
  if (record === undefined || !isStored(record.value)) throw corrupt("values", at);
  return record;
}

export function checkWrite(record: WriteRecord): WriteRecord {
  const valid =
    isText(record.taskId) &&
    Number.isInteger(record.idx) &&
    isText(record.taskPath) &&
    isText(record.channel) &&
    isStored(record.value);
  if (!valid) throw corrupt("writes", { ...record, id: record.checkpointId });
  return record;
}

/** Locates an invalid record without revealing its content. */
export const placeOf = (
  store: string,
  { threadId, ns, id }: CheckpointName,
): { store: string; threadId: string; checkpointNs: string; checkpointId: string } => ({
  store,
  threadId,
  checkpointNs: ns,
  checkpointId: id,
});

export const corrupt = (store: string, at: CheckpointName): RunnerError =>
  new RunnerError("corrupt-record", placeOf(store, at));
