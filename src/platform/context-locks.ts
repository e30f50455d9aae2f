import type { ChannelLivesOptions } from "./channel-lives.js";
import { inProcessLockManager } from "./in-process-locks.js";
import { Lazy } from "./lazy.js";
import { locksOf, type Lives, type Locks } from "./locks.js";

/*
 * Substitutes for Web Locks, which pages on plain http lack.
 */

/** Life locks over a BroadcastChannel. Loaded at the first use: few pages need them. */
export function lazyLives(options?: ChannelLivesOptions): Lives & { close(): Promise<void> } {
  const lives = new Lazy(async () => new (await import("./channel-lives.js")).ChannelLives(options));
  return {
    hold: async (name) => (await lives.get()).hold(name),
    whenFree: async (name, signal) => (await lives.get()).whenFree(name, signal),
    close: async () => (await lives.begun)?.close(),
  };
}

/** The locks of one runner; see {@link Locks.contextOnly}. */
export function contextLocks(options?: ChannelLivesOptions): Locks {
  return { ...locksOf(inProcessLockManager()), ...lazyLives(options), contextOnly: true };
}
