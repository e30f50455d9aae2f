import type { ChannelLivesOptions } from "./channel-lives.js";
import { inProcessLockManager } from "./in-process-locks.js";
import { Lazy } from "./lazy.js";
import { locksOf, type Lives, type Locks } from "./locks.js";

/*
 * What stands in for Web Locks where a page has none (plain http).
 */

/** Life locks over a BroadcastChannel. Their code is loaded at the first use: few pages need it. */
export function lazyLives(options?: ChannelLivesOptions): Lives & { close(): Promise<void> } {
  const lives = new Lazy(async () => new (await import("./channel-lives.js")).ChannelLives(options));
  return {
    hold: async (name) => (await lives.get()).hold(name),
    whenFree: async (name, signal) => (await lives.get()).whenFree(name, signal),
    close: async () => (await lives.begun)?.close(),
  };
}

/** The locks of one runner: those of threads exclude this context alone, see {@link Locks.contextOnly}. */
export function contextLocks(options?: ChannelLivesOptions): Locks {
  return { ...locksOf(inProcessLockManager()), ...lazyLives(options), contextOnly: true };
}
