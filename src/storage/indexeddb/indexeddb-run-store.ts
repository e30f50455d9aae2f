import { systemClock, type Clock } from "../../platform/clock.js";
import { DEFAULT_DB_NAME } from "../../platform/names.js";
import { identityCodec, type PayloadCodec } from "../codec.js";
import type { RunStore } from "../run-store.js";
import { DatabaseConnection } from "./database-connection.js";
import { readChunks } from "./chunk-reads.js";
import * as deletion from "./deletion.js";
import * as foreign from "./foreign-end.js";
import { sweep } from "./garbage.js";
import { readHead, readLiveHeads } from "./heads.js";
import { readMessagePage } from "./message-pages.js";
import * as reads from "./reads.js";
import { toRunRow } from "./records.js";
import { runtimeLayout } from "./schema.js";
import { readThread, readThreads } from "./thread-reads.js";
import { updateThread } from "./thread-update.js";
import * as writes from "./writes.js";

export interface IndexedDBRunStoreOptions {
  /** Default: "ag-ui-local-runtime". */
  readonly dbName?: string;
  readonly clock?: Clock;
  readonly codec?: PayloadCodec;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  /** A newer build waits to upgrade the database, or somebody to delete it: called before the connection is given up. */
  readonly onOutdated?: (deleted: boolean) => Promise<void>;
  /** See ConnectionOptions. */
  readonly onGone?: (deleted: boolean) => void;
  /** What the epochs of a new database count on from. Default 0; see {@link epochBefore}. */
  readonly newEpochs?: () => number;
}

/** The log in IndexedDB. Opens at the first use. Errors: those of storage in RunnerErrorCode. */
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
    claim: (request) => writes.claim(connection, codec, request),
    append: (held, chunk) => writes.append(connection, codec, held, chunk),
    settle: (held, settlement) => writes.settle(connection, codec, held, settlement),
    settleForeign: (...end) => foreign.settleForeign(connection, ...end),
    derive: (...derived) => foreign.derive(connection, codec, ...derived),
    requestStop: (...request) => writes.requestStop(connection, ...request),
    head: (threadId) => readHead(connection, threadId),
    liveHeads: () => readLiveHeads(connection),
    run: async (threadId, runIndex) => {
      const record = await reads.readRun(connection, threadId, runIndex);
      return record && toRunRow(record);
    },
    runById: (threadId, runId, fingerprint) => reads.readRunById(connection, threadId, runId, fingerprint),
    runsOfId: (runId, limit) => reads.readRunsOfId(connection, runId, limit),
    runsBefore: (query) => reads.readRunsBefore(connection, query),
    runs: (threadId) => reads.readRuns(connection, threadId),
    input: (threadId, runIndex) => reads.readInput(connection, codec, threadId, runIndex),
    closing: (threadId, runIndex) => reads.readClosing(connection, codec, threadId, runIndex),
    chunks: (...range) => readChunks(connection, codec, ...range),
    messageRows: (...range) => reads.readMessageRows(connection, codec, ...range),
    messageForms: (threadId, messageIds) => reads.readMessageForms(connection, codec, threadId, messageIds),
    messagePage: (...page) => readMessagePage(connection, codec, ...page),
    stateAfter: (threadId, runIndex) => reads.readStateAfter(connection, codec, threadId, runIndex),
    thread: (threadId) => readThread(connection, threadId),
    threads: (query) => readThreads(connection, query),
    updateThread: (...update) => updateThread(connection, ...update),
    deleteThread: (threadId) => deletion.deleteThread(connection, threadId),
    cut: (...at) => deletion.cut(connection, codec, ...at),
    // Loaded where a host has nothing else to do.
    repack: async (...run) => (await import("./repack.js")).repack(connection, codec, ...run),
    sweep: () => sweep(connection),
    threadsBeyond: (keep) => deletion.threadsBeyond(connection, keep),
    close: () => connection.close(),
  };
}
