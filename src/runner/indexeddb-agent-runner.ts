import { deleteDB } from "idb";
import { openBroadcastChannel, type OpenChannel } from "../platform/channel.js";
import { systemClock, type Clock } from "../platform/clock.js";
import { defaultLocks, type Locks } from "../platform/locks.js";
import { DEFAULT_DB_NAME, leaseDbName } from "../platform/names.js";
import { lazyLocks } from "../platform/lazy-locks.js";
import type { LeaseLocksOptions } from "../lock/lease-locks.js";
import { epochBefore } from "../run/epochs.js";
import { RunnerError } from "../run/errors.js";
import { checkNames, type Names } from "../run/options.js";
import { indexedDBRunStore } from "../storage/indexeddb/indexeddb-run-store.js";
import { LocalAgentRunner } from "./local-agent-runner.js";
import { LIMITS_ELSEWHERE, RUNNER_NAMES, type LocalAgentRunnerOptions } from "./options.js";
import type { RunnerLimits } from "./keep/retention.js";

export interface IndexedDBAgentRunnerOptions extends LocalAgentRunnerOptions {
  /** Name of the database. All runners of one name, in whichever context, are one. Default "ag-ui-local-runtime". */
  readonly dbName?: string;
  /** How long opening or deleting the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly openChannel?: OpenChannel;
  readonly locks?: Locks;
}

const NAMES: Names<IndexedDBAgentRunnerOptions> = {
  ...RUNNER_NAMES,
  dbName: true,
  openTimeoutMs: true,
  openChannel: true,
  locks: true,
};
const LIMITS: Names<RunnerLimits> = { maxThreads: true, maxRunsPerThread: true };

/**
 * Runs agents and keeps their threads in IndexedDB. What it hands out is committed first, so it survives the death of
 * the process; each thread has one live run over all runners of the origin with this `dbName`.
 *
 * In Node it works on `fake-indexeddb` (import "fake-indexeddb/auto" first).
 */
export class IndexedDBAgentRunner extends LocalAgentRunner {
  /**
   * Where the browser has no Web Locks (plain http), leases in a database stand in for them.
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
    const { dbName = DEFAULT_DB_NAME, openTimeoutMs = 10_000, openChannel = openBroadcastChannel } = options;
    const { clock = systemClock } = options;
    const given = options.locks ?? defaultLocks();
    const leases = given === undefined ? lazyLeases({ dbName, openTimeoutMs, openChannel, clock }) : undefined;
    const locks = given ?? leases!;
    super(
      {
        dbName,
        durability: "durable",
        locks,
        openChannel,
        openStore: (events) =>
          indexedDBRunStore({
            dbName,
            ...events,
            openTimeoutMs,
            newEpochs: () => epochBefore(Math.random()),
          }),
        deleteStore: async () => {
          await deleteDatabase(dbName, clock, openTimeoutMs);
          if (leases === undefined) return;
          await leases.close();
          await deleteDatabase(leaseDbName(dbName), clock, openTimeoutMs);
        },
      },
      options,
    );
    if (leases !== undefined) this.onClosed(() => void leases.close());
  }
}

const lazyLeases = (options: LeaseLocksOptions): ReturnType<typeof lazyLocks> =>
  lazyLocks(async () => (await import("../lock/lease-locks.js")).leaseLocks(options));

/** Waits for the connections that other contexts have: ours give way. */
async function deleteDatabase(dbName: string, clock: Clock, timeoutMs: number): Promise<void> {
  const deleted = new AbortController();
  const tooLong = clock.after(timeoutMs, deleted.signal).then(() => {
    if (!deleted.signal.aborted) throw new RunnerError("storage-blocked", { dbName });
  });
  await Promise.race([deleteDB(dbName).finally(() => deleted.abort()), tooLong]);
}
