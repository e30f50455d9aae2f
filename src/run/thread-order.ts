/** Where a thread stands in the list. */
export interface ThreadPlace {
  /** Ms since the Unix epoch. */
  readonly updatedAt: number;
  readonly threadId: string;
}

/** Newest first, and of one time by falling id: for `sort`. */
export const byPlace = (one: ThreadPlace, other: ThreadPlace): number =>
  other.updatedAt - one.updatedAt || Number(one.threadId < other.threadId) - Number(one.threadId > other.threadId);
