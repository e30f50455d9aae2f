import type { RuntimeConnection, ThreadSummary } from "ag-ui-local-runtime/client";
import { type Feedback, messageOf } from "./feedback.js";
import { type Threads, titleOf } from "./threads.js";

/** How long a deletion can be undone, in ms. */
const UNDO_MS = 8_000;

/** A thread that the person has deleted, and may want back. */
export interface Deletion {
  readonly thread: ThreadSummary;
  /** What is shown in its place, where it was on show. */
  readonly instead: string | undefined;
}

/**
 * Deletions wait until they can no longer be undone. They wait in this tab alone: until then nothing is written, other
 * tabs show the thread, and a live run of it goes on. So a page that is closed or reloaded meanwhile leaves the thread
 * where it is: what somebody may still want back is not lost with the page that offers it.
 */
export class Deletions {
  /** The last one stands last, and is undone first. All have the time that the last one has. */
  waiting: readonly Deletion[] = [];
  /** Where somebody is at the offer to undo, it stays. */
  readonly #holds = new Set<"pointer" | "focus">();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly page: Feedback,
    private readonly runtime: RuntimeConnection,
    private readonly threads: Threads,
  ) {}

  add(deletion: Deletion): void {
    this.threads.hide(deletion.thread);
    this.#set([...this.waiting, deletion]);
  }

  undo(deletion: Deletion): void {
    this.threads.unhide(deletion.thread);
    this.#set(this.waiting.filter((it) => it !== deletion));
  }

  hold(by: "pointer" | "focus"): void {
    this.#holds.add(by);
    clearTimeout(this.#timer);
  }

  release(by: "pointer" | "focus"): void {
    this.#holds.delete(by);
    this.#restart();
  }

  /** What waits is not carried out. */
  close(): void {
    clearTimeout(this.#timer);
  }

  #set(waiting: readonly Deletion[]): void {
    this.waiting = waiting;
    // Nobody is where nothing is offered. Not every browser says so when an element goes.
    if (waiting.length === 0) this.#holds.clear();
    this.#restart();
    this.page.changed();
  }

  #restart(): void {
    clearTimeout(this.#timer);
    if (this.waiting.length > 0 && this.#holds.size === 0) this.#timer = setTimeout(() => this.#end(), UNDO_MS);
  }

  #end(): void {
    const due = this.waiting;
    this.#set([]);
    for (const { thread } of due) void this.#carryOut(thread);
  }

  async #carryOut(thread: ThreadSummary): Promise<void> {
    const { threadId, createdAt, runCount } = thread;
    try {
      const now = await this.runtime.threads.get(threadId);
      // What another tab has asked in it since then, nobody has said to delete.
      if (now && (now.runCount > runCount || now.createdAt !== createdAt))
        throw new Error("it was used in another tab meanwhile");
      await this.runtime.threads.delete(threadId);
    } catch (error) {
      this.threads.unhide(thread);
      this.page.fail(`“${titleOf(thread)}” was not deleted: ${messageOf(error)}`);
    }
  }
}
