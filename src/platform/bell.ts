import { abortWith } from "./abort.js";
import type { Clock } from "./clock.js";

/**
 * Notifies waiters that something may have changed. A ring between a check and the wait after it is not missed: the waiter
 * passes the count that it read before the check.
 */
export class Bell {
  private rung = 0;
  private waiters: (() => void)[] = [];

  get count(): number {
    return this.rung;
  }

  ring(): void {
    this.rung++;
    const waiters = this.waiters;
    this.waiters = [];
    for (const wake of waiters) wake();
  }

  /** Resolves at the first ring after `seen`, or when `signal` aborts. */
  wait(seen: number, signal?: AbortSignal): Promise<void> {
    if (this.rung !== seen || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      if (signal === undefined) return void this.waiters.push(resolve);
      const wake = (): void => {
        signal.removeEventListener("abort", abort);
        resolve();
      };
      const abort = (): void => {
        this.waiters = this.waiters.filter((waiter) => waiter !== wake);
        wake();
      };
      this.waiters.push(wake);
      signal.addEventListener("abort", abort, { once: true });
    });
  }
}

/**
 * Resolves at the first ring after `seen`, after `ms` without one, or when `signal` aborts.
 *
 * @returns whether it rang
 */
export async function ringOrSilence(
  bell: Bell,
  seen: number,
  clock: Clock,
  ms: number,
  signal: AbortSignal,
): Promise<boolean> {
  const waiting = abortWith(signal);
  await Promise.race([bell.wait(seen, waiting.signal), clock.after(ms, waiting.signal)]);
  waiting.abort();
  return bell.count !== seen;
}
