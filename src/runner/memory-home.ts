import type { OpenChannel } from "../platform/channel.js";
import { inProcessChannels } from "../platform/in-process-channel.js";
import { inProcessLockManager } from "../platform/in-process-locks.js";
import type { LockManagerLike } from "../platform/lock-manager.js";
import { memoryHomeKey } from "../platform/names.js";
import { emptyMemoryData, type MemoryData } from "../storage/memory/memory-data.js";

/** Where in-memory runners keep their threads, and how they meet. */
export interface MemoryHome {
  readonly data: MemoryData;
  readonly locks: LockManagerLike;
  readonly openChannel: OpenChannel;
  /** How to end the live runs of each runner that lives here. */
  readonly runners: Set<() => Promise<void>>;
}

/** A home that nobody else finds. */
export const newMemoryHome = (): MemoryHome => ({
  data: emptyMemoryData(),
  locks: inProcessLockManager(),
  openChannel: inProcessChannels(),
  runners: new Set(),
});

/**
 * The one home of this process (of this JavaScript realm). It is found by its symbol, so it outlives a hot reload of this
 * module; it can neither be deleted nor replaced, so there are never two.
 */
export function sharedMemoryHome(): MemoryHome {
  const known = Object.getOwnPropertyDescriptor(globalThis, memoryHomeKey)?.value as MemoryHome | undefined;
  if (known !== undefined) return known;
  const home = newMemoryHome();
  Object.defineProperty(globalThis, memoryHomeKey, { value: home, enumerable: false });
  return home;
}

/** Ends every live run in the home as stopped, then forgets all of its threads. */
export async function resetMemoryHome({ runners, data }: MemoryHome): Promise<void> {
  await Promise.all([...runners].map((endRuns) => endRuns()));
  data.threads.clear();
  data.live.clear();
  data.threadsOfRun.clear();
}
