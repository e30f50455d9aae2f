import { messageOf } from "../run/errors.js";
import type { ThreadRow } from "../storage/run-store.js";
import type { SyncHost } from "./sync-host.js";

/** How long after a change the threads are counted, in ms. */
export const QUIET_MS = 500;

/**
 * Keeps few threads on a device with little room: of more than `maxThreads`, those leave that were changed least recently. They
 * stay in the list, and come again when somebody opens them. What the space does not have, whole, stays here.
 */
export class LeavingThreads {
  private isDue = true;
  private isLooking = false;

  constructor(private readonly of: SyncHost) {}

  /** There may be more than before. */
  changed(): void {
    this.isDue = true;
    this.look();
  }

  /** Lets go what is too much, if this device is in step. */
  look(): void {
    const { maxThreads = Infinity, isCurrent } = this.of;
    if (maxThreads === Infinity || !this.isDue || this.isLooking || !isCurrent()) return;
    this.isLooking = true;
    void this.lookNow().finally(() => (this.isLooking = false));
  }

  private async lookNow(): Promise<void> {
    const { parts, closed, isCurrent } = this.of;
    while (this.isDue) {
      await parts.clock.after(QUIET_MS, closed);
      if (closed.aborted || !isCurrent()) return;
      this.isDue = false;
      await this.letGo().catch((error: unknown) => {
        if (!closed.aborted)
          parts.logger.warn(`The threads are not kept within limits.maxThreads: ${messageOf(error)}`);
      });
    }
  }

  private async letGo(): Promise<void> {
    const { maxThreads = Infinity, elsewhere, threadOf, closed } = this.of;
    const here = await this.here();
    let tooMany = here.length - maxThreads;
    if (tooMany <= 0) return;
    for (const { threadId } of await this.oldestFirst(here)) {
      if (tooMany <= 0 || closed.aborted) return;
      // What somebody has opened since this host began stays.
      const isFree = (): boolean => !elsewhere.used.has(threadId);
      const hasLeft = isFree() && (await (await threadOf(threadId))?.leave(isFree)) === true;
      if (hasLeft) tooMany--;
    }
  }

  private async here(): Promise<readonly string[]> {
    const { store } = this.of.parts;
    const ids: string[] = [];
    for (let after: string | undefined; ;) {
      const heads = await store.heads(after);
      if (heads.length === 0) return ids;
      ids.push(...heads.filter(({ deleted }) => deleted !== true).map(({ threadId }) => threadId));
      after = heads.at(-1)?.threadId;
    }
  }

  private async oldestFirst(threadIds: readonly string[]): Promise<readonly ThreadRow[]> {
    const rows: ThreadRow[] = [];
    for (const threadId of threadIds) {
      // One that cannot be read stays.
      const row = await this.of.parts.store.thread(threadId).catch(() => undefined);
      if (row !== undefined && row.absent !== true && !row.pinned) rows.push(row);
    }
    return rows.toSorted((one, other) => one.updatedAt - other.updatedAt);
  }
}
