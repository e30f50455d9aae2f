import { fail } from "./expect.js";

/** How often a condition that nobody tells of is looked at, in ms. */
const LOOK_EVERY_MS = 5;

/** Waits for what must happen; what does not happen in time fails with what it was. */
export class Patience {
  /** @param ms how long one wait may take */
  constructor(readonly ms: number) {}

  /** @param what what is waited for, as the end of "… did not happen" */
  async within<T>(promise: PromiseLike<T>, what: string): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), this.ms);
    });
    try {
      const first = await Promise.race([promise.then((value) => ({ value })), late]);
      return first === "late" ? fail(`did not happen within ${this.ms} ms: ${what}`) : first.value;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Looks until `holds` is true. */
  async until(holds: () => boolean | PromiseLike<boolean>, what: string): Promise<void> {
    const over = new AbortController();
    const look = async (): Promise<void> => {
      while (!over.signal.aborted && !(await holds()))
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    };
    try {
      await this.within(look(), what);
    } finally {
      over.abort();
    }
  }
}

/** A promise that is resolved from outside: what a scripted agent waits for, or tells. */
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
