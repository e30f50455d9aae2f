import { RunnerError } from "../../run/errors.js";
import { decoded, type PayloadCodec, type PayloadPlace } from "../../storage/codec.js";
import type { Checkpoint, CheckpointMetadata } from "../checkpoint.js";
import { hasFields, isCheckpoint, isCount, isId, isOrigin, isTime } from "../checks.js";
import { listed } from "../derive.js";
import type { CheckpointStores, MetadataRecord, OriginRecord, TurnRecord } from "./schema.js";

/** Locates an invalid record without revealing its content. */
export const corrupt = (store: CheckpointStores, at: { checkpointId: string } | { runId: string }): RunnerError =>
  new RunnerError("corrupt-record", { store, ...at });

export const isPlaceOf = (place: unknown, timestamp: number): boolean =>
  Array.isArray(place) && place.length === 2 && place[0] === -timestamp && isCount(-place[1]);

const isMetadata = (record: MetadataRecord): boolean =>
  isId(record.id) &&
  isId(record.graphId) &&
  isId(record.runId) &&
  isId(record.nodeId) &&
  isTime(record.timestamp) &&
  isPlaceOf(record.place, record.timestamp) &&
  isCount(record.stateSize) &&
  typeof record.hasMemorySnapshot === "boolean" &&
  (record.forkedFrom === undefined || isOrigin(record.forkedFrom));

/** The public part of a record. */
export function metadataIn(record: MetadataRecord): CheckpointMetadata {
  if (!isMetadata(record)) throw corrupt("metadata", { checkpointId: record.id });
  return { ...listed(record), turn: 0 - record.place[1] };
}

export function checkOriginRecord(record: OriginRecord | TurnRecord | undefined): OriginRecord | undefined {
  if (record === undefined || ("from" in record && isOrigin(record.from))) return record;
  throw corrupt("origins", { runId: record.runId });
}

export const placeOfCheckpoint = (id: string): PayloadPlace => ["checkpoint", id];

/** @param stored the record of `id` in `states`; the database returns a private copy */
export async function decodeCheckpoint(codec: PayloadCodec, id: string, stored: unknown): Promise<Checkpoint> {
  const refused = (): RunnerError => corrupt("states", { checkpointId: id });
  if (!hasFields(stored)) throw refused();
  const checkpoint = await decoded(codec, stored["checkpoint"], placeOfCheckpoint(id), refused);
  if (!isCheckpoint(checkpoint) || checkpoint.id !== id) throw refused();
  return checkpoint;
}
