import { Subscription } from "rxjs";
import { defined } from "../../platform/defined.js";
import { byPlace, type ThreadPlace } from "../../run/thread-order.js";
import type { ThreadChange, ThreadListQuery, ThreadSummary } from "../../wire/shapes.js";
import type { RuntimeConnection, ThreadsApi } from "../connect-runtime.js";
import { asError, readUntilDone } from "../read-until-done.js";
import { sameList, Store } from "./store.js";

/** A list of threads as it is shown now. */
export interface ThreadListSnapshot {
  /** `loading` until the list was read once; `failed`: it cannot be read, `error` says why. */
  readonly status: "loading" | "ready" | "failed";
  /** Newest first. */
  readonly threads: readonly ThreadSummary[];
  /** Whether there are older ones, see {@link ThreadListStore.loadMore}. */
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  /** Why it cannot be read, or is not told of changes and read from time to time alone. */
  readonly error: Error | undefined;
}

/** Which threads are listed. */
export interface ThreadListOptions extends Pick<ThreadListQuery, "agentId"> {
  /** Default false: those that are not archived; true: those alone that are. */
  readonly archived?: boolean;
  /** How many are read at a time. Default 50, at most 500. */
  readonly limit?: number;
}

/** A list that nothing is known of yet. */
export const emptyThreadList: ThreadListSnapshot = {
  status: "loading",
  threads: [],
  hasMore: false,
  isLoadingMore: false,
  error: undefined,
};

/** How many threads the host lists at a time. */
const MAX_PAGE = 500;

/** The list of threads for a front end of any framework: read while somebody listens, and kept by the changes of all tabs. */
export class ThreadListStore extends Store<ThreadListSnapshot> {
  private readonly threads = new Map<string, ThreadSummary>();
  /** What was told of threads while a page was read, which may be older; undefined: not in the list (any more). */
  private readonly told = new Map<string, ThreadSummary | undefined>();
  private status: ThreadListSnapshot["status"] = "loading";
  /** The last thread of the last page. */
  private oldest: ThreadPlace | undefined;
  private hasMore = false;
  private isLoadingMore = false;
  private error: Error | undefined;
  /** Changes with each reading from the beginning: what an earlier one brings is stale. */
  private generation = 0;

  /** What lists and changes the threads. */
  readonly api: ThreadsApi;

  constructor(
    runtime: Pick<RuntimeConnection, "threads">,
    private readonly options: ThreadListOptions = {},
  ) {
    super(emptyThreadList);
    this.api = runtime.threads;
  }

  /** Reads the threads before the last one. A no-op where there are none, or while they are read. */
  async loadMore(): Promise<void> {
    if (!this.hasMore || this.isLoadingMore || this.oldest === undefined) return;
    this.isLoadingMore = true;
    this.tell();
    try {
      await this.readPage(this.generation);
      this.error = undefined;
    } catch (error) {
      throw (this.error = asError(error));
    } finally {
      this.isLoadingMore = false;
      this.tell();
    }
  }

  protected override begin(): () => void {
    let watching: Subscription | undefined;
    /** Why changes are not told. */
    let notWatched: Error | undefined;
    let isReading = false;
    let stopReading = (): void => undefined;
    const read = async (): Promise<void> => {
      isReading = true;
      try {
        if (watching === undefined || watching.closed) watching = watch();
        this.oldest = undefined;
        await this.readPage(++this.generation);
      } finally {
        isReading = false;
      }
      // Refused, which the list need not be: it is read again until it is allowed. The list waits for the answer.
      if (notWatched !== undefined) throw notWatched;
      this.error = undefined;
      this.tell();
    };
    const readAnew = (): void => {
      stopReading();
      stopReading = readUntilDone(read, (error) => {
        this.error = error;
        if (this.status === "loading") this.status = "failed";
        this.tell();
      });
    };
    const watch = (): Subscription => {
      notWatched = undefined;
      return this.api.watch().subscribe({
        next: (change) => (change.type === "anew" ? readAnew() : this.changedTo(change)),
        error: (error: unknown) => {
          notWatched = asError(error);
          if (!isReading) readAnew();
        },
      });
    };
    readAnew();
    return () => {
      stopReading();
      watching?.unsubscribe();
      this.generation++;
    };
  }

  protected override read(was: ThreadListSnapshot): ThreadListSnapshot {
    const { status, hasMore, isLoadingMore, error } = this;
    const threads = [...this.threads.values()].sort(byPlace);
    return { status, threads: sameList(was.threads, threads), hasMore, isLoadingMore, error };
  }

  private isListed({ agentId, archived }: ThreadSummary): boolean {
    return (
      archived === (this.options.archived ?? false) &&
      (this.options.agentId === undefined || agentId === this.options.agentId)
    );
  }

  private changedTo(change: Exclude<ThreadChange, { type: "anew" }>): void {
    const threadId = change.type === "deleted" ? change.threadId : change.thread.threadId;
    const listed = change.type === "changed" && this.isListed(change.thread) ? change.thread : undefined;
    this.told.set(threadId, listed);
    if (listed !== undefined && this.isRead(listed)) this.threads.set(threadId, listed);
    else this.threads.delete(threadId);
    this.changed();
  }

  /** Whether it stands in the part of the list that has been read: what is older comes with its page. */
  private isRead(thread: ThreadSummary): boolean {
    return !this.hasMore || this.oldest === undefined || byPlace(thread, this.oldest) <= 0;
  }

  private async readPage(generation: number): Promise<void> {
    const { limit: perPage = 50, agentId, archived } = this.options;
    const { oldest } = this;
    // Read again, it has about as much as before: what somebody scrolled to is not to go away.
    const limit = oldest === undefined ? Math.max(perPage, Math.min(this.threads.size + 1, MAX_PAGE)) : perPage;
    this.told.clear();
    const page = await this.api.list(defined({ limit, before: oldest, agentId, archived: archived || undefined }));
    if (generation !== this.generation) return;
    // From the beginning: what is not there any more was deleted while nobody told of it.
    if (oldest === undefined) for (const id of this.threads.keys()) if (!this.told.has(id)) this.threads.delete(id);
    for (const { threadId, ...thread } of page) {
      const now = this.told.has(threadId) ? this.told.get(threadId) : { ...thread, threadId };
      if (now !== undefined && this.isListed(now)) this.threads.set(threadId, now);
    }
    this.oldest = page.at(-1) ?? oldest;
    this.hasMore = page.length === limit;
    this.status = "ready";
  }
}
