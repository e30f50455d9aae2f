import type { Lives, Locks } from "./locks.js";

/** Ends what stands in for the platform's own. */
interface Closing {
  close(): void | Promise<void>;
}

/** Loads once, and again where that failed. */
function once<T>(load: () => Promise<T>): {
  readonly get: () => Promise<T>;
  readonly begun: () => Promise<T> | undefined;
} {
  let loading: Promise<T> | undefined;
  return {
    get: () =>
      (loading ??= load().catch((error: unknown) => {
        loading = undefined;
        throw error;
      })),
    begun: () => loading,
  };
}

/** Life locks whose code is loaded at their first use: few pages need it. */
export function lazyLives(load: () => Promise<Lives & Closing>): Lives & { close(): Promise<void> } {
  const lives = once(load);
  return {
    hold: async (name) => (await lives.get()).hold(name),
    whenFree: async (name, signal) => (await lives.get()).whenFree(name, signal),
    close: async () => (await lives.begun())?.close(),
  };
}

/** The same for all locks of a host. */
export function lazyLocks(load: () => Promise<Locks & Closing>): Locks & { close(): Promise<void> } {
  const locks = once(load);
  return {
    ...lazyLives(locks.get),
    tryHold: async (name) => (await locks.get()).tryHold(name),
    steal: async (name) => (await locks.get()).steal(name),
    close: async () => (await locks.begun())?.close(),
  };
}
