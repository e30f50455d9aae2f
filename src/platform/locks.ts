import { abortWith } from "./abort.js";
import type { Clock } from "./clock.js";
import { processLockManager, type LockManagerLike } from "./in-process-locks.js";

/** A lock that this context holds. */
export interface HeldLock {
  /** Resolves once the platform has released it, so that an `ifAvailable` request issued then is granted. */
  release(): Promise<void>;
  /** Resolves when the lock is no longer ours: released, or stolen. */
  readonly gone: Promise<void>;
}

/** Locks that contexts hold for life, so that others notice their end. */
export interface Lives {
  /** Takes a lock that is this context's own (a life lock): granted at once. */
  hold(name: string): Promise<HeldLock>;
  /** Resolves `true` when nobody holds the lock exclusively, `false` when `signal` aborted first. */
  whenFree(name: string, signal: AbortSignal): Promise<boolean>;
}

/** Whether nobody holds the lock at some time within `ms`; false when one of `signals` aborts before. */
export async function freeWithin(
  lives: Lives,
  name: string,
  ms: number,
  clock: Clock,
  ...signals: readonly AbortSignal[]
): Promise<boolean> {
  const waiting = abortWith(...signals);
  void clock.after(ms, waiting.signal).then(() => waiting.abort());
  const isFree = await lives.whenFree(name, waiting.signal);
  waiting.abort();
  return isFree;
}

/** Locks that contexts compete for. Requests must be answered at once; none may queue. */
export interface ThreadLocks {
  /** Takes the lock; `undefined` if it is held. */
  tryHold(name: string): Promise<HeldLock | undefined>;
  /** Takes the lock from its holder, whose code keeps running. */
  steal(name: string): Promise<HeldLock>;
}

/** Web Locks, or their substitute. */
export interface Locks extends Lives, ThreadLocks {
  /**
   * Without Web Locks, thread locks exclude only this context: another host may run the thread while one is held. The
   * thread's head row decides; see `runsElsewhere`.
   */
  readonly contextOnly?: boolean | undefined;
  /** Present if the locks belong to one runner, which calls this after it has closed. */
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
      // Before the grant: the request failed. After it: stolen (AbortError), reported by `gone`.
      .catch((error: unknown) => reject(error))
      .then(() => undefined);
  });
}

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

/** Web Locks, where the platform has them: not in an insecure context, nor in Node before 24. */
export function webLocks(): Locks | undefined {
  const { navigator } = globalThis as { navigator?: Navigator };
  return navigator?.locks && locksOf(navigator.locks);
}

/** Web Locks, or in Node those of the process; undefined in an insecure context. */
export function defaultLocks(): Locks | undefined {
  const manager = processLockManager();
  return webLocks() ?? (manager && locksOf(manager));
}
