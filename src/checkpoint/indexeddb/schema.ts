import type { DBSchema, IDBPDatabase, IDBPTransaction, StoreNames } from "idb";
import type { DatabaseConnection, DatabaseLayout } from "../../storage/indexeddb/database-connection.js";
import type { KeyRecord } from "../../storage/encryption/keys.js";
import type { KeysAt } from "../../storage/indexeddb/keyless.js";
import type { CheckpointOrigin } from "../checkpoint.js";
import type { Listed } from "../derive.js";

/**
 * A checkpoint's sort position: timestamp and turn, both negated, so that keys sort newest first and a page is one
 * `getAll`.
 */
export type Place = [number, number];

/** Listed metadata. The state is in another store, so that lists do not read it. */
export interface MetadataRecord extends Listed {
  place: Place;
  /** The `saveIf` call that wrote it, so that a retry recognizes its own write. */
  token?: string;
}

export interface StateRecord {
  id: string;
  /** Payload: Checkpoint. */
  checkpoint: unknown;
}

/** A run's fork source, kept as long as the run has checkpoints. */
export interface OriginRecord {
  runId: string;
  from: CheckpointOrigin;
}

/**
 * The highest turn issued: a new checkpoint is newer than every place that a caller may hold, even if that checkpoint has
 * been deleted. Stored with the origins, under an id that no run has.
 */
export interface TurnRecord {
  runId: typeof TURNS;
  turn: number;
}

export const TURNS = "";

export interface CheckpointSchema extends DBSchema {
  metadata: {
    key: string;
    value: MetadataRecord;
    indexes: {
      run: [string, Place];
      node: [string, string, Place];
      graph: [string, Place];
      graphRun: [string, string, Place];
    };
  };
  states: { key: string; value: StateRecord };
  origins: { key: string; value: OriginRecord | TurnRecord };
  /** The keys of an encrypted database, under one key. */
  keys: { key: string; value: KeyRecord };
}

export type CheckpointStores = StoreNames<CheckpointSchema>;
export type CheckpointConnection = DatabaseConnection<CheckpointSchema>;
export type CheckpointRead = IDBPTransaction<CheckpointSchema, CheckpointStores[], "readonly">;
export type CheckpointWrite = IDBPTransaction<CheckpointSchema, CheckpointStores[], "readwrite">;

export const STORES: CheckpointStores[] = ["metadata", "states", "origins", "keys"];

export const KEYS: KeysAt<CheckpointSchema> = ["keys", "keys"];

/** History: 1, the first; 2, the keys of encrypted databases. */
export const checkpointLayout: DatabaseLayout<CheckpointSchema> = {
  version: 2,
  stores: STORES,
  upgrade(db, from) {
    if (from < 1) createStores(db);
    db.createObjectStore("keys");
    return Promise.resolve();
  },
};

/** The stores of version 1. */
function createStores(db: IDBPDatabase<CheckpointSchema>): void {
  const metadata = db.createObjectStore("metadata", { keyPath: "id" });
  metadata.createIndex("run", ["runId", "place"]);
  metadata.createIndex("node", ["runId", "nodeId", "place"]);
  metadata.createIndex("graph", ["graphId", "place"]);
  metadata.createIndex("graphRun", ["graphId", "runId", "place"]);
  db.createObjectStore("states", { keyPath: "id" });
  db.createObjectStore("origins", { keyPath: "runId" });
}
