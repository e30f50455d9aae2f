import type { Clock } from "../../platform/clock.js";
import type { MakeId } from "../../platform/ids.js";
import { checkpointDbName, DEFAULT_DB_NAME, userDbName } from "../../platform/names.js";
import { invalidInput } from "../../run/errors.js";
import { checkNames, CLOCK, FUNCTION, ID, TIMEOUT, USER, type Names } from "../../run/options.js";
import { loaded } from "../../run/loaded.js";
import type { PayloadCodec } from "../../storage/codec.js";
import { ENCRYPTION, type EncryptionOption } from "../../storage/encryption-option.js";
import { DatabaseConnection } from "../../storage/indexeddb/database-connection.js";
import { storedBy, type StoredBy } from "../../storage/indexeddb/stored-by.js";
import { CheckedStore } from "../checked-store.js";
import { checkpointPruning } from "./prune.js";
import { checkpointReads } from "./reads.js";
import { checkpointLayout, KEYS } from "./schema.js";
import { checkpointWrites } from "./writes.js";

/** The database, and the dependencies of the store. */
export interface IndexedDBCheckpointStoreOptions {
  /**
   * The runner's database name; checkpoints are in `<dbName>.checkpoints`. All stores with the same name share their
   * data, in any context. Default "ag-ui-local-runtime".
   */
  readonly dbName?: string;
  /** The user whose checkpoints they are: that of the runner. Default: none. */
  readonly user?: string;
  /** How long opening the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly clock?: Clock;
  readonly ids?: MakeId;
  /** Encrypts what is stored: an Encryption, which may be that of the runtime, too. */
  readonly encryption?: EncryptionOption;
  /** Your own codec of what is stored, in place of `encryption`. What one has stored, the other cannot read. */
  readonly codec?: PayloadCodec;
}

const NAMES: Names<IndexedDBCheckpointStoreOptions> = {
  dbName: ID,
  user: USER,
  openTimeoutMs: TIMEOUT,
  clock: CLOCK,
  ids: FUNCTION,
  encryption: ENCRYPTION,
  codec: ["encode", "decode"],
};

/**
 * Keeps checkpoints in IndexedDB: saved checkpoints survive the death of tab, worker and browser, and power loss. For
 * pages and workers; in Node it works with `fake-indexeddb`. It opens at the first use; if that fails, the next call
 * retries.
 */
export class IndexedDBCheckpointStore extends CheckedStore {
  /** @throws RunnerError `invalid-input` for a wrong option */
  constructor(options: IndexedDBCheckpointStoreOptions = {}) {
    checkNames(options, NAMES, { of: "IndexedDBCheckpointStore" });
    const { dbName = DEFAULT_DB_NAME, user, openTimeoutMs, clock, encryption } = options;
    if (encryption !== undefined && options.codec !== undefined)
      throw invalidInput("codec", "IndexedDBCheckpointStore takes codec or encryption: give one of them");
    const connection = new DatabaseConnection({
      dbName: checkpointDbName(userDbName(user, dbName)),
      layout: checkpointLayout,
      clock,
      openTimeoutMs,
      onGone: () => stored.gone(),
    });
    const stored: StoredBy = storedBy(encryption, {
      connection,
      keysAt: KEYS,
      content: ["states"],
      encryptRest: async (ring, signal) =>
        (await loaded(import("./encrypt-rest.js"))).encryptRest(connection, ring, signal),
    });
    const { codec = stored.codec } = options;
    super(
      {
        ...checkpointReads(connection, codec),
        ...checkpointWrites(connection, codec),
        ...checkpointPruning(connection, codec),
        close: () => {
          stored.close();
          return connection.close();
        },
      },
      options,
    );
  }
}
