/** Time, as the runtime is given it. */
export interface Clock {
  /** The time of day, in ms since the Unix epoch. It may be set back: no deadline is reckoned by it. */
  now(): number;
  /** Milliseconds since some moment, never falling. */
  elapsed(): number;
  /** Resolves after `ms` (`Infinity`: never), or at once when `signal` aborts. Never rejects. */
  after(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest delay that timers know, in ms. */
const LONGEST_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      let timer: ReturnType<typeof setTimeout>;
      wait(ms);
      signal?.addEventListener("abort", done, { once: true });
      // Longer timers than the platform has fire at once.
      function wait(left: number): void {
        timer = left <= LONGEST_MS ? setTimeout(done, left) : setTimeout(() => wait(left - LONGEST_MS), LONGEST_MS);
      }
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
    }),
};

/** Lets other tasks of this context run (messages, storage, timers) before it resolves. Not throttled like timers. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
