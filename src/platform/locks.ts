import { inProcessLockManager } from "./in-process-locks.js";
import type { LockManagerLike } from "./lock-manager.js";

/** A lock that this context holds. */
export interface HeldLock {
  /** Lets go; resolves once the platform has let go, so that an `ifAvailable` request issued then is granted. */
  release(): Promise<void>;
  /** Resolves when the lock is no longer ours: released, or stolen. */
  readonly gone: Promise<void>;
}

/** Locks that contexts hold for life, so that others hear of their end. */
export interface Lives {
  /** Takes a lock that is this context's own (a life lock): granted at once. */
  hold(name: string): Promise<HeldLock>;
  /** Resolves `true` when nobody holds the lock exclusively, `false` when `signal` aborted first. */
  whenFree(name: string, signal: AbortSignal): Promise<boolean>;
}

/** Locks that contexts compete for. Must be answered at once: nobody ever queues on one. */
export interface ThreadLocks {
  /** Takes the lock if nobody has it; `undefined` where somebody has. */
  tryHold(name: string): Promise<HeldLock | undefined>;
  /** Takes the lock from whoever has it. Does not stop the old holder's code. */
  steal(name: string): Promise<HeldLock>;
}

/** Web Locks as the runtime uses them, or what stands in for them. */
export interface Locks extends Lives, ThreadLocks {
  /**
   * Thread locks exclude this context alone (there are no Web Locks): holding one does not say that no other host
   * executes a run of the thread. The thread's head row does; see `runsElsewhere`.
   */
  readonly contextOnly?: boolean | undefined;
  /** There where the locks are one runner's own: it calls this when it has closed. */
  close?(): Promise<void>;
}

function request(manager: LockManagerLike, name: string, options: LockOptions): Promise<HeldLock | undefined> {
  return new Promise((resolve, reject) => {
    let letGo!: () => void;
    const held = new Promise<void>((done) => (letGo = done));
    const gone = manager
      .request(name, options, (lock) => {
        if (lock === null) return resolve(undefined);
        resolve({
          release: () => {
            letGo();
            return gone;
          },
          gone,
        });
        return held;
      })
      // Before the grant: the request failed. After it: stolen (AbortError), which `gone` tells.
      .catch((error: unknown) => reject(error))
      .then(() => undefined);
  });
}

/** The runtime's view of a LockManager. */
export function locksOf(manager: LockManagerLike): Locks {
  const granted = async (name: string, options: LockOptions): Promise<HeldLock> => {
    const lock = await request(manager, name, options);
    if (lock === undefined) throw new Error(`The lock ${name} was not granted`);
    return lock;
  };
  return {
    tryHold: (name) => request(manager, name, { mode: "exclusive", ifAvailable: true }),
    hold: (name) => granted(name, { mode: "exclusive" }),
    steal: (name) => granted(name, { mode: "exclusive", steal: true }),
    whenFree: async (name, signal) => {
      if (signal.aborted) return false;
      try {
        await manager.request(name, { mode: "shared", signal }, () => undefined);
        return true;
      } catch (error) {
        if (signal.aborted) return false;
        throw error;
      }
    },
  };
}

let ownManager: LockManagerLike | undefined;

/**
 * Web Locks where the platform has them. Node before 24 has none: there one process-wide manager stands in, which is
 * the whole truth as long as one process uses the database.
 *
 * @returns undefined in a browser context without Web Locks (an insecure context)
 */
export function defaultLocks(): Locks | undefined {
  const navigator = (globalThis as { navigator?: Navigator }).navigator;
  if (navigator?.locks !== undefined) return locksOf(navigator.locks);
  const inNode =
    typeof (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node === "string";
  if (!inNode) return undefined;
  ownManager ??= inProcessLockManager();
  return locksOf(ownManager);
}
