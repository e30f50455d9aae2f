import { isSameDatabase } from "../run/epochs.js";
import type { RunStore, ThreadHead } from "./run-store.js";

/**
 * Reads a thread of which a limit or another host may delete or cut off parts meanwhile, or the whole database. If that
 * happens, the result or error of the read is discarded, and the thread is read again.
 */
export async function steadily<T>(
  store: Pick<RunStore, "head">,
  threadId: string,
  read: (head: ThreadHead | undefined) => Promise<T>,
): Promise<T> {
  for (;;) {
    const head = await store.head(threadId);
    const isSame = async (): Promise<boolean> => {
      const now = await store.head(threadId);
      if (now === undefined || head === undefined) return now === head;
      if (!isSameDatabase(now.epoch, head.epoch)) return false;
      return now.first === head.first && now.cut === head.cut && now.deleted === head.deleted;
    };
    try {
      const result = await read(head);
      if (await isSame()) return result;
    } catch (error) {
      if (await isSame()) throw error;
    }
  }
}
