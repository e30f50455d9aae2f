import type { Engine } from "../driver/browser.js";

/** What a soak does to the browser and its parts. */
export type Fault =
  /** SIGKILL for all of its processes, and started again on the same profile. */
  | "browser killed"
  /** A SharedWorker, by the browser. */
  | "worker ended"
  /** A SharedWorker, by itself. */
  | "worker closed"
  /** The process of a tab, and with it the SharedWorkers in it. */
  | "tab crashed"
  | "tab closed"
  | "tab reloaded";

/** How often each comes, of how many in all, with what the engine's driver can do. */
const SHARES: Readonly<Record<Engine, Readonly<Partial<Record<Fault, number>>>>> = {
  chromium: {
    "browser killed": 3,
    "worker ended": 6,
    "worker closed": 2,
    "tab crashed": 5,
    "tab closed": 2,
    "tab reloaded": 3,
  },
  firefox: { "browser killed": 2, "worker closed": 6, "tab closed": 3, "tab reloaded": 4 },
  // Its driver starts with an empty profile each time.
  webkit: { "worker closed": 6, "tab closed": 3, "tab reloaded": 4 },
};

/** A random one, or rather more often a frequent one. */
export function randomFault(engine: Engine, random: () => number): Fault {
  const shares = Object.entries(SHARES[engine]) as [Fault, number][];
  let left = random() * shares.reduce((sum, [, share]) => sum + share, 0);
  for (const [fault, share] of shares) if ((left -= share) < 0) return fault;
  return shares[0]![0];
}
