import type { DBSchema, IDBPDatabase, IDBPTransaction, StoreNames } from "idb";
import type { Attempt } from "../../run/hosted.js";
import type { RecoveryNote } from "../../run/recovery.js";
import type { Chunk, RunStatus, SettledStatus, WaitingError } from "../../run/types.js";
import type { KeyRecord } from "../encryption/keys.js";
import type { DeviceName } from "../devices.js";
import type { Asker } from "../rows.js";
import type { ThreadHead } from "../run-store.js";
import type { AskedWaiting, RecoveryWaiting } from "../waiting.js";
import type { DatabaseConnection, DatabaseLayout } from "./database-connection.js";
import type { KeysAt } from "./keyless.js";

/**
 * The database's layout. History:
 *
 * 1. Every store known at that time (`search` is unused so far).
 * 2. An index on run ids alone; a stop request says what the run ends as (before: always `stopped`); heads of deleted and
 *    cut threads, and in `meta` what is still to be deleted of them.
 * 3. Indexes on message rows by the message that they follow, and on rows that reset the thread, to read single pages.
 * 4. A store of the runs that wait for their turn.
 * 5. Nothing new: older builds would read encrypted payloads as invalid, and write plain ones beside them.
 */
export const DB_VERSION = 5;

export type HeadRecord = ThreadHead;

export interface ThreadRecord {
  threadId: string;
  /** Payload: string. Empty ones are stored as they are. */
  title: string | Uint8Array;
  /** Somebody set the title. */
  named?: 1;
  agentId?: string;
  archived: 0 | 1;
  pinned: 0 | 1;
  createdAt: number;
  updatedAt: number;
  runCount: number;
  /** Older builds refuse a row without it. It is not kept up. */
  eventCount: number;
  /** About how many bytes its ended runs take, since the last cut; older builds did not write it. */
  bytes?: number;
  lastStatus?: SettledStatus;
  /** Its runs have not come from the other devices yet. */
  absent?: 1;
}

/** See `formerId`. */
export type FormerId = [runId: string, fingerprint: string] | [runId: string, fingerprint: string, answerId: string];

export interface RunRecord {
  threadId: string;
  runIndex: number;
  /** The id alone of one run of the thread that has it: the index is unique. */
  runId: string | FormerId;
  prevRunIndex: number | null;
  parentRunId?: string;
  agentId?: string;
  status: RunStatus;
  epoch: number;
  startedAt: number;
  endedAt?: number;
  eventCount?: number;
  fingerprint: string;
  attempt?: Attempt;
  closedFrom?: number;
  recovery?: RecoveryNote;
  device?: DeviceName;
  asker?: Asker;
  answerId?: string;
  leaves?: number;
  revised?: { readonly epoch: number; readonly from: number };
  /** Its part of the thread's; older builds did not write it. */
  bytes?: number;
  /** Payload: PersistedInput. */
  input: unknown;
  /** Payload: RunClosing. */
  closing?: unknown;
}

/** `entries` is a payload. */
export type ChunkRecord = Omit<Chunk, "entries"> & { readonly entries: unknown };

export interface MessageRecord {
  threadId: string;
  runIndex: number;
  n: number;
  messageId?: string;
  after?: string;
  addedBy?: number;
  /** The thread's messages start over with this row. */
  resets?: 1;
  /** Payload: Message; absent in a row that only resets. */
  message?: unknown;
}

export interface StateRecord {
  threadId: string;
  runIndex: number;
  /** Payload: State. */
  state: unknown;
  /** Payload: Interrupt[]. */
  interrupts: unknown;
}

/** Why a waiting run could not be started. `message` is a payload. */
export interface StoredFailure extends Omit<WaitingError, "message"> {
  readonly message: unknown;
}

/** `request`, if there is one, is a payload. */
export type WaitingRecord = (Omit<AskedWaiting, "error"> | Omit<RecoveryWaiting, "error">) & {
  readonly position: number;
  readonly error?: StoredFailure;
};

/** Records of a deleted or cut thread that are still to be deleted. In `meta`, by thread. */
export interface Garbage {
  /** Of the newest deletion or cut in it. */
  epoch: number;
  /** Runs below it go, with all their records. */
  below: number;
  /** Chunks of runs below it go. */
  chunksBelow: number;
  /** First and last of consecutive runs that go, with all their records. */
  runs: [number, number][];
}

export interface RuntimeSchema extends DBSchema {
  heads: { key: string; value: HeadRecord; indexes: { holder: string } };
  threads: {
    key: string;
    value: ThreadRecord;
    indexes: { updatedAt: [number, number]; agentId: [string, number, number] };
  };
  runs: {
    key: [string, number];
    value: RunRecord;
    indexes: { runId: [string, RunRecord["runId"]]; id: RunRecord["runId"] };
  };
  chunks: { key: [string, number, number]; value: ChunkRecord };
  messages: {
    key: [string, number, number];
    value: MessageRecord;
    indexes: { messageId: [string, string]; after: [string, string]; resets: [string, number, number] };
  };
  states: { key: [string, number]; value: StateRecord };
  meta: { key: string; value: number | string | Garbage | KeyRecord };
  search: { key: [string, number]; value: unknown };
  waiting: { key: [string, number]; value: WaitingRecord; indexes: { runId: [string, string] } };
}

type Database = IDBPDatabase<RuntimeSchema>;

export type Stores = StoreNames<RuntimeSchema>;

export type Connection = DatabaseConnection<RuntimeSchema>;
export type WriteTransaction = IDBPTransaction<RuntimeSchema, Stores[], "readwrite">;
export type ReadTransaction = IDBPTransaction<RuntimeSchema, Stores[], "readonly">;
type Upgrade = IDBPTransaction<RuntimeSchema, Stores[], "versionchange">;

/** The keys of an encrypted database: a KeyRecord. */
export const KEYS: KeysAt<RuntimeSchema> = ["meta", "keys"];

/** The counter of epochs, in `meta`. */
export const EPOCH = "epoch";

async function upgrade(db: Database, from: number, tx: Upgrade, newEpochs: () => number): Promise<void> {
  if (from < 1) {
    createStores(db);
    const first = newEpochs();
    if (first > 0) await tx.objectStore("meta").put(first, EPOCH);
  }
  if (from < 2) {
    tx.objectStore("runs").createIndex("id", "runId");
    let live = await tx.objectStore("heads").index("holder").openCursor();
    while (live !== null) {
      const { stop } = live.value;
      if (stop !== undefined) await live.update({ ...live.value, stop: { ...stop, as: "stopped" } });
      live = await live.continue();
    }
  }
  if (from < 3) {
    const messages = tx.objectStore("messages");
    // Few rows have these fields; the others are not in the indexes.
    messages.createIndex("after", ["threadId", "after"]);
    messages.createIndex("resets", ["threadId", "resets", "runIndex"]);
  }
  if (from < 4) {
    const waiting = db.createObjectStore("waiting", { keyPath: ["threadId", "position"] });
    waiting.createIndex("runId", ["threadId", "runId"], { unique: true });
  }
}

const STORES: readonly Stores[] = [
  "heads",
  "threads",
  "runs",
  "chunks",
  "messages",
  "states",
  "meta",
  "search",
  "waiting",
];

/** Stores with payloads in their records, in the order in which they are encrypted anew. */
export const PAYLOADS: readonly Stores[] = ["threads", "runs", "chunks", "messages", "states", "waiting"];

/** @param newEpochs the epochs of a new database start above it */
export const runtimeLayout = (newEpochs: () => number): DatabaseLayout<RuntimeSchema> => ({
  version: DB_VERSION,
  stores: STORES,
  small: ["heads", "runs", "meta"],
  upgrade: (db, from, tx) => upgrade(db, from, tx, newEpochs),
});

/** The stores of version 1. */
function createStores(db: Database): void {
  db.createObjectStore("heads", { keyPath: "threadId" }).createIndex("holder", "holder");
  const threads = db.createObjectStore("threads", { keyPath: "threadId" });
  threads.createIndex("updatedAt", ["archived", "updatedAt"]);
  threads.createIndex("agentId", ["agentId", "archived", "updatedAt"]);
  db.createObjectStore("runs", { keyPath: ["threadId", "runIndex"] }).createIndex("runId", ["threadId", "runId"], {
    unique: true,
  });
  db.createObjectStore("chunks", { keyPath: ["threadId", "runIndex", "firstSeq"] });
  db.createObjectStore("messages", { keyPath: ["threadId", "runIndex", "n"] }).createIndex("messageId", [
    "threadId",
    "messageId",
  ]);
  db.createObjectStore("states", { keyPath: ["threadId", "runIndex"] });
  db.createObjectStore("meta");
  db.createObjectStore("search");
}
