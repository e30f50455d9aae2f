import { locksOf } from "../platform/locks.js";
import { memoryRunStore } from "../storage/memory/memory-run-store.js";
import { LocalAgentRunner } from "./local-agent-runner.js";
import { newMemoryHome, resetMemoryHome, sharedMemoryHome } from "./memory-home.js";
import type { LocalAgentRunnerOptions } from "./options.js";

export interface InMemoryAgentRunnerOptions extends LocalAgentRunnerOptions {
  /**
   * `shared`: all runners of this process are one, and their threads outlive a hot reload. `isolated`: this runner has a
   * store of its own. Default `shared`.
   */
  readonly store?: "shared" | "isolated";
}

/**
 * Runs agents and keeps their threads in the memory of this process: for tests, previews and servers in development. The
 * same algorithm as {@link IndexedDBAgentRunner}, with the same promises for as long as the process lives.
 */
export class InMemoryAgentRunner extends LocalAgentRunner {
  /** @throws RunnerError `invalid-input` for a wrong option */
  constructor(options: InMemoryAgentRunnerOptions = {}) {
    const home = options.store === "isolated" ? newMemoryHome() : sharedMemoryHome();
    super(
      {
        dbName: "memory",
        durability: "memory",
        locks: locksOf(home.locks),
        openChannel: home.openChannel,
        openStore: () => memoryRunStore(home.data),
        deleteStore: () => resetMemoryHome(home),
      },
      options,
    );
    const endRuns = (): Promise<void> => this.settleAll();
    home.runners.add(endRuns);
    this.onClosed(() => home.runners.delete(endRuns));
  }
}

/**
 * Ends the live runs of all in-memory runners of this process as stopped and forgets their threads; isolated stores are
 * left alone. For the time between two tests.
 */
export const resetInMemoryStore = (): Promise<void> => resetMemoryHome(sharedMemoryHome());
