import type { ChannelVersions } from "@langchain/langgraph-checkpoint";
import type { DBSchema, IDBPTransaction, StoreNames } from "idb";
import type { KeyRecord } from "../storage/encryption/keys.js";
import type { DatabaseConnection, DatabaseLayout } from "../storage/indexeddb/database-connection.js";
import type { KeysAt } from "../storage/indexeddb/keyless.js";

/** History of the layout: 1, the first; 2, the keys of encrypted databases. */
const VERSION = 2;

/** A serialized value. */
export interface Serialized {
  readonly type: string;
  readonly data: Uint8Array;
}

/** Payload: a Serialized. */
export type StoredValue = Serialized | Uint8Array;

/** A number or a string, depending on the saver. This one issues numbers, and also stores versions of other savers. */
export type ChannelVersion = ChannelVersions[string];

/** References a channel's stored value: its version and the checkpoint that wrote it. */
export interface ChannelSource {
  readonly channel: string;
  readonly version: ChannelVersion;
  readonly writer: string;
}

/** A checkpoint without channel values, so that lists and walks do not read them. */
export interface CheckpointRecord {
  readonly threadId: string;
  readonly ns: string;
  readonly id: string;
  readonly parentId?: string;
  /** LangGraph's format of the checkpoint. Formats before 4 keep their sends in the parent's writes. */
  readonly format: number;
  readonly checkpoint: StoredValue;
  readonly metadata: StoredValue;
  readonly channels: readonly ChannelSource[];
}

/** A channel's value, stored once; its writer and later checkpoints reference it until the channel changes. */
export interface ValueRecord extends ChannelSource {
  readonly threadId: string;
  readonly ns: string;
  readonly value: StoredValue;
}

/** One write of a task that has ended, kept until the other tasks of its step have ended too. */
export interface WriteRecord {
  readonly threadId: string;
  readonly ns: string;
  readonly checkpointId: string;
  readonly taskId: string;
  /** Index among the task's writes; negative for LangGraph's own channels. */
  readonly idx: number;
  readonly taskPath: string;
  readonly channel: string;
  readonly value: StoredValue;
}

export interface SaverSchema extends DBSchema {
  checkpoints: {
    key: [threadId: string, ns: string, id: string];
    value: CheckpointRecord;
    /** For lists over all namespaces of a thread, or all threads. */
    indexes: { thread: [threadId: string, id: string, ns: string]; id: [id: string, threadId: string, ns: string] };
  };
  values: {
    key: [threadId: string, ns: string, channel: string, version: ChannelVersion, writer: string];
    value: ValueRecord;
  };
  writes: {
    key: [threadId: string, ns: string, checkpointId: string, taskId: string, idx: number];
    value: WriteRecord;
  };
  /** The keys of an encrypted database, under one key. */
  keys: { key: string; value: KeyRecord };
}

export type Stores = StoreNames<SaverSchema>;
export type SaverConnection = DatabaseConnection<SaverSchema>;
export type ReadTransaction = IDBPTransaction<SaverSchema, Stores[], "readonly">;
export type WriteTransaction = IDBPTransaction<SaverSchema, Stores[], "readwrite">;

/** The stores with payloads: all that belongs to threads. */
export const CONTENT = ["checkpoints", "values", "writes"] as const satisfies readonly Stores[];

export const KEYS: KeysAt<SaverSchema> = ["keys", "keys"];

export const saverLayout: DatabaseLayout<SaverSchema> = {
  version: VERSION,
  stores: [...CONTENT, "keys"],
  async upgrade(db, from) {
    if (from < 1) {
      const checkpoints = db.createObjectStore("checkpoints", { keyPath: ["threadId", "ns", "id"] });
      checkpoints.createIndex("thread", ["threadId", "id", "ns"]);
      checkpoints.createIndex("id", ["id", "threadId", "ns"]);
      db.createObjectStore("values", { keyPath: ["threadId", "ns", "channel", "version", "writer"] });
      db.createObjectStore("writes", { keyPath: ["threadId", "ns", "checkpointId", "taskId", "idx"] });
    }
    db.createObjectStore("keys");
  },
};

/** All keys with this prefix: an array sorts after every string and number. */
export const startingWith = (...key: readonly (string | number)[]): IDBKeyRange =>
  IDBKeyRange.bound([...key], [...key, []]);
