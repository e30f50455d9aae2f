import { systemClock, type Clock } from "../../platform/clock.js";
import { DEFAULT_DB_NAME } from "../../platform/names.js";
import type { Interrupt, State } from "@ag-ui/client";
import { identityCodec, type PayloadCodec } from "../codec.js";
import type { RunStore } from "../run-store.js";
import { Connection } from "./connection.js";
import * as reads from "./reads.js";
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
}

/** The log in IndexedDB. Opens at the first use. Errors: those of storage in RunnerErrorCode. */
export function indexedDBRunStore(options: IndexedDBRunStoreOptions = {}): RunStore {
  const codec = options.codec ?? identityCodec;
  const connection = new Connection({
    dbName: options.dbName ?? DEFAULT_DB_NAME,
    clock: options.clock ?? systemClock,
    openTimeoutMs: options.openTimeoutMs ?? 10_000,
    onOutdated: options.onOutdated ?? (() => Promise.resolve()),
  });
  return {
    claim: (request) => writes.claim(connection, codec, request),
    append: (held, chunk) => writes.append(connection, codec, held, chunk),
    settle: (held, settlement) => writes.settle(connection, codec, held, settlement),
    settleForeign: (...end) => writes.settleForeign(connection, ...end),
    derive: (...derived) => writes.derive(connection, codec, ...derived),
    requestStop: (...request) => writes.requestStop(connection, ...request),
    head: (threadId) => reads.readHead(connection, threadId),
    liveHeads: () => reads.readLiveHeads(connection),
    run: async (threadId, runIndex) => {
      const record = await reads.readRun(connection, threadId, runIndex);
      return record && writes.toRunRow(record);
    },
    runById: (threadId, runId) => reads.readRunById(connection, threadId, runId),
    runs: (threadId) => reads.readRuns(connection, threadId),
    input: (threadId, runIndex) => reads.readInput(connection, codec, threadId, runIndex),
    closing: (threadId, runIndex) => reads.readClosing(connection, codec, threadId, runIndex),
    chunks: (...range) => reads.readChunks(connection, codec, ...range),
    messageRows: (...range) => reads.readMessageRows(connection, codec, ...range),
    stateAfter: async (threadId, runIndex) => {
      const record = await connection.read(["states"], (tx) => tx.objectStore("states").get([threadId, runIndex]));
      return (
        record && {
          state: (await codec.decode(record.state)) as State,
          interrupts: (await codec.decode(record.interrupts)) as Interrupt[],
        }
      );
    },
    thread: (threadId) => reads.readThread(connection, threadId),
    threads: (query) => reads.readThreads(connection, query),
    close: () => connection.close(),
  };
}
