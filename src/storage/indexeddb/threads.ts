import { defined } from "../../platform/defined.js";
import type { ListedThread, RunStore, ThreadRow } from "../run-store.js";
import { isNotOfRecord, type PayloadCodec } from "../codec.js";
import { checkThread, isThread } from "./checks.js";
import { quietly } from "./database-connection.js";
import { refuseEncrypted } from "./keyless.js";
import { decodeTitle } from "./payloads.js";
import { encodeTitle, withKeys } from "./records.js";
import { KEYS, type Connection, type ThreadRecord } from "./schema.js";
import { anyWaits, waitingRange } from "./waiting-rows.js";

/** The list of threads. */
export const indexedDBThreads = (
  connection: Connection,
  codec: PayloadCodec,
): Pick<RunStore, "thread" | "threads" | "waitingThreads" | "clearWaiting" | "updateThread" | "threadsBeyond"> => ({
  thread: async (threadId) => {
    const record = checkThread(await connection.read(["threads"], (tx) => tx.objectStore("threads").get(threadId)));
    return record && toThreadRow(codec, record);
  },

  threads: async ({ agentId, archived, before, limit }) => {
    const records = await connection.read(["threads"], async (tx) => {
      const rows: ThreadRecord[] = [];
      const store = tx.objectStore("threads");
      const kind = archived ? 1 : 0;
      const { updatedAt, threadId } = before ?? { updatedAt: Infinity, threadId: "" };
      const isBefore = threadId === "";
      let cursor =
        agentId === undefined
          ? await store
              .index("updatedAt")
              .openCursor(IDBKeyRange.bound([kind, 0], [kind, updatedAt], false, isBefore), "prev")
          : await store
              .index("agentId")
              .openCursor(IDBKeyRange.bound([agentId, kind, 0], [agentId, kind, updatedAt], false, isBefore), "prev");
      // Of one time by falling id: both indexes are in this order.
      while (cursor?.key.at(-1) === updatedAt && cursor.primaryKey >= threadId) cursor = await cursor.continue();
      while (cursor !== null && rows.length < limit) {
        // An invalid one is reported to whoever reads it; it must not hide the others.
        if (isThread(cursor.value)) rows.push(cursor.value);
        cursor = await cursor.continue();
      }
      return rows;
    });
    return Promise.all(records.map((record) => toThreadRow(codec, record, true)));
  },

  waitingThreads: () =>
    connection.read(["waiting"], async (tx) => {
      const threadIds: string[] = [];
      let cursor = await tx.objectStore("waiting").openKeyCursor();
      while (cursor !== null) {
        const [threadId] = cursor.primaryKey;
        threadIds.push(threadId);
        cursor = await cursor.continue([threadId, Infinity]);
      }
      return threadIds;
    }),

  clearWaiting: (threadId) =>
    connection.write(["waiting"], "strict", async (tx) => {
      if (await anyWaits(tx, threadId)) quietly(tx.objectStore("waiting").delete(waitingRange(threadId)));
    }),

  // Not over `heads`: appends of all threads would wait. A deletion removes the row with the same transaction that writes
  // the tombstone, so a row that exists belongs to a thread that exists.
  updateThread: async (threadId, { title: given, archived, pinned }) => {
    // Whoever is not given the row must not have changed it.
    await codec.ready?.();
    const title = given === undefined ? given : await encodeTitle(codec, threadId, given);
    const record = await connection.write(withKeys("threads"), "strict", async (tx) => {
      await refuseEncrypted(tx, codec, KEYS, [title]);
      const threads = tx.objectStore("threads");
      const before = checkThread(await threads.get(threadId));
      if (before === undefined) return undefined;
      const after: ThreadRecord = {
        ...before,
        ...(title !== undefined && { title, named: 1 }),
        ...(archived !== undefined && { archived: archived ? 1 : 0 }),
        ...(pinned !== undefined && { pinned: pinned ? 1 : 0 }),
      };
      quietly(threads.put(after));
      return after;
    });
    return record && toThreadRow(codec, record, true);
  },

  // Reads shown and archived threads from the oldest, more of them as long as pinned and live ones are in the way.
  threadsBeyond: async (keep) => {
    const live = new Set(
      await connection.read(["heads"], (tx) => tx.objectStore("heads").index("holder").getAllKeys()),
    );
    // An invalid row does not tell whether somebody pinned it.
    const mayGo = (record: ThreadRecord): boolean =>
      isThread(record) && record.pinned === 0 && !live.has(record.threadId);
    return connection.read(["threads", "waiting"], async (tx) => {
      const byAge = tx.objectStore("threads").index("updatedAt");
      const kinds = [0, 1].map((kind) => IDBKeyRange.bound([kind, -Infinity], [kind, Infinity]));
      const counts = await Promise.all(kinds.map((kind) => byAge.count(kind)));
      const all = counts.reduce((sum, count) => sum + count, 0);
      const tooMany = all - keep;
      if (tooMany <= 0) return [];
      for (let read = tooMany + live.size; ; read *= 2) {
        const found = await Promise.all(kinds.map((kind) => byAge.getAll(kind, read)));
        // No unread thread is older than these.
        const oldest: ListedThread[] = [];
        for (const record of found.flat().sort(byTime).slice(0, read)) {
          const { threadId, updatedAt, runCount } = record;
          // The title is not decoded.
          if (mayGo(record) && !(await anyWaits(tx, threadId))) oldest.push({ threadId, updatedAt, runCount });
        }
        if (oldest.length >= tooMany || read >= all) return oldest.slice(0, tooMany);
      }
    });
  },
});

const byTime = (a: ThreadRecord, b: ThreadRecord): number =>
  a.updatedAt - b.updatedAt || (a.threadId < b.threadId ? -1 : 1);

/**
 * @param shown also without its title, if that cannot be read: the thread must not be missing from the list
 */
async function toThreadRow(codec: PayloadCodec, record: ThreadRecord, shown = false): Promise<ThreadRow> {
  const title = await decodeTitle(codec, record).catch((error: unknown) => {
    if (!shown || isNotOfRecord(error)) throw error;
    return "";
  });
  const { threadId, named, agentId, archived, pinned, createdAt, updatedAt, runCount, lastStatus, absent } = record;
  return {
    threadId,
    title,
    archived: archived === 1,
    pinned: pinned === 1,
    createdAt,
    updatedAt,
    runCount,
    ...defined({ agentId, lastStatus, named: named && (true as const), absent: absent && (true as const) }),
  };
}
