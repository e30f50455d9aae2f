import type { Checkpoint, CheckpointMetadata } from "../checkpoint.js";
import type { CheckpointPlace } from "../checkpoint-store.js";

export interface Entry {
  readonly checkpoint: Checkpoint;
  readonly metadata: CheckpointMetadata;
  /** Unique; with equal timestamps, the higher was saved later. */
  readonly turn: number;
}

/** Entries per key, oldest first, because most are appended. */
export class Ordered {
  readonly #of = new Map<string, Entry[]>();

  keys(): string[] {
    return [...this.#of.keys()];
  }

  all(key: string): readonly Entry[] {
    return this.#of.get(key) ?? [];
  }

  newest(key: string): Entry | undefined {
    return this.#of.get(key)?.at(-1);
  }

  /** Entries older than `before` and newer than `after`, if given. */
  between(key: string, before: CheckpointPlace | undefined, after: CheckpointPlace | undefined): readonly Entry[] {
    const entries = this.all(key);
    const from = after === undefined ? 0 : olderThan(entries, after.timestamp, (after.turn ?? Infinity) + 1);
    const to = before === undefined ? entries.length : olderThan(entries, before.timestamp, before.turn ?? -1);
    return entries.slice(from, Math.max(from, to));
  }

  add(key: string, entry: Entry): void {
    const entries = this.#of.get(key);
    if (entries === undefined) this.#of.set(key, [entry]);
    else entries.splice(olderThan(entries, entry.checkpoint.timestamp, entry.turn), 0, entry);
  }

  remove(key: string, entry: Entry): void {
    const entries = this.#of.get(key);
    if (entries === undefined) return;
    entries.splice(olderThan(entries, entry.checkpoint.timestamp, entry.turn), 1);
    if (entries.length === 0) this.#of.delete(key);
  }

  removeAll(key: string, gone: ReadonlySet<Entry>): void {
    const left = this.all(key).filter((entry) => !gone.has(entry));
    if (left.length === 0) this.#of.delete(key);
    else this.#of.set(key, left);
  }
}

/** The number of entries before this place. */
function olderThan(entries: readonly Entry[], timestamp: number, turn: number): number {
  let from = 0;
  let to = entries.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    const entry = entries[middle]!;
    const older =
      entry.checkpoint.timestamp < timestamp || (entry.checkpoint.timestamp === timestamp && entry.turn < turn);
    if (older) from = middle + 1;
    else to = middle;
  }
  return from;
}
