import {
  WRITES_IDX_MAP,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointMetadata,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { StoreKey } from "idb";
import { RunnerError } from "../run/errors.js";
import type { PayloadCodec, PayloadPlace } from "../storage/codec.js";
import { quietly } from "../storage/indexeddb/database-connection.js";
import { refuseEncrypted } from "../storage/indexeddb/keyless.js";
import { isVersion, placeOf } from "./checks.js";
import { invalid, type CheckpointName, type Namespace } from "./config.js";
import {
  CONTENT,
  KEYS,
  startingWith,
  type ChannelSource,
  type ChannelVersion,
  type CheckpointRecord,
  type SaverConnection,
  type SaverSchema,
  type Serialized,
  type StoredValue,
  type ValueRecord,
  type WriteRecord,
  type WriteTransaction,
} from "./schema.js";
import type { PutBefore } from "./put-before.js";
import { placeOfCheckpoint, placeOfMetadata, placeOfValue, placeOfWrite } from "./places.js";
import { deserialize, encodeSerialized, serialize } from "./serialized.js";

/** A checkpoint to be stored; references to older values are resolved in the transaction. */
export interface PreparedCheckpoint {
  readonly record: CheckpointRecord;
  /** What the record's checkpoint was encoded from. */
  readonly body: Serialized;
  /** The values that this checkpoint adds. */
  readonly values: readonly ValueRecord[];
  /** The channels with inherited values, with their versions. */
  readonly kept: readonly (readonly [channel: string, version: ChannelVersion])[];
}

/** How values become bytes. */
export interface Encoding {
  readonly serde: SerializerProtocol;
  readonly codec: PayloadCodec;
}

/** Where they are stored. */
export interface Target {
  readonly connection: SaverConnection;
  readonly codec: PayloadCodec;
  readonly putBefore: PutBefore;
}

/** A graph goes on from a checkpoint that was deleted: what it writes would bring back a part of its thread. */
const deleted = ({ threadId, ns: checkpointNs, id: checkpointId }: CheckpointName): RunnerError =>
  new RunnerError("unknown-thread", { threadId, checkpointNs, checkpointId });

/**
 * Serializes before the first await, so that later changes by the graph are not included.
 *
 * @throws RunnerError `invalid-input`
 */
export async function prepareCheckpoint(
  { serde, codec }: Encoding,
  { threadId, ns, id }: CheckpointName,
  parentId: string | undefined,
  checkpoint: Checkpoint,
  metadata: CheckpointMetadata,
  newVersions: ChannelVersions,
): Promise<PreparedCheckpoint> {
  const { channel_values: given = {}, channel_versions: versions } = checkpoint;
  const channels: ChannelSource[] = [];
  const kept: [string, ChannelVersion][] = [];
  for (const channel of Object.keys(given)) {
    const isNew = Object.hasOwn(newVersions, channel);
    // LangGraph's contract: values without a version, or neither new nor stored before, are dropped.
    if (!isNew && !Object.hasOwn(versions, channel)) continue;
    const version: unknown = isNew ? newVersions[channel] : versions[channel];
    if (!isVersion(version)) throw invalid(`the version of channel ${channel}`, "must be a finite number or a string");
    if (isNew) channels.push({ channel, version, writer: id });
    else kept.push([channel, version]);
  }
  const name = { threadId, ns, id, ...(parentId !== undefined && { parentId }) };
  const format = Number.isFinite(checkpoint.v) ? checkpoint.v : 0;
  const encode = async (field: string, value: unknown, place: PayloadPlace): Promise<StoredValue> =>
    encodeSerialized(codec, await serialize(serde, field, value), place);
  const [body, info, ...values] = await Promise.all([
    serialize(serde, "the checkpoint", { ...checkpoint, channel_values: namesOf(channels, kept) }),
    encode("the metadata", metadata, placeOfMetadata(name)),
    ...channels.map(async (source): Promise<ValueRecord> => {
      const record = { threadId, ns, ...source };
      const { channel } = source;
      return {
        ...record,
        value: await encode(`the value of channel ${channel}`, given[channel], placeOfValue(record)),
      };
    }),
  ]);
  const encoded = await encodeSerialized(codec, body, placeOfCheckpoint({ ...name, format }));
  return { record: { ...name, format, checkpoint: encoded, metadata: info, channels }, body, values, kept };
}

/** In the place of the values: which channels have one is encrypted with the checkpoint. */
const namesOf = (
  channels: readonly ChannelSource[],
  kept: readonly (readonly [channel: string, version: ChannelVersion])[],
): readonly string[] => [...channels.map(({ channel }) => channel), ...kept.map(([channel]) => channel)];

/** The checkpoint without the kept values of these channels, which there are not. */
export async function withoutKept(
  { serde, codec }: Encoding,
  { record, body, kept: before, ...rest }: PreparedCheckpoint,
  missing: readonly string[],
): Promise<PreparedCheckpoint> {
  const kept = before.filter(([channel]) => !missing.includes(channel));
  // Not the graph's own, which it may have changed. The serializer was given an object.
  const checkpoint = (await deserialize(serde, body, placeOf("checkpoints", record))) as object;
  const next = await serialize(serde, "the checkpoint", {
    ...checkpoint,
    channel_values: namesOf(record.channels, kept),
  });
  const encoded = await encodeSerialized(codec, next, placeOfCheckpoint(record));
  return { ...rest, record: { ...record, checkpoint: encoded }, body: next, kept };
}

/**
 * Saves the checkpoint atomically. Saving under the same id overwrites.
 *
 * @returns channels with values that are to be kept, and are not there: nothing was saved, see {@link withoutKept}
 * @throws RunnerError `unknown-thread` if the thread was deleted in the meantime
 */
export async function writeCheckpoint(
  { connection, codec, putBefore }: Target,
  prepared: PreparedCheckpoint,
): Promise<readonly string[]> {
  const { record, values, kept } = prepared;
  const left = await connection.write(["checkpoints", "values", "keys"], "strict", async (tx) => {
    await refuseEncrypted(tx, codec, KEYS, [record, ...values]);
    const parent =
      record.parentId === undefined
        ? undefined
        : await tx.objectStore("checkpoints").get([record.threadId, record.ns, record.parentId]);
    const older = await Promise.all(kept.map((channel) => sourceOf(tx, record, parent, channel)));
    if (record.parentId !== undefined && parent === undefined) {
      const name = { ...record, id: record.parentId };
      // The values that it keeps may be being deleted.
      if (kept.length > 0 || putBefore.has(name)) throw deleted(name);
    }
    const missing = kept.flatMap(([channel], at) => (older[at] === undefined ? [channel] : []));
    if (missing.length > 0) return missing;
    const channels = [...record.channels, ...older.filter((source) => source !== undefined)];
    for (const value of values) quietly(tx.objectStore("values").put(value));
    quietly(tx.objectStore("checkpoints").put({ ...record, channels }));
    return missing;
  });
  if (left.length === 0) putBefore.add(record);
  return left;
}

/**
 * The source of an inherited channel value: usually that of the parent. If the parent has none (a copied checkpoint), the
 * newest value with that version.
 */
async function sourceOf(
  tx: WriteTransaction,
  { threadId, ns }: CheckpointRecord,
  parent: CheckpointRecord | undefined,
  [channel, version]: readonly [string, ChannelVersion],
): Promise<ChannelSource | undefined> {
  const inherited = Array.isArray(parent?.channels)
    ? parent.channels.find((source) => source.channel === channel && source.version === version)
    : undefined;
  if (inherited !== undefined) return inherited;
  const range = startingWith(threadId, ns, channel, version);
  const newest = await tx.objectStore("values").openKeyCursor(range, "prev");
  return newest === null ? undefined : { channel, version, writer: newest.primaryKey[4] };
}

/** @throws RunnerError `invalid-input` */
export async function prepareWrites(
  { serde, codec }: Encoding,
  { threadId, ns, id }: CheckpointName,
  writes: readonly PendingWrite[],
  taskId: string,
  taskPath: string,
): Promise<WriteRecord[]> {
  for (const [field, value] of Object.entries({ taskId, taskPath })) {
    if (typeof value !== "string") throw invalid(field, "must be a string");
  }
  for (const write of writes as readonly unknown[]) {
    if (!Array.isArray(write) || typeof write[0] !== "string") throw invalid("a write's channel", "must be a string");
  }
  return Promise.all(
    writes.map(async ([channel, value], n) => {
      const idx = Object.hasOwn(WRITES_IDX_MAP, channel) ? WRITES_IDX_MAP[channel]! : n;
      const record = { threadId, ns, checkpointId: id, taskId, idx, taskPath, channel };
      const serialized = await serialize(serde, `the write to channel ${channel}`, value);
      return { ...record, value: await encodeSerialized(codec, serialized, placeOfWrite(record)) };
    }),
  );
}

/**
 * A repeated task keeps its earlier writes, since other tasks may have used them. On LangGraph's own channels (errors,
 * interrupts, resumes) the last write wins. Writes may come before their checkpoint.
 *
 * @throws RunnerError `unknown-thread` if the checkpoint was deleted in the meantime
 */
export async function writeWrites(
  { connection, codec, putBefore }: Target,
  records: readonly WriteRecord[],
): Promise<void> {
  const [first] = records;
  if (first === undefined) return;
  const { threadId, ns, checkpointId, taskId } = first;
  const name = { threadId, ns, id: checkpointId };
  await connection.write(["checkpoints", "writes", "keys"], "strict", async (tx) => {
    await refuseEncrypted(tx, codec, KEYS, records);
    if (putBefore.has(name) && (await tx.objectStore("checkpoints").getKey([threadId, ns, checkpointId])) === undefined)
      throw deleted(name);
    const store = tx.objectStore("writes");
    const keys = await store.getAllKeys(startingWith(threadId, ns, checkpointId, taskId));
    const there = new Set(keys.map((key) => key[4]));
    for (const record of records) {
      if (record.idx < 0 || !there.has(record.idx)) quietly(store.put(record));
    }
  });
}

/**
 * Deletes a checkpoint and the writes beside it. Its values, which others may refer to, are deleted with the thread.
 *
 * @param id undefined: the newest of the namespace, whether it can be read or not
 */
export function deleteCheckpoint(
  connection: SaverConnection,
  { threadId, ns }: Namespace,
  id: string | undefined,
): Promise<void> {
  let found = id;
  return connection.write(["checkpoints", "writes"], "strict", async (tx) => {
    const store = tx.objectStore("checkpoints");
    // The same one where this is a retry.
    found ??= (await store.openKeyCursor(startingWith(threadId, ns), "prev"))?.primaryKey[2];
    if (found === undefined) return;
    quietly(store.delete([threadId, ns, found]));
    quietly(tx.objectStore("writes").delete(startingWith(threadId, ns, found)));
  });
}

/** Values and writes deleted per transaction: a deletion of very many takes longer than a transaction may. */
const PIECE = 1_000;

/**
 * Deletes the thread: readers see all of it or none. Of a large one the values and writes, which nobody finds any more, are
 * deleted in pieces then; what a call that was cut off leaves is deleted by the next one.
 */
export async function deleteThread(connection: SaverConnection, threadId: string): Promise<void> {
  const range = startingWith(threadId);
  const left = await connection.write([...CONTENT], "strict", async (tx) => {
    const [values, writes] = [tx.objectStore("values"), tx.objectStore("writes")];
    quietly(tx.objectStore("checkpoints").delete(range));
    const keys = await Promise.all([values.getAllKeys(range), writes.getAllKeys(range)]);
    if (keys.flat().length > PIECE) return keys;
    for (const store of [values, writes]) quietly(store.delete(range));
    return undefined;
  });
  if (left === undefined) return;
  // By their keys: the thread may have begun anew.
  await deleteAll(connection, "values", left[0]);
  await deleteAll(connection, "writes", left[1]);
}

async function deleteAll<Name extends "values" | "writes">(
  connection: SaverConnection,
  name: Name,
  keys: readonly StoreKey<SaverSchema, Name>[],
): Promise<void> {
  for (let at = 0; at < keys.length; at += PIECE) {
    await connection.write([name], "relaxed", async (tx) => {
      for (const key of keys.slice(at, at + PIECE)) quietly(tx.objectStore(name).delete(key));
    });
  }
}
