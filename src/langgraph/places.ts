import type { PayloadPlace } from "../storage/codec.js";
import type { CheckpointRecord, ValueRecord, WriteRecord } from "./schema.js";

/*
 * The places of payloads: what must not be read anywhere else, or beside other ids and numbers.
 */

type Checkpoint = Pick<CheckpointRecord, "threadId" | "ns" | "id" | "parentId">;

export const placeOfCheckpoint = (record: Checkpoint & Pick<CheckpointRecord, "format">): PayloadPlace => [
  "checkpoint",
  record.threadId,
  record.ns,
  record.id,
  record.parentId,
  record.format,
];

export const placeOfMetadata = ({ threadId, ns, id }: Checkpoint): PayloadPlace => ["metadata", threadId, ns, id];

export const placeOfValue = (record: Omit<ValueRecord, "value">): PayloadPlace => [
  "value",
  record.threadId,
  record.ns,
  record.channel,
  record.version,
  record.writer,
];

export const placeOfWrite = (record: Omit<WriteRecord, "value">): PayloadPlace => [
  "write",
  record.threadId,
  record.ns,
  record.checkpointId,
  record.taskId,
  record.idx,
  record.taskPath,
  record.channel,
];
