import { RunnerError } from "../../run/errors.js";
import type { Chunk, PackedEntry } from "../../run/types.js";
import type { PayloadCodec } from "../codec.js";
import type {
  MessageRow,
  PersistedInput,
  RunClosing,
  RunRow,
  StoredMessageRow,
  ThreadHead,
  ThreadRow,
} from "../run-store.js";
import { checkChunk, checkHead, checkRun, isHead } from "./checks.js";
import type { Connection } from "./connection.js";
import type { ChunkRecord, MessageRecord, RunRecord, ThreadRecord } from "./schema.js";
import { toRunRow } from "./writes.js";

/** Rows fetched in one transaction: a long read would make the appends of all threads wait behind it. */
const PAGE = 256;

const runKeys = (threadId: string, runIndex: number, fromSeq: number): IDBKeyRange =>
  IDBKeyRange.bound([threadId, runIndex, fromSeq], [threadId, runIndex, Infinity]);

export async function readHead(connection: Connection, threadId: string): Promise<ThreadHead | undefined> {
  return checkHead(await connection.read(["heads"], (tx) => tx.objectStore("heads").get(threadId)));
}

export async function readLiveHeads(connection: Connection): Promise<ThreadHead[]> {
  const heads = await connection.read(["heads"], (tx) => tx.objectStore("heads").index("holder").getAll());
  // One that is not valid is told to whoever reads its thread; it must not hide all others.
  return heads.filter(isHead);
}

export async function readRun(
  connection: Connection,
  threadId: string,
  runIndex: number,
): Promise<RunRecord | undefined> {
  return checkRun(await connection.read(["runs"], (tx) => tx.objectStore("runs").get([threadId, runIndex])));
}

export async function readRunById(
  connection: Connection,
  threadId: string,
  runId: string,
): Promise<RunRow | undefined> {
  const record = await connection.read(["runs"], (tx) => tx.objectStore("runs").index("runId").get([threadId, runId]));
  const run = checkRun(record);
  return run && toRunRow(run);
}

export async function readRuns(connection: Connection, threadId: string): Promise<RunRow[]> {
  const rows: RunRow[] = [];
  for (;;) {
    const from = rows.at(-1)?.runIndex ?? -1;
    const range = IDBKeyRange.bound([threadId, from], [threadId, Infinity], true);
    const page = await connection.read(["runs"], (tx) => tx.objectStore("runs").getAll(range, PAGE));
    rows.push(...page.map((record) => toRunRow(checkRun(record)!)));
    if (page.length < PAGE) return rows;
  }
}

export async function readInput(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
): Promise<PersistedInput | undefined> {
  const record = await readRun(connection, threadId, runIndex);
  return record && ((await codec.decode(record.input)) as PersistedInput);
}

export async function readClosing(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
): Promise<RunClosing | undefined> {
  const record = await readRun(connection, threadId, runIndex);
  return record?.closing === undefined ? undefined : ((await codec.decode(record.closing)) as RunClosing);
}

/**
 * The first record may begin at or before `afterSeq + 1`: a chunk is handed out whole, and the reader drops what it
 * has (`sliceChunk`).
 */
export async function readChunks(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
  afterSeq: number,
  limit: number,
): Promise<Chunk[]> {
  const records: ChunkRecord[] = [];
  await connection.read(["chunks"], async (tx) => {
    const store = tx.objectStore("chunks");
    // The chunk that holds `afterSeq + 1` is the last one that begins at or before it.
    const upTo = IDBKeyRange.bound([threadId, runIndex, 0], [threadId, runIndex, afterSeq + 1]);
    const first = await store.openKeyCursor(upTo, "prev");
    const from = first === null ? 0 : first.key[2];
    let events = 0;
    let next = from;
    while (events < limit) {
      const page = await store.getAll(runKeys(threadId, runIndex, next), PAGE);
      for (const record of page) {
        checkChunk(record);
        next = record.firstSeq + record.count;
        if (next <= afterSeq + 1) continue;
        records.push(record);
        events += record.count;
        if (events >= limit) break;
      }
      if (page.length < PAGE) break;
    }
  });
  return Promise.all(
    records.map(async (record) => ({ ...record, entries: (await codec.decode(record.entries)) as PackedEntry[] })),
  );
}

export async function readMessageRows(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  upTo: number,
  path: ReadonlySet<number> | undefined,
): Promise<StoredMessageRow[]> {
  const records: MessageRecord[] = [];
  let from: [string, number, number] = [threadId, -1, -1];
  for (;;) {
    const range = IDBKeyRange.bound(from, [threadId, upTo, Infinity], true);
    const page = await connection.read(["messages"], (tx) => tx.objectStore("messages").getAll(range, 4 * PAGE));
    for (const record of page) {
      if (path !== undefined && !path.has(record.runIndex)) continue;
      if (record.resets === 1) records.length = 0;
      records.push(record);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < 4 * PAGE) break;
    from = [threadId, last.runIndex, last.n];
  }
  return Promise.all(
    records.map(async ({ runIndex, message: stored, after, resets }) => ({
      runIndex,
      resets: resets === 1,
      row:
        stored === undefined
          ? undefined
          : {
              message: (await codec.decode(stored)) as MessageRow["message"],
              ...(after !== undefined && { after }),
            },
    })),
  );
}

export async function readThread(connection: Connection, threadId: string): Promise<ThreadRow | undefined> {
  const record = await connection.read(["threads"], (tx) => tx.objectStore("threads").get(threadId));
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
      records.push(cursor.value);
      cursor = await cursor.continue();
    }
  });
  return records.map(toThreadRow);
}

function toThreadRow(record: ThreadRecord): ThreadRow {
  if (typeof record.title !== "string" || typeof record.updatedAt !== "number") {
    throw new RunnerError("corrupt-record", { store: "threads", threadId: record.threadId });
  }
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
