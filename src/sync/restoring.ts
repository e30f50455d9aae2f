import { abortWith, onAbort } from "../platform/abort.js";
import type { Listed, ThreadRecord } from "./sync-database.js";

/** What the tabs are told of a live run that another device writes, while the thread is read again. */
const TOLD = {
  /** Something was deleted here that others keep. */
  deleted: "The thread was deleted here",
  /** The space lacks something that was added to it. */
  lost: "The servers lack a part of the thread",
  /** Nothing of it was read yet. */
  unread: "The thread is read again",
};

export type RestoringReason = keyof typeof TOLD;

/** Everything that the space has of a thread is to be read, or read again: with the entries that come meanwhile. */
export class Restoring {
  /** Resolves when it is restored, or `signal` aborts. */
  readonly done: Promise<void>;
  /** What of the thread's entry in the list others are still to be told. */
  untold: ReadonlySet<keyof Listed> = new Set();
  /** From then on what is known of the thread is what was read again. */
  isBegun = false;
  /** What the reading begins with; undefined: it is to begin, or has failed. */
  from: ThreadRecord | undefined;
  private readonly over: AbortController;

  /**
   * @param upTo the seq of the last entry that is known to be there: a server may be behind another
   * @param before what was known until then
   */
  constructor(
    readonly why: RestoringReason,
    public upTo: number,
    public before: ThreadRecord,
    signal: AbortSignal,
  ) {
    this.over = abortWith(signal);
    const { signal: over } = this.over;
    this.done = new Promise((resolve) => onAbort(over, resolve));
  }

  get told(): string {
    return TOLD[this.why];
  }

  restored(): void {
    this.over.abort();
  }
}
