import type { HeldLock, Locks } from "./locks.js";

/** Locks that can be released all at once. */
export interface ReleasableLocks extends Locks {
  /** Permanent: locks granted later are released as well. */
  releaseAll(): void;
}

export function releasableLocks(inner: Locks): ReleasableLocks {
  const held = new Set<HeldLock>();
  let released = false;
  const keep = (lock: HeldLock): HeldLock => {
    held.add(lock);
    if (released) void lock.release();
    void lock.gone.then(() => held.delete(lock));
    return lock;
  };
  return {
    async tryHold(name) {
      const lock = await inner.tryHold(name);
      return lock && keep(lock);
    },
    hold: async (name) => keep(await inner.hold(name)),
    steal: async (name) => keep(await inner.steal(name)),
    whenFree: (name, signal) => inner.whenFree(name, signal),
    contextOnly: inner.contextOnly,
    releaseAll() {
      released = true;
      for (const lock of held) void lock.release();
    },
  };
}
