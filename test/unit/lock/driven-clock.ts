import type { Clock } from "../../../src/platform/clock.js";

interface Timer {
  readonly due: number;
  readonly fire: () => void;
}

/** Time that passes when the test says so. Each context has its own: one that is not told of it sleeps. */
export class DrivenClock implements Clock {
  /** The time of day; tests set it back. */
  today = 1_000_000_000;
  private time = 0;
  private timers = new Set<Timer>();

  /** How many wait for it to pass. */
  get waiting(): number {
    return this.timers.size;
  }

  now(): number {
    return this.today;
  }

  elapsed(): number {
    return this.time;
  }

  after(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const fire = (): void => {
        this.timers.delete(timer);
        signal?.removeEventListener("abort", fire);
        resolve();
      };
      const timer: Timer = { due: this.time + ms, fire };
      this.timers.add(timer);
      signal?.addEventListener("abort", fire, { once: true });
    });
  }

  /** Lets `ms` pass in one step: each timer that is due fires once, however much later that is. */
  pass(ms: number): void {
    this.time += ms;
    this.today += ms;
    const due = [...this.timers].filter((timer) => timer.due <= this.time);
    for (const timer of due.sort((one, other) => one.due - other.due)) timer.fire();
  }
}
