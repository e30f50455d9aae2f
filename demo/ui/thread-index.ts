import { RunnerError, type RuntimeConnection, type ThreadSummary } from "ag-ui-local-runtime/client";
import { Subscription } from "rxjs";

/** So many threads are read at a time. */
const PAGE = 200;

/** The list of threads, kept true by the changes of every tab. */
export class ThreadIndex {
  /** Whether the list has been read once. */
  loaded = false;
  /** Whether there are older threads than those that were read. */
  more = false;
  readonly #threads = new Map<string, ThreadSummary>();
  readonly #subscription = new Subscription();
  readonly #changedWhileReading = new Set<string>();
  #reading = 0;
  #oldest: number | undefined;

  constructor(
    private readonly runtime: RuntimeConnection,
    private readonly changed: () => void,
  ) {
    this.#subscription.add(
      runtime.threads.watch().subscribe({
        next: (change) => {
          if (change.type === "anew") return void this.read();
          if (change.type === "deleted") this.#threads.delete(change.threadId);
          else {
            this.#threads.set(change.thread.threadId, change.thread);
            this.#changedWhileReading.add(change.thread.threadId);
          }
          this.changed();
        },
        // The next host says its hello; read() is called then.
        error: () => undefined,
      }),
    );
  }

  /** Newest first. */
  get list(): ThreadSummary[] {
    return [...this.#threads.values()].toSorted((a, b) => b.updatedAt - a.updatedAt);
  }

  get(threadId: string): ThreadSummary | undefined {
    return this.#threads.get(threadId);
  }

  /** Reads the list; to be called for each host that says hello. */
  read(): Promise<void> {
    this.#oldest = undefined;
    return this.#readPage();
  }

  /** Reads the threads before those that were read. */
  readOlder(): Promise<void> {
    return this.#readPage();
  }

  close(): void {
    this.#subscription.unsubscribe();
  }

  async #readPage(): Promise<void> {
    const reading = ++this.#reading;
    const before = this.#oldest;
    this.#changedWhileReading.clear();
    try {
      const found = await this.runtime.threads.list({ limit: PAGE, ...(before !== undefined && { before }) });
      if (reading !== this.#reading || this.#subscription.closed) return;
      if (before === undefined) {
        // What is not in the list any more was deleted while nobody told of it.
        const there = new Set(found.map(({ threadId }) => threadId));
        for (const id of this.#threads.keys()) {
          if (!there.has(id) && !this.#changedWhileReading.has(id)) this.#threads.delete(id);
        }
      }
      for (const thread of found) {
        const known = this.#threads.get(thread.threadId);
        // A change may have come while the list was on its way.
        if (!known || known.updatedAt <= thread.updatedAt) this.#threads.set(thread.threadId, thread);
      }
      this.#oldest = found.at(-1)?.updatedAt ?? before;
      this.more = found.length === PAGE;
      this.loaded = true;
      this.changed();
    } catch (error) {
      // The status tells about a host that is gone; the list stays as it was.
      if (!RunnerError.is(error)) throw error;
    }
  }
}
