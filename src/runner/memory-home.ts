import type { OpenChannel } from "../platform/channel.js";
import { inProcessChannels } from "../platform/in-process-channel.js";
import { inProcessLockManager, type LockManagerLike } from "../platform/in-process-locks.js";
import { memoryHomesKey } from "../platform/names.js";
import { realmWide } from "../platform/realm.js";
import { epochBefore } from "../run/epochs.js";
import { emptyMemoryData, type MemoryData } from "../storage/memory/memory-data.js";

/** A runner, as its home knows it. */
export interface MemoryHost {
  /** Ends its live runs as stopped. */
  settleAll(): Promise<void>;
}

/** Where in-memory runners keep their threads, and how they communicate. */
export interface MemoryHome {
  readonly data: MemoryData;
  readonly locks: LockManagerLike;
  readonly openChannel: OpenChannel;
  /** The runners of this home. One that nobody references has no live run, so it is held weakly. */
  readonly runners: Set<WeakRef<MemoryHost>>;
}

/** A home that is not shared. */
export const newMemoryHome = (): MemoryHome => ({
  data: emptyMemoryData(epochBefore(Math.random())),
  locks: inProcessLockManager(),
  openChannel: inProcessChannels(),
  runners: new Set(),
});

/** The homes of this process by name. */
const memoryHomes = (): Map<string, MemoryHome> => realmWide(memoryHomesKey, () => new Map());

/** The shared home of this name, made on first use. */
export function sharedMemoryHome(dbName: string): MemoryHome {
  const homes = memoryHomes();
  const home = homes.get(dbName) ?? newMemoryHome();
  homes.set(dbName, home);
  return home;
}

/** Resets the home of one name, or all of them: see {@link resetMemoryHome}. */
export async function resetSharedMemory(dbName?: string): Promise<void> {
  const homes = memoryHomes();
  const home = dbName === undefined ? [...homes.values()] : [homes.get(dbName)].flatMap((found) => found ?? []);
  await Promise.all(home.map(resetMemoryHome));
}

/** Ends every live run in the home as stopped, then forgets all of its threads and what waits in them. */
export async function resetMemoryHome({ runners, data }: MemoryHome): Promise<void> {
  // Before the live runs end: what waits behind them must not start.
  data.waiting?.clear();
  await Promise.all([...runners].map((runner) => runner.deref()?.settleAll()));
  data.waiting?.clear();
  data.threads.clear();
  data.live.clear();
  data.deleted.clear();
  data.threadsOfRun.clear();
}
