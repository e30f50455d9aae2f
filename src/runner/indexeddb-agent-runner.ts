import { deleteDB } from "idb";
import { openBroadcastChannel, type OpenChannel } from "../platform/channel.js";
import { systemClock, type Clock } from "../platform/clock.js";
import { defaultLocks, type Locks } from "../platform/locks.js";
import { DEFAULT_DB_NAME } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import { indexedDBRunStore } from "../storage/indexeddb/indexeddb-run-store.js";
import { LocalAgentRunner } from "./local-agent-runner.js";
import type { LocalAgentRunnerOptions } from "./options.js";

export interface IndexedDBAgentRunnerOptions extends LocalAgentRunnerOptions {
  /** Name of the database. All runners of one name, in whichever context, are one. Default "ag-ui-local-runtime". */
  readonly dbName?: string;
  /** How long opening or deleting the database may take, in ms. Default 10,000. */
  readonly openTimeoutMs?: number;
  readonly openChannel?: OpenChannel;
  readonly locks?: Locks;
}

/**
 * Runs agents and keeps their threads in IndexedDB. What it hands out is committed first, so it survives the death of
 * the process; each thread has one live run over all runners of the origin with this `dbName`.
 *
 * In Node it works on `fake-indexeddb` (import "fake-indexeddb/auto" first).
 */
export class IndexedDBAgentRunner extends LocalAgentRunner {
  /** @throws RunnerError `insecure-context` where the browser has no Web Locks; `invalid-input` for a wrong option */
  constructor(options: IndexedDBAgentRunnerOptions = {}) {
    const { dbName = DEFAULT_DB_NAME, openTimeoutMs = 10_000, openChannel = openBroadcastChannel } = options;
    const locks = options.locks ?? defaultLocks();
    if (locks === undefined) throw new RunnerError("insecure-context");
    super(
      {
        dbName,
        locks,
        openChannel,
        openStore: (clock, onOutdated) => indexedDBRunStore({ dbName, clock, onOutdated, openTimeoutMs }),
        deleteStore: () => deleteDatabase(dbName, options.clock ?? systemClock, openTimeoutMs),
      },
      options,
    );
  }
}

/** Waits for the connections that other contexts have: ours give way. */
async function deleteDatabase(dbName: string, clock: Clock, timeoutMs: number): Promise<void> {
  const deleted = new AbortController();
  const tooLong = clock.after(timeoutMs, deleted.signal).then(() => {
    if (!deleted.signal.aborted) throw new RunnerError("storage-blocked", { dbName });
  });
  await Promise.race([deleteDB(dbName).finally(() => deleted.abort()), tooLong]);
}
