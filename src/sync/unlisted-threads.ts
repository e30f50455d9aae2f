import type { SyncRecords } from "./memory-sync-database.js";

/**
 * How the list has a thread whose entries were not read: as its last entry says (`listed`); not yet, for only the rest of
 * its entries say how (`unlisted`); or not any more, as its last entry says (`gone`), which may be a lie.
 */
export type Listing = "listed" | Unlisted;
type Unlisted = "unlisted" | "gone";

interface One {
  readonly key: string;
  readonly threadId: string;
}

/** Threads that have to be read before the list is right, over restarts. */
export class UnlistedThreads {
  /** By id. */
  private readonly threads = new Map<string, { readonly key: string; readonly listing: Unlisted }>();

  constructor(private readonly database: Pick<SyncRecords, "thread" | "get" | "set">) {}

  /** @returns whether any threads may be absent */
  async open(): Promise<boolean> {
    const known = await this.database.get("absent");
    for (const listing of ["unlisted", "gone"] as const) {
      for (const key of known?.[listing] ?? []) {
        const record = await this.database.thread(key);
        if (record?.unread === true) this.threads.set(record.threadId, { key, listing });
      }
    }
    return known !== undefined;
  }

  get size(): number {
    return this.threads.size;
  }

  has(threadId: string): boolean {
    return this.threads.has(threadId);
  }

  /** Ids of those that are missing in the list (`unlisted`), or may be (`gone`). */
  ids(listing: Unlisted): readonly string[] {
    return [...this.threads].flatMap(([threadId, its]) => (its.listing === listing ? [threadId] : []));
  }

  /** @returns whether there are more than before */
  async set(threads: readonly (One & { readonly listing: Listing })[]): Promise<boolean> {
    const isNew = threads.filter((one) => one.listing !== (this.threads.get(one.threadId)?.listing ?? "listed"));
    if (isNew.length === 0) return false;
    for (const { key, threadId, listing } of isNew) {
      if (listing === "listed") this.threads.delete(threadId);
      else this.threads.set(threadId, { key, listing });
    }
    await this.save();
    return isNew.some(({ listing }) => listing !== "listed");
  }

  /** It was read. What is saved says so by the thread itself. */
  wasRead(threadId: string): void {
    this.threads.delete(threadId);
  }

  save(): Promise<void> {
    const keys = (listing: Unlisted) =>
      [...this.threads.values()].flatMap((its) => (its.listing === listing ? [its.key] : []));
    return this.database.set("absent", { unlisted: keys("unlisted"), gone: keys("gone") });
  }

  /** No threads are absent. */
  async none(): Promise<void> {
    this.clear();
    await this.database.set("absent", undefined);
  }

  clear(): void {
    this.threads.clear();
  }
}
