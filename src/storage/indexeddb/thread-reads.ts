import type { ThreadRow } from "../run-store.js";
import { checkThread, isThread } from "./checks.js";
import type { Connection } from "./connection.js";
import type { ThreadRecord } from "./schema.js";

export async function readThread(connection: Connection, threadId: string): Promise<ThreadRow | undefined> {
  const record = checkThread(await connection.read(["threads"], (tx) => tx.objectStore("threads").get(threadId)));
  return record && toThreadRow(record);
}

export async function readThreads(
  connection: Connection,
  query: { limit: number; before?: number; agentId?: string; archived: boolean },
): Promise<ThreadRow[]> {
  const archived = query.archived ? 1 : 0;
  const before = query.before ?? Infinity;
  const records: ThreadRecord[] = [];
  await connection.read(["threads"], async (tx) => {
    const { agentId } = query;
    const store = tx.objectStore("threads");
    let cursor =
      agentId === undefined
        ? await store
            .index("updatedAt")
            .openCursor(IDBKeyRange.bound([archived, 0], [archived, before], false, true), "prev")
        : await store
            .index("agentId")
            .openCursor(IDBKeyRange.bound([agentId, archived, 0], [agentId, archived, before], false, true), "prev");
    while (cursor !== null && records.length < query.limit) {
      // One that is not valid is told to whoever reads it; it must not hide all others.
      if (isThread(cursor.value)) records.push(cursor.value);
      cursor = await cursor.continue();
    }
  });
  return records.map(toThreadRow);
}

export function toThreadRow(record: ThreadRecord): ThreadRow {
  return {
    threadId: record.threadId,
    title: record.title,
    ...(record.agentId !== undefined && { agentId: record.agentId }),
    archived: record.archived === 1,
    pinned: record.pinned === 1,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    runCount: record.runCount,
    ...(record.lastStatus !== undefined && { lastStatus: record.lastStatus }),
  };
}
