import type { ChannelLivesOptions } from "./channel-lives.js";
import { livesWhereAllowed } from "./denied.js";
import { inProcessLockManager } from "./in-process-locks.js";
import { Lazy } from "./lazy.js";
import { locksOf, webLocks, type Lives, type Locks } from "./locks.js";

/*
 * Substitutes for Web Locks, which pages on plain http lack.
 */

type Code = typeof import("./channel-lives.js");

/** Life locks whose code is loaded at the first use: few pages need it. */
function lazyLives(made: (code: Code) => Lives & { close?(): unknown }): Lives & { close(): Promise<void> } {
  const lives = new Lazy(async () => made(await import("./channel-lives.js")));
  return {
    hold: async (name) => (await lives.get()).hold(name),
    whenFree: async (name, signal) => (await lives.get()).whenFree(name, signal),
    close: async () => void (await lives.begun)?.close?.(),
  };
}

/** The life locks of a tab or a host. The tab does not carry the lock manager of Node. */
export function ownLives(): Lives & { close(): Promise<void> } {
  const lives = webLocks() ?? lazyLives(({ substituteLives }) => substituteLives());
  return { ...livesWhereAllowed(lives), close: async () => lives.close?.() };
}

/** The locks of one runner; see {@link Locks.contextOnly}. */
export function contextLocks(options?: ChannelLivesOptions): Locks {
  const lives = lazyLives(({ ChannelLives }) => new ChannelLives(options));
  return { ...locksOf(inProcessLockManager()), ...lives, contextOnly: true };
}
