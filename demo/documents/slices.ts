/** Half of a frame: short enough for a page that hosts the agent itself. */
const SLICE_MS = 7;

/** Work in slices: ask `due()` often; once it says true, await `pause()`, which lets the event loop run. Both end by the signal. */
export class Slices {
  #since = performance.now();

  constructor(readonly signal: AbortSignal) {}

  due(): boolean {
    return this.signal.aborted || performance.now() - this.#since >= SLICE_MS;
  }

  /** @throws the signal's reason, once it has aborted */
  async pause(): Promise<void> {
    this.signal.throwIfAborted();
    // A timer would be held back to 4 ms, in a hidden page to a second.
    const { scheduler } = globalThis as { scheduler?: { yield?(): Promise<void> } };
    await (scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve)));
    this.signal.throwIfAborted();
    this.#since = performance.now();
  }

  /** Waits `ms`. @throws the signal's reason, at once when it aborts */
  async wait(ms: number): Promise<void> {
    this.signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => {
        clearTimeout(timer);
        reject(this.signal.reason);
      };
      const timer = setTimeout(() => {
        this.signal.removeEventListener("abort", abort);
        resolve();
      }, ms);
      this.signal.addEventListener("abort", abort, { once: true });
    });
    this.#since = performance.now();
  }
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

/** The pieces of a text, each when it is due: `paceMs` after the one before, or at once where that is late. */
export async function* paced(text: string, paceMs: number, slices: Slices): AsyncGenerator<string> {
  let due = performance.now();
  for (const piece of pieces(text)) {
    yield piece;
    due += paceMs;
    const rest = due - performance.now();
    if (rest > 0) await slices.wait(rest);
    else if (slices.due()) await slices.pause();
  }
}
