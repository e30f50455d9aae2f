/** What a control of a thread is called. */
export type ThreadLabel = (title: string) => string;

/** What the list of threads says. */
export interface ThreadListLabels {
  readonly list: string;
  readonly newThread: string;
  readonly showArchived: string;
  readonly hideArchived: string;
  readonly more: string;
  readonly empty: string;
  readonly loading: string;
  readonly untitled: string;
  readonly running: string;
  readonly rename: ThreadLabel;
  readonly newTitle: ThreadLabel;
  readonly archive: ThreadLabel;
  readonly restore: ThreadLabel;
  readonly delete: ThreadLabel;
  readonly confirmDelete: ThreadLabel;
}

export const LABELS: ThreadListLabels = {
  list: "Threads",
  newThread: "New thread",
  showArchived: "Show archived",
  hideArchived: "Hide archived",
  more: "Show more",
  empty: "No threads yet.",
  loading: "Loading …",
  untitled: "Untitled",
  running: "running",
  rename: (title) => `Rename ${title}`,
  newTitle: (title) => `New title of ${title}`,
  archive: (title) => `Archive ${title}`,
  restore: (title) => `Restore ${title}`,
  delete: (title) => `Delete ${title}`,
  confirmDelete: (title) => `Really delete ${title}`,
};
