/**
 * Work in slices. `due()` must be asked often; once it says true, `pause()` must be awaited: it lets the event loop
 * run and throws where the signal has aborted.
 */
export interface Slices {
  readonly signal: AbortSignal;
  due(): boolean;
  pause(): Promise<void>;
  /** Waits at most `ms`, and throws at once when the signal aborts. */
  wait(ms: number): Promise<void>;
  now(): number;
  /** Must be called at the end: an open channel keeps a process alive. */
  close(): void;
}

/** Half of a frame: short enough for a page that hosts the agent itself. */
const SLICE_MS = 7;

export function createSlices(signal: AbortSignal, { sliceMs = SLICE_MS, now = () => performance.now() } = {}): Slices {
  const turns = createTurns();
  let since = now();
  return {
    signal,
    now,
    due: () => signal.aborted || now() - since >= sliceMs,
    async pause() {
      signal.throwIfAborted();
      await turns.next();
      signal.throwIfAborted();
      since = now();
    },
    async wait(ms) {
      signal.throwIfAborted();
      await new Promise<void>((resolve, reject) => {
        const abort = (): void => {
          clearTimeout(timer);
          reject(signal.reason);
        };
        const timer = setTimeout(() => {
          signal.removeEventListener("abort", abort);
          resolve();
        }, ms);
        signal.addEventListener("abort", abort, { once: true });
      });
      since = now();
    },
    close: () => turns.close(),
  };
}

/** Turns of the event loop. A timer would be held back to 4 ms, in a hidden page to a second; a message is not. */
function createTurns(): { next(): Promise<void>; close(): void } {
  // Node hands out the messages of a port in one turn, so that timers starve. It has a means of its own.
  const immediate: ((resolve: () => void) => unknown) | undefined = globalThis.setImmediate;
  if (typeof immediate === "function")
    return { next: () => new Promise((resolve) => immediate(resolve)), close: () => undefined };
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.addEventListener("message", () => waiting.shift()?.());
  port1.start();
  return {
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        port2.postMessage(null);
      }),
    close: () => {
      port1.close();
      port2.close();
    },
  };
}

/** Work that yields how far it is (0 to 1) and returns its result. */
export type Work<T> = AsyncGenerator<number, T, void>;

/** Drives work to its end where nobody wants to see how far it is. */
export async function finish<T>(work: Work<T>): Promise<T> {
  for (;;) {
    const step = await work.next();
    if (step.done) return step.value;
  }
}

/** Cuts text for streaming: a few words each, white space kept, no surrogate pair cut. */
export function* pieces(text: string, words = 3): Generator<string> {
  const word = /\s*\S{1,40}(?:[\uDC00-\uDFFF])?/gu;
  let from = 0;
  let count = 0;
  for (const match of text.matchAll(word)) {
    if (++count < words) continue;
    const to = match.index + match[0].length;
    yield text.slice(from, to);
    from = to;
    count = 0;
  }
  if (from < text.length) yield text.slice(from);
}
