import { Subscription } from "rxjs";
import type { ThreadChange, ThreadListQuery, ThreadSummary } from "../../wire/shapes.js";
import type { RuntimeConnection, ThreadsApi } from "../connect-runtime.js";
import { asError, readUntilDone, sameList, Store } from "./store.js";

/** A list of threads as it is shown now. */
export interface ThreadListSnapshot {
  /** `loading` until the list was read once; `failed`: it cannot be read, `error` says why. */
  readonly status: "loading" | "ready" | "failed";
  /** Newest first. */
  readonly threads: readonly ThreadSummary[];
  /** Whether there are older ones, see {@link ThreadListStore.loadMore}. */
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
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

/** The list of threads for a front end of any framework: read while somebody listens, and kept by the changes of all tabs. */
export class ThreadListStore extends Store<ThreadListSnapshot> {
  private readonly threads = new Map<string, ThreadSummary>();
  /** Ids of threads that were told of while a page was read: the page may be older. */
  private readonly toldOf = new Set<string>();
  private status: ThreadListSnapshot["status"] = "loading";
  private oldest: number | undefined;
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
    if (!this.hasMore || this.isLoadingMore) return;
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
    const watching = new Subscription();
    let stopReading = (): void => undefined;
    const readAnew = (): void => {
      stopReading();
      stopReading = readUntilDone(
        () => {
          this.oldest = undefined;
          return this.readPage(++this.generation);
        },
        (error) => {
          this.error = error;
          if (this.status === "loading") this.status = "failed";
          this.tell();
        },
      );
    };
    watching.add(
      this.api.watch().subscribe({
        next: (change) => (change.type === "anew" ? readAnew() : this.changedTo(change)),
        // Refused: the list is refused too, and says why.
        error: () => undefined,
      }),
    );
    watching.add(() => {
      stopReading();
      this.generation++;
    });
    readAnew();
    return () => watching.unsubscribe();
  }

  protected override read(was: ThreadListSnapshot): ThreadListSnapshot {
    const { status, hasMore, isLoadingMore, error } = this;
    const threads = [...this.threads.values()].sort((one, other) => other.updatedAt - one.updatedAt);
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
    this.toldOf.add(threadId);
    if (change.type === "changed" && this.isListed(change.thread) && this.isRead(change.thread)) {
      this.threads.set(threadId, change.thread);
    } else this.threads.delete(threadId);
    this.changed();
  }

  /** Whether it stands in the part of the list that has been read: what is older comes with its page. */
  private isRead({ updatedAt }: ThreadSummary): boolean {
    return !this.hasMore || this.oldest === undefined || updatedAt >= this.oldest;
  }

  private async readPage(generation: number): Promise<void> {
    const { limit = 50, agentId } = this.options;
    const { oldest } = this;
    this.toldOf.clear();
    const page = await this.api.list({
      limit,
      ...(oldest !== undefined && { before: oldest }),
      ...(agentId !== undefined && { agentId }),
      ...(this.options.archived === true && { archived: true }),
    });
    if (generation !== this.generation) return;
    // From the beginning: what is not there any more was deleted while nobody told of it.
    if (oldest === undefined) for (const id of this.threads.keys()) if (!this.toldOf.has(id)) this.threads.delete(id);
    for (const thread of page) {
      if (this.isListed(thread) && !this.toldOf.has(thread.threadId)) this.threads.set(thread.threadId, thread);
    }
    this.oldest = page.at(-1)?.updatedAt ?? oldest;
    this.hasMore = page.length === limit;
    this.status = "ready";
    this.error = undefined;
    this.tell();
  }
}
