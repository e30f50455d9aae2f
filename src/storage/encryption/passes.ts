import { abortWith } from "../../platform/abort.js";
import type { Clock } from "../../platform/clock.js";
import { RunnerError } from "../../run/errors.js";

/** The first and the longest pause before a pass, in ms. It doubles, since each one reads the whole database. */
const AGAIN_MS = 30_000;
const AGAIN_MAX_MS = 3_600_000;

/** Passes over a database, in the background, each of which encrypts what is not: one after the other. */
export class Passes {
  private last: Promise<void> = Promise.resolve();
  /** One waits for the one before. */
  private isWaiting = false;
  private pause = AGAIN_MS;
  /** Ends the pause before the next one; undefined: nothing is left. */
  private pausing: AbortController | undefined;

  /**
   * @param pass resolves with whether something is left that a later one may encrypt
   * @param closed nothing begins any more
   */
  constructor(
    private readonly pass: () => Promise<boolean>,
    private readonly clock: Clock,
    private readonly closed: AbortSignal,
  ) {}

  /** There are other keys. */
  begin(): void {
    this.pause = AGAIN_MS;
    this.next();
  }

  /** What kept a pass from something may be over. */
  again(): void {
    if (this.pausing !== undefined) this.next();
  }

  /** Something is left, or has been added, and more may be. */
  soon(): void {
    if (this.pausing !== undefined || this.closed.aborted) return;
    const { signal } = (this.pausing = abortWith(this.closed));
    void this.clock.after(this.pause, signal).then(() => {
      if (!signal.aborted) this.next();
    });
    this.pause = Math.min(2 * this.pause, AGAIN_MAX_MS);
  }

  private next(): void {
    // It looks at everything.
    if (this.isWaiting) return;
    this.isWaiting = true;
    this.last = this.last.then(() => this.run());
  }

  private async run(): Promise<void> {
    this.isWaiting = false;
    this.pausing?.abort();
    this.pausing = undefined;
    if (this.closed.aborted) return;
    const isLeft = await this.pass().catch(
      // With the next key it begins anew.
      (error: unknown) => !RunnerError.is(error, "locked") && !RunnerError.is(error, "wrong-key"),
    );
    if (isLeft) this.soon();
  }
}
