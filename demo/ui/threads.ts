import { type RuntimeConnection, ThreadListStore, type ThreadSummary } from "ag-ui-local-runtime/client";
import { messageOf } from "./feedback.js";

/** So many threads are read at a time. */
const PAGE = 200;

/** The lists of threads, those in use and the archived ones, and what is shown of them. */
export class Threads {
  /** Whether the archived ones are shown. */
  archived = false;
  /** Words that the titles of the shown ones have. */
  query = "";
  /** What is deleted here, with the time of its creation: a thread that begins anew under its id is another one. */
  readonly #hidden = new Map<string, number>();
  readonly #stores: Readonly<Record<"inUse" | "archived", ThreadListStore>>;
  readonly #ends: readonly (() => void)[];

  constructor(runtime: RuntimeConnection, changed: () => void) {
    this.#stores = {
      inUse: new ThreadListStore(runtime, { limit: PAGE }),
      archived: new ThreadListStore(runtime, { limit: PAGE, archived: true }),
    };
    this.#ends = Object.values(this.#stores).map((store) => store.subscribe(changed));
  }

  /** Pinned ones first, then the newest. */
  get shown(): readonly ThreadSummary[] {
    const words = this.query.toLowerCase().split(/\s+/);
    return this.#current
      .getSnapshot()
      .threads.filter((thread) => this.#hidden.get(thread.threadId) !== thread.createdAt)
      .filter((thread) => words.every((word) => titleOf(thread).toLowerCase().includes(word)))
      .toSorted((one, other) => Number(other.pinned) - Number(one.pinned));
  }

  get isLoaded(): boolean {
    return this.#current.getSnapshot().status === "ready";
  }

  get isLoading(): boolean {
    const { status, isLoadingMore } = this.#current.getSnapshot();
    return status === "loading" || isLoadingMore;
  }

  /** What cannot be read, and why. It is read again by itself, but for what {@link loadMore} asks for. */
  get failure(): string | undefined {
    const { status, error } = this.#current.getSnapshot();
    if (error === undefined) return undefined;
    return `${status === "ready" ? "The list may lack threads" : "The threads cannot be read"}: ${messageOf(error)}`;
  }

  get hasMore(): boolean {
    return this.#current.getSnapshot().hasMore;
  }

  /** Archived or not; undefined for one that is unknown, or too old for what was read of the lists. */
  get(threadId: string): ThreadSummary | undefined {
    for (const store of Object.values(this.#stores)) {
      const found = store.getSnapshot().threads.find((thread) => thread.threadId === threadId);
      if (found) return found;
    }
    return undefined;
  }

  /** Leaves a thread out of what is shown, before the lists are told that it is gone. */
  hide({ threadId, createdAt }: ThreadSummary): void {
    this.#hidden.set(threadId, createdAt);
  }

  unhide({ threadId }: ThreadSummary): void {
    this.#hidden.delete(threadId);
  }

  /** Never rejects: {@link failure} says what failed. */
  async loadMore(): Promise<void> {
    await this.#current.loadMore().catch(() => undefined);
  }

  /** Shows only those whose titles have these words, among all that there are. Another search ends this one. */
  async search(query: string): Promise<void> {
    this.query = query;
    const searched = this.#current;
    const isWanted = (): boolean => query !== "" && query === this.query && searched === this.#current;
    while (isWanted() && searched.getSnapshot().hasMore) {
      const before = searched.getSnapshot();
      await searched.loadMore();
      // A no-op while the list is being read already.
      if (searched.getSnapshot() === before) await changeOf(searched);
    }
  }

  close(): void {
    for (const end of this.#ends) end();
  }

  get #current(): ThreadListStore {
    return this.#stores[this.archived ? "archived" : "inUse"];
  }
}

/** Resolves with the store's next change. */
const changeOf = (store: ThreadListStore): Promise<void> =>
  new Promise((resolve) => {
    const end = store.subscribe(() => {
      end();
      resolve();
    });
  });

export function titleOf(thread: ThreadSummary | undefined): string {
  const title = thread?.title.trim() ?? "";
  if (title !== "") return title;
  return thread && thread.runCount > 0 ? "Untitled thread" : "New thread";
}
