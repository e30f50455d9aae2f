/** What a page says so that an agent of the thread goes on. */
export const permitChannel = (threadId: string): BroadcastChannel => new BroadcastChannel(`lab-permit ${threadId}`);

/** Permits of a page, each for one step. */
export class Permits {
  private waiting = 0;
  private wake: (() => void) | undefined;

  constructor(threadId: string) {
    permitChannel(threadId).onmessage = () => {
      this.waiting++;
      this.wake?.();
    };
  }

  async next(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.wake?.(), { once: true });
    while (this.waiting === 0 && !signal.aborted) await new Promise<void>((resolve) => (this.wake = resolve));
    this.waiting--;
  }
}
