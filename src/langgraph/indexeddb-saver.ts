import {
  BaseCheckpointSaver,
  maxChannelVersion,
  TASKS,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Clock } from "../platform/clock.js";
import { DEFAULT_DB_NAME, langGraphDbName, userDbName } from "../platform/names.js";
import { checkKind, checkNames, CLOCK, ID, LIST, OBJECT, TEXTS, TIMEOUT, USER, type Names } from "../run/options.js";
import { RunnerError } from "../run/errors.js";
import { loaded } from "../run/loaded.js";
import { isRecord } from "../run/json.js";
import { sameValue } from "../run/same-value.js";
import { decoded, isSealed, type PayloadCodec, type PayloadPlace } from "../storage/codec.js";
import { ENCRYPTION, type EncryptionOption } from "../storage/encryption-option.js";
import { DatabaseConnection } from "../storage/indexeddb/database-connection.js";
import { refuseLocked } from "../storage/indexeddb/keyless.js";
import { storedBy, type StoredBy } from "../storage/indexeddb/stored-by.js";
import { corrupt, isSerialized, placeOf } from "./checks.js";
import { configOf, invalid, namesIn, namespaceOf, type CheckpointName } from "./config.js";
import { placeOfCheckpoint, placeOfMetadata, placeOfValue, placeOfWrite } from "./places.js";
import { PutBefore } from "./put-before.js";
import { readHistory, readPage, readTuple, type StoredTuple } from "./reads.js";
import {
  CONTENT,
  KEYS,
  saverLayout,
  type CheckpointRecord,
  type SaverConnection,
  type StoredValue,
  type ValueRecord,
  type WriteRecord,
} from "./schema.js";
import { deserialize, serializedCodec } from "./serialized.js";
import {
  deleteCheckpoint,
  deleteThread,
  prepareCheckpoint,
  prepareWrites,
  withoutKept,
  writeCheckpoint,
  writeWrites,
  type Encoding,
  type Target,
} from "./writes.js";

/** The saver's database and serializer. */
export interface IndexedDBSaverOptions {
  /** The saver's own database is `<dbName>.langgraph`. Default "ag-ui-local-runtime". */
  readonly dbName?: string;
  /** The user whose checkpoints they are: that of the runner. Default: none. */
  readonly user?: string;
  /** Serializes values. Default: LangGraph's JsonPlusSerializer. */
  readonly serde?: SerializerProtocol;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly clock?: Clock;
  /** Encrypts what is stored: an Encryption, which may be that of the runtime, too. */
  readonly encryption?: EncryptionOption;
}

const NAMES: Names<IndexedDBSaverOptions> = {
  dbName: ID,
  user: USER,
  serde: ["dumpsTyped", "loadsTyped"],
  openTimeoutMs: TIMEOUT,
  clock: CLOCK,
  encryption: ENCRYPTION,
};

const RECORD = [isRecord, "a plain object"] as const;

const LIST_OPTIONS: Names<CheckpointListOptions> = {
  limit: [(given) => typeof given === "number" && !Number.isNaN(given), "a number"],
  before: OBJECT,
  filter: OBJECT,
};

/**
 * Keeps the checkpoints of LangGraph.js in IndexedDB: in a page, in workers, in Node with fake-indexeddb. Opens at the
 * first use. All savers with the same `dbName` share their data, in any context; what a call changes it changes in one
 * transaction, so a crash leaves all of it or none.
 *
 * Errors are RunnerErrors: those of storage in RunnerErrorCode, `invalid-input` before anything is written.
 */
export class IndexedDBSaver extends BaseCheckpointSaver {
  private readonly connection: SaverConnection;
  private readonly stored: StoredBy;
  private readonly codec: PayloadCodec;
  private readonly putBefore = new PutBefore();

  /** @throws RunnerError `invalid-input` for a wrong option */
  constructor(options: IndexedDBSaverOptions = {}) {
    checkNames(options, NAMES, { of: "IndexedDBSaver" });
    const { dbName = DEFAULT_DB_NAME, user, serde, openTimeoutMs, clock, encryption } = options;
    super(serde);
    const connection: SaverConnection = new DatabaseConnection({
      dbName: langGraphDbName(userDbName(user, dbName)),
      layout: saverLayout,
      clock,
      openTimeoutMs,
      onGone: () => this.stored.gone(),
    });
    this.connection = connection;
    this.stored = storedBy(encryption, {
      connection,
      keysAt: KEYS,
      content: CONTENT,
      encryptRest: async (ring, signal) =>
        (await loaded(import("./encrypt-rest.js"))).encryptRest(connection, ring, signal),
    });
    this.codec = serializedCodec(this.stored.codec);
  }

  /** The checkpoint that the config names, or the newest of its thread and namespace. */
  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const names = namesIn(config);
    if (names.threadId === undefined) return undefined;
    await this.refuseLocked();
    const stored = await readTuple(this.connection, namespaceOf(names), names.id);
    return stored && this.tupleOf(stored);
  }

  /**
   * Checkpoints, newest first: of all threads, of a thread, or of one namespace of it. Checkpoints saved
   * during the read may be missing.
   *
   * @param options `before`: only checkpoints older than this config's; `filter`: only those whose metadata has these
   *   values; `limit`: at most this many
   */
  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const names = namesIn(config);
    checkNames(options, LIST_OPTIONS, { of: "list", isOpen: true });
    const { limit, before, filter } = options;
    const beforeId = namesIn(before).id;
    let left = limit ?? Infinity;
    let after: CheckpointName | undefined;
    await this.refuseLocked();
    do {
      if (left <= 0) return;
      const page = await readPage(this.connection, names, beforeId, after, filter === undefined ? left : Infinity);
      for (const record of page.records) {
        if (filter !== undefined && !matches(await this.metadataOf(record), filter)) continue;
        const stored = await readTuple(this.connection, record, record.id);
        // Deleted in the meantime.
        if (stored === undefined) continue;
        yield await this.tupleOf(stored);
        left--;
        if (left <= 0) return;
      }
      after = page.last;
    } while (after !== undefined);
  }

  /**
   * Saves a checkpoint: the values of the channels in `newVersions`, and references to the others.
   *
   * @param config its parent; a thread's first checkpoint has none
   * @returns the config that names it
   * Errors: RunnerError `unknown-thread` if the parent is gone, and was put here or has values that are to be kept: the thread
   * was deleted in the meantime. Nothing is then written.
   */
  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const names = namesIn(config);
    // Anything else would be saved, and make the thread unreadable.
    for (const [field, given] of Object.entries({ checkpoint, metadata, newVersions })) checkKind(field, given, RECORD);
    const { channel_values: values = {}, channel_versions: versions } = checkpoint;
    checkKind("checkpoint.channel_values", values, RECORD);
    checkKind("checkpoint.channel_versions", versions, RECORD);
    const { id } = namesIn({ configurable: { checkpoint_id: checkpoint.id } });
    if (id === undefined) throw invalid("checkpoint.id", "must be set");
    const name = { ...namespaceOf(names), id };
    let prepared = await prepareCheckpoint(this.encoding, name, names.id, checkpoint, metadata, newVersions);
    for (;;) {
      const missing = await writeCheckpoint(this.target, prepared);
      if (missing.length === 0) break;
      prepared = await withoutKept(this.encoding, prepared, missing);
    }
    return configOf(name);
  }

  /**
   * Saves what a task wrote, beside the checkpoint that the task started from. Errors: RunnerError `unknown-thread` if that
   * was put here, and deleted in the meantime.
   */
  override async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath = "",
  ): Promise<void> {
    const names = namesIn(config);
    const { id } = names;
    if (id === undefined) throw invalid("checkpoint_id", "must be set");
    checkKind("writes", writes, LIST);
    const records = await prepareWrites(this.encoding, { ...namespaceOf(names), id }, writes, taskId, taskPath);
    await writeWrites(this.target, records);
  }

  /**
   * Deletes the checkpoint that the config names, or the newest of its thread and namespace, also one that cannot be read: the
   * thread then goes on from the one before. A missing checkpoint is not an error.
   */
  async deleteCheckpoint(config: RunnableConfig): Promise<void> {
    const names = namesIn(config);
    await deleteCheckpoint(this.connection, namespaceOf(names), names.id);
  }

  /** Deletes all checkpoints and writes of a thread, in all its namespaces. An unknown thread is not an error. */
  override async deleteThread(threadId: string): Promise<void> {
    await deleteThread(this.connection, namespaceOf(namesIn({ configurable: { thread_id: threadId } })).threadId);
  }

  /** Reads only the requested channels of each ancestor. */
  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const names = namesIn(options.config);
    checkKind("channels", options.channels, TEXTS);
    await this.refuseLocked();
    const history =
      names.threadId === undefined
        ? { seeds: [], writes: [] }
        : await readHistory(this.connection, namespaceOf(names), names.id, options.channels);
    const writes = await Promise.all(history.writes.map((write) => this.writeOf(write)));
    const seeds = await Promise.all(
      history.seeds.map(
        async (seed) => [seed.channel, await this.channelValue(seed, { ...seed, id: seed.writer })] as const,
      ),
    );
    const seedOf = new Map(seeds);
    return Object.fromEntries(
      options.channels.map((channel) => [
        channel,
        {
          writes: writes.filter(([, to]) => to === channel),
          ...(seedOf.has(channel) && { seed: seedOf.get(channel) }),
        },
      ]),
    );
  }

  /**
   * A whole number and a random fraction: without it, two branches from one checkpoint would give different values the same
   * version. In a thread of a saver whose versions are texts, it is a text.
   */
  override getNextVersion(current: number | undefined): number {
    // LangGraph hands on what the checkpoint has.
    const given: unknown = current;
    if (typeof given === "string") return textAfter(given) as unknown as number;
    return Math.floor(super.getNextVersion(current)) + Math.random();
  }

  /** Later calls fail. */
  close(): Promise<void> {
    this.stored.close();
    return this.connection.close();
  }

  /** Without the key nobody is shown what is not encrypted yet, or told what is not there. */
  private refuseLocked(): Promise<void> {
    return refuseLocked(this.connection, this.stored.codec, KEYS);
  }

  private get target(): Target {
    const { connection, codec, putBefore } = this;
    return { connection, codec, putBefore };
  }

  private get encoding(): Encoding {
    return { serde: this.serde, codec: this.codec };
  }

  private async tupleOf({ record, values, writes, sends }: StoredTuple): Promise<CheckpointTuple> {
    const { threadId, ns, parentId } = record;
    const [body, metadata, channels, pendingWrites, pendingSends] = await Promise.all([
      this.load(record.checkpoint, placeOfCheckpoint(record), "checkpoints", record),
      this.metadataOf(record),
      Promise.all(values.map(async (value) => [value.channel, await this.channelValue(value, record)] as const)),
      Promise.all(writes.map((write) => this.writeOf(write))),
      sends && Promise.all(sends.map(async (send) => (await this.writeOf(send))[2])),
    ]);
    const versions = isRecord(body) ? body["channel_versions"] : undefined;
    if (!isRecord(body) || !isRecord(versions) || !namesTheSame(record, versions, body["channel_values"])) {
      throw corrupt("checkpoints", record);
    }
    // LangGraph's own type: partly checked here, the rest is up to LangGraph and its serializer.
    const checkpoint = { ...body, channel_values: Object.fromEntries(channels) } as unknown as Checkpoint;
    return {
      config: configOf(record),
      checkpoint: pendingSends === undefined ? checkpoint : withSends(checkpoint, pendingSends),
      metadata,
      pendingWrites,
      ...(parentId !== undefined && { parentConfig: configOf({ threadId, ns, id: parentId }) }),
    };
  }

  private async metadataOf(record: CheckpointRecord): Promise<CheckpointMetadata> {
    const metadata = await this.load(record.metadata, placeOfMetadata(record), "checkpoints", record);
    if (!isRecord(metadata)) throw corrupt("checkpoints", record);
    // As with the checkpoint: it comes from LangGraph.
    return metadata as CheckpointMetadata;
  }

  private async writeOf(write: WriteRecord): Promise<CheckpointPendingWrite> {
    const value = await this.load(write.value, placeOfWrite(write), "writes", { ...write, id: write.checkpointId });
    return [write.taskId, write.channel, value];
  }

  private channelValue(record: ValueRecord, at: CheckpointName): Promise<unknown> {
    return this.load(record.value, placeOfValue(record), "values", at);
  }

  private async load(stored: StoredValue, place: PayloadPlace, store: string, at: CheckpointName): Promise<unknown> {
    const refused = (): RunnerError => corrupt(store, at);
    const value = await decoded(this.codec, stored, place, refused);
    if (!isSerialized(value)) throw refused();
    return deserialize(this.serde, value, placeOf(store, at));
  }
}

/**
 * Of an encrypted checkpoint, the values that it references are of the channels and versions that its body names: references
 * are found when it is written, and cannot be encrypted with it. Its own values are bound to it.
 *
 * @param named the channels; an empty object in what older builds saved
 */
function namesTheSame(
  { checkpoint, channels, id }: CheckpointRecord,
  versions: Readonly<Record<string, unknown>>,
  named: unknown,
): boolean {
  if (!isSealed(checkpoint)) return true;
  const there = new Set<unknown>(channels.map(({ channel }) => channel));
  return (
    channels.every(({ channel, version, writer }) => writer === id || versions[channel] === version) &&
    (!Array.isArray(named) || (named.length === channels.length && named.every((name) => there.has(name))))
  );
}

/** A version that LangGraph, which compares texts as such, takes for a later one. */
function textAfter(version: string): string {
  const digits = /^\d*/.exec(version)![0];
  const next = String(Number(digits) + 1).padStart(digits.length, "0");
  // A number of more digits would be the smaller text.
  return `${next.length > digits.length ? version : next}.${String(Math.random()).slice(2)}`;
}

/** A filter value of `undefined` matches metadata without that key. */
const matches = (metadata: object, filter: Readonly<Record<string, unknown>>): boolean =>
  Object.entries(filter).every(([key, value]) =>
    sameValue(Object.hasOwn(metadata, key) ? (metadata as Record<string, unknown>)[key] : undefined, value),
  );

/** Migrates an older checkpoint format as LangGraph does: the sends become a channel. */
function withSends(checkpoint: Checkpoint, sends: readonly unknown[]): Checkpoint {
  const versions = Object.values(checkpoint.channel_versions);
  // Deterministic: every read gives the same.
  const version = versions.length > 0 ? maxChannelVersion(...versions) : 1;
  return {
    ...checkpoint,
    channel_values: { ...checkpoint.channel_values, [TASKS]: sends },
    channel_versions: { ...checkpoint.channel_versions, [TASKS]: version },
  };
}
