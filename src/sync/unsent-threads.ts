import type { SyncHost } from "./sync-host.js";

/** Pause before a thread is looked at again that could not be opened, in ms. */
const RETRY_MS = 1_000;

/** Threads that may have something that is to be sent: each is opened once this device is in step, and sends it then. */
export class UnsentThreads {
  private readonly ids = new Set<string>();

  constructor(private readonly host: SyncHost) {}

  add(threadId: string): void {
    this.ids.add(threadId);
  }

  /** This device is in step. */
  open(): void {
    const ids = [...this.ids];
    this.ids.clear();
    for (const threadId of ids) void this.lookAt(threadId);
  }

  /** It may have something to send. What cannot be read now is looked at again. */
  private async lookAt(threadId: string): Promise<void> {
    const { threadOf, parts, closed, isCurrent } = this.host;
    try {
      (await threadOf(threadId))?.ring();
    } catch {
      this.ids.add(threadId);
      await parts.clock.after(RETRY_MS, closed);
      if (isCurrent() && this.ids.delete(threadId)) await this.lookAt(threadId);
    }
  }

  /** Looks which threads of the log may have something. @param absent ids of those that have left: all of them was sent */
  async lookAtAll(absent: readonly string[]): Promise<void> {
    const { store } = this.host.parts;
    const left = new Set(absent);
    for (let after: string | undefined; ;) {
      const heads = await store.heads(after);
      if (heads.length === 0) return;
      for (const { threadId, deleted } of heads) {
        if (deleted !== true || !left.has(threadId)) this.ids.add(threadId);
      }
      after = heads.at(-1)?.threadId;
    }
  }

  /** A host before this one may have asked servers for the first run of a thread: nothing of it is in the log. */
  async lookAtHeld(): Promise<void> {
    const { database, self } = this.host;
    for (const threadId of await database.heldBy(self().id)) await this.lookAt(threadId);
  }
}
