import { deleteDB } from "idb";
import { openBroadcastChannel, type OpenChannel } from "../platform/channel.js";
import { systemClock, type Clock } from "../platform/clock.js";
import { defaultLocks, type Locks } from "../platform/locks.js";
import { DEFAULT_DB_NAME, formerLeaseDbName, userDbName } from "../platform/names.js";
import { contextLocks } from "../platform/context-locks.js";
import { epochBefore } from "../run/epochs.js";
import { RunnerError } from "../run/errors.js";
import { checkNames, FUNCTION, ID, TIMEOUT, type Names } from "../run/options.js";
import { ENCRYPTION, type EncryptionOption } from "../storage/encryption-option.js";
import { indexedDBRunStore } from "../storage/indexeddb/indexeddb-run-store.js";
import { LocalAgentRunner } from "./local-agent-runner.js";
import { LIMITS_ELSEWHERE, RUNNER_NAMES, type LocalAgentRunnerOptions } from "./options.js";
import { LIMITS } from "./keep/limits.js";

export interface IndexedDBAgentRunnerOptions extends LocalAgentRunnerOptions {
  /** Name of the database. Runners of one name share it, in any context. Default "ag-ui-local-runtime". */
  readonly dbName?: string;
  /** Encrypts what is stored: an Encryption, or the options of one. Default: nothing is encrypted. */
  readonly encryption?: EncryptionOption;
  /** How long opening or deleting the database may take, in ms (`Infinity`: as long as it takes). Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly openChannel?: OpenChannel;
  readonly locks?: Locks;
}

const NAMES: Names<IndexedDBAgentRunnerOptions> = {
  ...RUNNER_NAMES,
  dbName: ID,
  encryption: ENCRYPTION,
  openTimeoutMs: TIMEOUT,
  openChannel: FUNCTION,
  locks: ["hold", "whenFree", "tryHold", "steal"],
};

/**
 * Runs agents and keeps their threads in IndexedDB. Events are committed before they are handed out, so they survive
 * the death of the process; each thread has one live run across all runners of the origin with this `dbName`.
 *
 * In Node it works on `fake-indexeddb` (import "fake-indexeddb/auto" first).
 */
export class IndexedDBAgentRunner extends LocalAgentRunner {
  /**
   * Where the browser has no Web Locks (plain http), only the fence in the thread's head row enforces one live run, and
   * hosts check over a BroadcastChannel whether the others are alive.
   *
   * @throws RunnerError `invalid-input` for a wrong option
   */
  constructor(options: IndexedDBAgentRunnerOptions = {}) {
    checkNames(options, NAMES, { of: "IndexedDBAgentRunner", elsewhere: LIMITS_ELSEWHERE });
    checkNames(options.limits, LIMITS, {
      of: "IndexedDBAgentRunner",
      within: "limits",
      elsewhere: { maxBytes: "the browser's quota bounds a database" },
    });
    const { openTimeoutMs = 10_000, openChannel = openBroadcastChannel } = options;
    const dbName = userDbName(options.user, options.dbName ?? DEFAULT_DB_NAME);
    const { clock = systemClock, encryption } = options;
    const locks = options.locks ?? defaultLocks() ?? contextLocks({ openChannel, clock });
    super(
      {
        dbName,
        durability: "durable",
        locks,
        openChannel,
        openStore: (events) =>
          indexedDBRunStore({
            dbName,
            encryption,
            ...events,
            openTimeoutMs,
            newEpochs: () => epochBefore(Math.random()),
          }),
        deleteStore: async () => {
          for (const name of [dbName, formerLeaseDbName(dbName)]) await deleteDatabase(name, clock, openTimeoutMs);
        },
      },
      options,
    );
    this.onClosed(() => void locks.close?.());
    // Without Web Locks, earlier builds kept leases in a separate database. A live run may be one of theirs and would
    // end as broken without its lease: then a later start deletes them. An old and a new build running at once do not
    // see each other's claims, so the old one can break a live run of the new one; the fence keeps the log right.
    if (locks.contextOnly === true) {
      void this.opened
        .then(() => this.engine.parts.store.liveHeads())
        .then((live) => (live.length === 0 ? deleteDB(formerLeaseDbName(dbName)) : undefined))
        .catch(() => undefined);
    }
  }
}

/** Waits for other contexts to close their connections: ours do so on request. */
async function deleteDatabase(dbName: string, clock: Clock, timeoutMs: number): Promise<void> {
  const deleted = new AbortController();
  const tooLong = clock.after(timeoutMs, deleted.signal).then(() => {
    if (!deleted.signal.aborted) throw new RunnerError("storage-blocked", { dbName });
  });
  await Promise.race([deleteDB(dbName).finally(() => deleted.abort()), tooLong]);
}
