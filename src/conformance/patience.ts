import { systemClock } from "../platform/clock.js";
import { fail } from "./expect.js";

/** Polling interval of conditions, in ms. */
const LOOK_EVERY_MS = 5;

/** Waits for what must happen; fails with a description if it does not happen in time. */
export class Patience {
  /** @param ms how long one wait may take */
  constructor(readonly ms: number) {}

  /** @param what what was awaited, for the message */
  async within<T>(promise: PromiseLike<T>, what: string): Promise<T> {
    const over = new AbortController();
    const late = systemClock.after(this.ms, over.signal).then(() => "late" as const);
    try {
      const first = await Promise.race([promise.then((value) => ({ value })), late]);
      return first === "late" ? fail(`did not happen within ${this.ms} ms: ${what}`) : first.value;
    } finally {
      over.abort();
    }
  }

  /** Polls until `holds` is true. */
  async until(holds: () => boolean | PromiseLike<boolean>, what: string): Promise<void> {
    const over = new AbortController();
    const look = async (): Promise<void> => {
      while (!over.signal.aborted && !(await holds())) await systemClock.after(LOOK_EVERY_MS);
    };
    try {
      await this.within(look(), what);
    } finally {
      over.abort();
    }
  }
}

/** A promise that is resolved from outside, for scripted agents. */
export class Gate {
  readonly opened: Promise<void>;
  private resolve!: () => void;
  private is = false;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  get isOpen(): boolean {
    return this.is;
  }

  open(): void {
    this.is = true;
    this.resolve();
  }
}
