import { onAbort } from "./abort.js";
import type { HeldLock, Lives } from "./locks.js";

/** Thrown by Web Locks, IndexedDB and sometimes BroadcastChannel if the user blocks this site's storage. */
export const isDenied = (error: unknown): boolean => (error as { name?: string } | null)?.name === "SecurityError";

/** If life locks are denied, no end is noticed. There is no SharedWorker then either, so hosts end with their tab. */
export function livesWhereAllowed(lives: Lives): Lives {
  return {
    hold: (name) =>
      lives.hold(name).catch((error: unknown): HeldLock => {
        if (!isDenied(error)) throw error;
        let end!: () => void;
        const gone = new Promise<void>((resolve) => (end = resolve));
        return { gone, release: () => (end(), gone) };
      }),
    whenFree: (name, signal) =>
      lives.whenFree(name, signal).catch((error: unknown) => {
        if (!isDenied(error)) throw error;
        return new Promise<boolean>((resolve) => onAbort(signal, () => resolve(false)));
      }),
  };
}
