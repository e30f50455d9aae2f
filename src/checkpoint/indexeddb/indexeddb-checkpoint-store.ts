import type { Clock } from "../../platform/clock.js";
import type { MakeId } from "../../platform/ids.js";
import { checkpointDbName, DEFAULT_DB_NAME } from "../../platform/names.js";
import { checkNames, CLOCK, FUNCTION, ID, TIMEOUT, type Names } from "../../run/options.js";
import { identityCodec, type PayloadCodec } from "../../storage/codec.js";
import { DatabaseConnection } from "../../storage/indexeddb/database-connection.js";
import { CheckedStore } from "../checked-store.js";
import { prune } from "./prune.js";
import { checkpointReads } from "./reads.js";
import { checkpointLayout } from "./schema.js";
import { checkpointWrites } from "./writes.js";

/** Which database, and what the store is given of its surroundings. */
export interface IndexedDBCheckpointStoreOptions {
  /**
   * The runner's database name; checkpoints are in `<dbName>.checkpoints`. All stores of one name, in whichever
   * context, share their data. Default "ag-ui-local-runtime".
   */
  readonly dbName?: string;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly clock?: Clock;
  readonly ids?: MakeId;
  readonly codec?: PayloadCodec;
}

const NAMES: Names<IndexedDBCheckpointStoreOptions> = {
  dbName: ID,
  openTimeoutMs: TIMEOUT,
  clock: CLOCK,
  ids: FUNCTION,
  codec: ["encode", "decode"],
};

/**
 * Keeps checkpoints in IndexedDB: what was saved survives the death of tab, worker and browser, and power loss. For
 * pages and workers; in Node it works on `fake-indexeddb`. Opens at the first use; after a failed call the next one
 * tries again.
 */
export class IndexedDBCheckpointStore extends CheckedStore {
  /** @throws RunnerError `invalid-input` for a wrong option */
  constructor(options: IndexedDBCheckpointStoreOptions = {}) {
    checkNames(options, NAMES, { of: "IndexedDBCheckpointStore" });
    const { dbName = DEFAULT_DB_NAME, openTimeoutMs, clock, codec = identityCodec } = options;
    const connection = new DatabaseConnection({
      dbName: checkpointDbName(dbName),
      layout: checkpointLayout,
      clock,
      openTimeoutMs,
    });
    super(
      {
        ...checkpointReads(connection, codec),
        ...checkpointWrites(connection, codec),
        prune: (...range) => prune(connection, ...range),
        close: () => connection.close(),
      },
      options,
    );
  }
}
