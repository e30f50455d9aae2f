import { systemClock, type Clock } from "../../platform/clock.js";
import { DEFAULT_DB_NAME } from "../../platform/names.js";
import { identityCodec, type PayloadCodec } from "../codec.js";
import type { RunStore } from "../run-store.js";
import { indexedDBChunks } from "./chunk-reads.js";
import { DatabaseConnection } from "./database-connection.js";
import { cut, deleteThread } from "./deletion.js";
import { indexedDBForeignEnds } from "./foreign-end.js";
import { sweep } from "./garbage.js";
import { indexedDBMessagePages } from "./message-pages.js";
import { indexedDBReads } from "./reads.js";
import { runtimeLayout } from "./schema.js";
import { indexedDBThreads } from "./threads.js";
import { indexedDBWrites } from "./writes.js";

export interface IndexedDBRunStoreOptions {
  /** Default: "ag-ui-local-runtime". */
  readonly dbName?: string;
  readonly clock?: Clock;
  readonly codec?: PayloadCodec;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  /** See ConnectionOptions. */
  readonly onOutdated?: (deleted: boolean) => Promise<void>;
  /** See ConnectionOptions. */
  readonly onGone?: (deleted: boolean) => void;
  /** The first epoch of a new database is one more. Default 0; see {@link epochBefore}. */
  readonly newEpochs?: () => number;
}

/** The log in IndexedDB. Opened at the first use. Errors: those of storage in RunnerErrorCode. */
export function indexedDBRunStore(options: IndexedDBRunStoreOptions = {}): RunStore {
  const codec = options.codec ?? identityCodec;
  const connection = new DatabaseConnection({
    dbName: options.dbName ?? DEFAULT_DB_NAME,
    layout: runtimeLayout(options.newEpochs ?? (() => 0)),
    clock: options.clock ?? systemClock,
    openTimeoutMs: options.openTimeoutMs ?? 10_000,
    onOutdated: options.onOutdated ?? (() => Promise.resolve()),
    ...(options.onGone !== undefined && { onGone: options.onGone }),
  });
  return {
    ...indexedDBReads(connection, codec),
    ...indexedDBThreads(connection),
    ...indexedDBWrites(connection, codec),
    ...indexedDBForeignEnds(connection, codec),
    chunks: indexedDBChunks(connection, codec),
    messagePage: indexedDBMessagePages(connection, codec),
    deleteThread: (threadId) => deleteThread(connection, threadId),
    cut: (...at) => cut(connection, codec, ...at),
    // Loaded when a host is idle.
    repack: async (...run) => (await import("./repack.js")).repack(connection, codec, ...run),
    sweep: () => sweep(connection),
    close: () => connection.close(),
  };
}
