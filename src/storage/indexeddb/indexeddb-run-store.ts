import { DEFAULT_DB_NAME } from "../../platform/names.js";
import { identityCodec, type PayloadCodec } from "../codec.js";
import type { RunStore } from "../run-store.js";
import { indexedDBChunks } from "./chunk-reads.js";
import { DatabaseConnection, type ConnectionOptions } from "./database-connection.js";
import { cut, deleteThread } from "./deletion.js";
import { indexedDBForeignEnds } from "./foreign-end.js";
import { sweep } from "./garbage.js";
import { indexedDBMessagePages } from "./message-pages.js";
import { indexedDBReads } from "./reads.js";
import { runtimeLayout, type RuntimeSchema } from "./schema.js";
import { indexedDBThreads } from "./threads.js";
import { indexedDBWrites } from "./writes.js";

export interface IndexedDBRunStoreOptions extends Partial<Omit<ConnectionOptions<RuntimeSchema>, "layout">> {
  readonly codec?: PayloadCodec;
  /** The epochs of a new database start above it. Default 0; see {@link epochBefore}. */
  readonly newEpochs?: () => number;
}

/** The log in IndexedDB. Opened at the first use. Errors: those of storage in RunnerErrorCode. */
export function indexedDBRunStore(options: IndexedDBRunStoreOptions = {}): RunStore {
  const { dbName = DEFAULT_DB_NAME, codec = identityCodec, newEpochs = () => 0 } = options;
  const connection = new DatabaseConnection({ ...options, dbName, layout: runtimeLayout(newEpochs) });
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
