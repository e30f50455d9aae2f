import type { SyncRecords } from "./memory-sync-database.js";

/**
 * How the list has a thread whose entries were not read: as its last entry says (`listed`); not yet, for only the rest of
 * its entries say how (`unlisted`); or not any more, as its last entry says (`gone`), which may be a lie.
 */
export type Listing = "listed" | "unlisted" | "gone";

interface One {
  readonly key: string;
  readonly threadId: string;
}

/** Threads that have to be read before the list is right, over restarts. */
export class UnlistedThreads {
  /** By id, the key. */
  private readonly unlisted = new Map<string, string>();
  private readonly gone = new Map<string, string>();

  constructor(private readonly database: Pick<SyncRecords, "thread" | "get" | "set">) {}

  /** @returns whether any threads may be absent */
  async open(): Promise<boolean> {
    const known = await this.database.get("absent");
    for (const listing of ["unlisted", "gone"] as const) {
      for (const key of known?.[listing] ?? []) {
        const record = await this.database.thread(key);
        if (record?.unread === true) this[listing].set(record.threadId, key);
      }
    }
    return known !== undefined;
  }

  get size(): number {
    return this.unlisted.size + this.gone.size;
  }

  has(threadId: string): boolean {
    return this.unlisted.has(threadId) || this.gone.has(threadId);
  }

  /** Those that are missing in the list. */
  get missing(): Iterable<string> {
    return this.unlisted.keys();
  }

  /** Those that may be. */
  get doubtful(): Iterable<string> {
    return this.gone.keys();
  }

  /** @returns whether there are more than before */
  async set(threads: readonly (One & { readonly listing: Listing })[]): Promise<boolean> {
    const isNew = threads.filter(({ threadId, listing }) => listing !== this.listingOf(threadId));
    if (isNew.length === 0) return false;
    for (const { key, threadId, listing } of isNew) {
      this.unlisted.delete(threadId);
      this.gone.delete(threadId);
      if (listing !== "listed") this[listing].set(threadId, key);
    }
    await this.save();
    return isNew.some(({ listing }) => listing !== "listed");
  }

  /** It was read. What is saved says so by the thread itself. */
  wasRead(threadId: string): void {
    this.unlisted.delete(threadId);
    this.gone.delete(threadId);
  }

  save(): Promise<void> {
    return this.database.set("absent", { unlisted: [...this.unlisted.values()], gone: [...this.gone.values()] });
  }

  /** No threads are absent. */
  async none(): Promise<void> {
    this.clear();
    await this.database.set("absent", undefined);
  }

  clear(): void {
    this.unlisted.clear();
    this.gone.clear();
  }

  private listingOf(threadId: string): Listing {
    if (this.unlisted.has(threadId)) return "unlisted";
    return this.gone.has(threadId) ? "gone" : "listed";
  }
}
