/** The source of time and delays. */
export interface Clock {
  /** The time of day, in ms since the Unix epoch. The user may set it back, so no deadline uses it. */
  now(): number;
  /** Monotonic time, in ms. */
  elapsed(): number;
  /** Resolves after `ms` (`Infinity`: never), or at once when `signal` aborts. Never rejects. */
  after(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest delay of a timer, in ms; longer ones fire at once. */
export const LONGEST_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      let timer: ReturnType<typeof setTimeout>;
      wait(ms);
      signal?.addEventListener("abort", done, { once: true });
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

/** Resolves in a later task, after pending ones of this context (messages, storage, timers). Not throttled like timers. */
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

const late = (ms: number): Error => new Error(`It took more than ${ms} ms`);

/** The result of `work`; rejects with `error` if it takes longer than `ms`. */
export async function inTime<T>(work: Promise<T>, ms: number, clock = systemClock, error = late): Promise<T> {
  const ended = new AbortController();
  const tooLong = clock.after(ms, ended.signal).then(() => {
    throw error(ms);
  });
  try {
    return await Promise.race([work, tooLong]);
  } finally {
    ended.abort();
  }
}
