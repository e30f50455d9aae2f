import type { Clock } from "./clock.js";

/** How often a context says that it lives, and looks who else does, in ms. */
const TICK_MS = 1_000;
/** A tick this long after the one before comes late, in ms. */
const LATE_MS = 2 * TICK_MS;

/**
 * Calls `tick` about once a second while `needed` says so. A tick is `late` when this context slept before it (frozen,
 * blocked or throttled): what others did meanwhile may still be unheard, so nothing may be concluded from it.
 */
export class Ticker {
  private running: AbortController | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly needed: () => boolean,
    private readonly tick: (late: boolean) => void | Promise<void>,
  ) {}

  /** Starts or stops: call it when what `needed` says may have changed. */
  adjust(): void {
    if (!this.needed()) {
      this.running?.abort();
      this.running = undefined;
    } else if (this.running === undefined) {
      this.running = new AbortController();
      void this.run(this.running.signal);
    }
  }

  private async run(signal: AbortSignal): Promise<void> {
    for (let last = this.clock.elapsed(); ;) {
      await this.clock.after(TICK_MS, signal);
      if (signal.aborted) return;
      const now = this.clock.elapsed();
      await this.tick(now - last > LATE_MS);
      last = now;
    }
  }
}
