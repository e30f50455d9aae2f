import { openBroadcastChannel } from "../platform/channel.js";
import { inProcessChannels } from "../platform/in-process-channel.js";
import { inProcessLockManager } from "../platform/in-process-locks.js";
import { locksOf, type Locks } from "../platform/locks.js";
import { userDbName } from "../platform/names.js";
import { epochBefore } from "../run/epochs.js";
import { emptyMemoryData } from "../storage/memory/memory-data.js";
import { memoryRunStore } from "../storage/memory/memory-run-store.js";
import { LocalAgentRunner } from "./local-agent-runner.js";
import type { LocalAgentRunnerOptions } from "./options.js";
import { limitsInMemory } from "./keep/limits.js";

/**
 * Replaces the IndexedDBAgentRunner in a host that can store nothing: its threads are lost with it. Locks and channel
 * are the origin's, so a thread still has one live run across all hosts; where the user denies the site these too
 * (`locks` undefined), there is no SharedWorker either, and each host has its own threads.
 */
export class UnsavedAgentRunner extends LocalAgentRunner {
  constructor(dbName: string, locks: Locks | undefined, options: LocalAgentRunnerOptions) {
    const data = emptyMemoryData(epochBefore(Math.random()));
    super(
      {
        dbName: userDbName(options.user, dbName),
        durability: "memory",
        locks: locks ?? locksOf(inProcessLockManager()),
        openChannel: locks === undefined ? inProcessChannels() : openBroadcastChannel,
        openStore: () => memoryRunStore(data),
        deleteStore: () => Promise.resolve(),
      },
      { ...options, limits: limitsInMemory(options.limits) },
    );
  }
}
