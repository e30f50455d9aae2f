import type { SpacePlace } from "./space.js";
import type { ThreadRecord } from "./sync-database.js";
import type { ThreadSync } from "./thread-sync.js";

type Put = (records: readonly ThreadRecord[], place: SpacePlace | undefined) => Promise<void>;

/**
 * How far the space was read, and how far a host that starts later need not read again: everything up to there is in the
 * log, or its thread's record says what of it is to be read.
 */
export class SavedPlace {
  /** What was read last. */
  now: SpacePlace | undefined;
  private saved: SpacePlace | undefined;
  private readonly unsaved = new Set<ThreadSync>();
  private isSaving = false;

  /** @param put saves records, and the place: of an absent one, the one before stays */
  constructor(private readonly put: Put) {}

  /** @param place what a host before this one has saved */
  begin(place: SpacePlace | undefined): void {
    this.now = this.saved = place;
  }

  /** Nothing of the space is known any more. */
  forget(): void {
    this.begin(undefined);
    this.unsaved.clear();
  }

  /** From now on the thread has something that is not saved. */
  add(thread: ThreadSync): void {
    this.unsaved.add(thread);
  }

  /** It has left this device. */
  delete(thread: ThreadSync): void {
    this.unsaved.delete(thread);
  }

  /** Saves what is known of the thread. */
  async saveThread(thread: ThreadSync, record: ThreadRecord): Promise<void> {
    await this.save([record], thread);
    if (thread.firstUnsavedThen === undefined) this.unsaved.delete(thread);
  }

  /** Saves the place up to what was read last, where no thread does: what was passed over has none. */
  async savePlace(): Promise<void> {
    if (this.isSaving) return;
    this.isSaving = true;
    try {
      while (this.unsaved.size === 0 && this.now !== this.saved) await this.save([]);
    } catch {
      // It is saved with what comes next.
    } finally {
      this.isSaving = false;
    }
  }

  private async save(records: readonly ThreadRecord[], saved?: ThreadSync): Promise<void> {
    const place = this.placeWith(saved);
    await this.put(records, place);
    this.saved = place;
  }

  /** Everything up to here is in the log, or is known to be read yet. @param saved a thread whose record is saved with it */
  private placeWith(saved: ThreadSync | undefined): SpacePlace | undefined {
    const { now } = this;
    let seq = now?.seq ?? 0;
    for (const one of this.unsaved) {
      const { firstUnsaved = Infinity, firstUnsavedThen = Infinity } = one;
      seq = Math.min(seq, (one === saved ? firstUnsavedThen : firstUnsaved) - 1);
    }
    return now && (seq === now.seq ? now : { log: now.log, seq });
  }
}
