import type { BaseEvent, Message, State } from "@ag-ui/client";
import { locksOf } from "../platform/locks.js";
import { DEFAULT_MEMORY_NAME, hostLifeLockName, userDbName } from "../platform/names.js";
import type { ThreadRecord } from "../run/contract.js";
import { checkKind, checkNames, ID, oneOf, type Names } from "../run/options.js";
import { memoryRunStore } from "../storage/memory/memory-run-store.js";
import { LocalAgentRunner } from "./local-agent-runner.js";
import {
  newMemoryHome,
  resetMemoryHome,
  resetSharedMemory,
  sharedMemoryHome,
  type MemoryHome,
  type MemoryHost,
} from "./memory-home.js";
import { LIMITS_ELSEWHERE, RUNNER_NAMES, type LocalAgentRunnerOptions } from "./options.js";
import type { ThreadListQuery, ThreadSummary } from "../wire/shapes.js";
import { forOlder } from "../wire/protocol-versions.js";
import { atOnce, listAtOnce, ReadsAtOnce, type AtOnce, type ListAtOnce } from "./reads-at-once.js";
import { limitsInMemory, type MemoryLimits } from "./keep/limits.js";

export interface InMemoryAgentRunnerOptions extends LocalAgentRunnerOptions {
  /** Name of the store. Runners of one name in this process share it. Default "memory". */
  readonly dbName?: string;
  /**
   * `shared`: the runners of one `dbName` have one store, whose threads outlive a hot reload. `isolated`: this runner
   * has its own store. Default `shared`.
   */
  readonly store?: "shared" | "isolated";
  /** How much history is kept. Default: 1,000 threads, 100 runs of each, 512 MB in all. */
  readonly limits?: MemoryLimits;
}

const NAMES: Names<InMemoryAgentRunnerOptions> = { ...RUNNER_NAMES, dbName: ID, store: oneOf("shared", "isolated") };

/** Releases what a home holds for a runner that was garbage-collected without being closed. */
const abandoned = new FinalizationRegistry<{
  readonly home: MemoryHome;
  readonly self: WeakRef<MemoryHost>;
  readonly lifeLock: string;
}>(({ home, self, lifeLock }) => {
  home.runners.delete(self);
  // Its owner is gone, so nobody else can release the lock.
  void locksOf(home.locks)
    .steal(lifeLock)
    .then((lock) => lock.release());
});

/**
 * Runs agents and keeps their threads in this process's memory: for tests, previews and servers in development. The
 * same algorithm as {@link IndexedDBAgentRunner}, with the same promises for as long as the process lives.
 */
export class InMemoryAgentRunner extends LocalAgentRunner {
  /** CopilotKit's runtime checks this flag before it reads a runner's threads. */
  readonly ɵsupportsLocalThreadEndpoints = true;
  private readonly now: ReadsAtOnce;

  /** @throws RunnerError `invalid-input` for a wrong option */
  constructor(options: InMemoryAgentRunnerOptions = {}) {
    checkNames(options, NAMES, { of: "InMemoryAgentRunner", elsewhere: LIMITS_ELSEWHERE });
    const { store = "shared" } = options;
    const dbName = userDbName(options.user, options.dbName ?? DEFAULT_MEMORY_NAME);
    const home = store === "isolated" ? newMemoryHome() : sharedMemoryHome(dbName);
    super(
      {
        dbName,
        durability: "memory",
        isOneProcess: true,
        locks: locksOf(home.locks),
        openChannel: home.openChannel,
        openStore: () => memoryRunStore(home.data),
        deleteStore: () => resetMemoryHome(home),
      },
      { ...options, limits: limitsInMemory(options.limits) },
    );
    this.now = new ReadsAtOnce(home.data);
    const self = new WeakRef(this);
    home.runners.add(self);
    abandoned.register(this, { home, self, lifeLock: hostLifeLockName(dbName, this.hostId) }, self);
    this.onClosed(() => {
      home.runners.delete(self);
      abandoned.unregister(self);
    });
  }

  override listThreads(query?: ThreadListQuery): ListAtOnce<readonly ThreadSummary[], ThreadRecord> {
    return listAtOnce(super.listThreads(query), () => this.now.threads());
  }

  override getThreadMessages(threadId: string): ListAtOnce<Message[], Message> {
    return listAtOnce(super.getThreadMessages(threadId), () => this.now.messages(threadId));
  }

  override getThreadEvents(threadId: string): ListAtOnce<BaseEvent[], BaseEvent> {
    return listAtOnce(super.getThreadEvents(threadId), () => this.now.events(threadId).map(forOlder(this.lost)));
  }

  override getThreadState(threadId: string): AtOnce<State | undefined, State | null> {
    return atOnce(super.getThreadState(threadId), () => this.now.state(threadId));
  }

  override clearThreads(): Promise<number> {
    const cleared = super.clearThreads();
    cleared.catch(() => undefined);
    return cleared;
  }
}

/**
 * Ends the live runs of the in-memory runners of this process as stopped and forgets their threads; isolated stores are
 * kept. For use between tests.
 *
 * @param dbName only those of this name. Default: all
 */
export async function resetInMemoryStore(dbName?: string): Promise<void> {
  if (dbName !== undefined) checkKind("dbName", dbName, ID);
  await resetSharedMemory(dbName);
}
