import type { Interrupt, State } from "@ag-ui/client";
import type { Chunk, PackedEntry } from "../../run/types.js";
import type { PayloadCodec } from "../codec.js";
import { firstOf } from "../decisions.js";
import type { MessageRow, PersistedInput, RunClosing, RunQuery, RunRow, StoredMessageRow } from "../run-store.js";
import { checkChunk, checkHead, checkRun } from "./checks.js";
import type { Connection } from "./connection.js";
import { counts, unlessCut } from "./heads.js";
import { runRange, toRunRow } from "./records.js";
import type { ChunkRecord, MessageRecord, RunRecord } from "./schema.js";

/** Rows fetched in one transaction: a long read would make the appends of all threads wait behind it. */
const PAGE = 256;

const runKeys = (threadId: string, runIndex: number, fromSeq: number): IDBKeyRange =>
  IDBKeyRange.bound([threadId, runIndex, fromSeq], [threadId, runIndex, Infinity]);

export async function readRun(
  connection: Connection,
  threadId: string,
  runIndex: number,
): Promise<RunRecord | undefined> {
  const [head, record] = await connection.read(["heads", "runs"], (tx) =>
    Promise.all([tx.objectStore("heads").get(threadId), tx.objectStore("runs").get([threadId, runIndex])]),
  );
  return runIndex < firstOf(checkHead(head)) ? undefined : checkRun(record);
}

export async function readRunById(
  connection: Connection,
  threadId: string,
  runId: string,
): Promise<RunRow | undefined> {
  const [head, record] = await connection.read(["heads", "runs"], (tx) =>
    Promise.all([tx.objectStore("heads").get(threadId), tx.objectStore("runs").index("runId").get([threadId, runId])]),
  );
  const run = checkRun(record);
  return run === undefined || run.runIndex < firstOf(checkHead(head)) ? undefined : toRunRow(run);
}

export async function readRunsOfId(connection: Connection, runId: string, limit: number): Promise<RunRow[]> {
  return connection.read(["heads", "runs"], async (tx) => {
    const rows: RunRow[] = [];
    if (limit <= 0) return rows;
    let cursor = await tx.objectStore("runs").index("id").openCursor(runId);
    while (cursor !== null) {
      const run = checkRun(cursor.value)!;
      const head = await tx.objectStore("heads").get(run.threadId);
      if (run.runIndex >= firstOf(head)) rows.push(toRunRow(run));
      if (rows.length >= limit) break;
      cursor = await cursor.continue();
    }
    return rows;
  });
}

/** All runs with this index or a greater one. */
export async function readRunsFrom(connection: Connection, threadId: string, first: number): Promise<RunRow[]> {
  const rows: RunRow[] = [];
  for (;;) {
    const range = runRange(threadId, rows.length === 0 ? first : rows.at(-1)!.runIndex + 1, Infinity);
    const page = await connection.read(["runs"], (tx) => tx.objectStore("runs").getAll(range, PAGE));
    rows.push(...page.map((record) => toRunRow(checkRun(record)!)));
    if (page.length < PAGE) return rows;
  }
}

export const readRuns = (connection: Connection, threadId: string): Promise<RunRow[]> =>
  unlessCut(connection, threadId, (first) => readRunsFrom(connection, threadId, first));

/** Read downwards in windows of run indexes, which grow while few of their runs are of the status. */
export const readRunsBefore = (
  connection: Connection,
  { threadId, status, before = Infinity, limit }: RunQuery,
): Promise<RunRow[]> =>
  unlessCut(connection, threadId, async (first, head) => {
    const rows: RunRow[] = [];
    let end = Math.min(before, head?.runCount ?? 0);
    for (let size = Math.min(limit, PAGE); end > first && rows.length < limit; size = Math.min(2 * size, PAGE)) {
      const from = Math.max(first, end - size);
      const range = runRange(threadId, from, end);
      const page = await connection.read(["runs"], (tx) => tx.objectStore("runs").getAll(range));
      for (let at = page.length - 1; at >= 0 && rows.length < limit; at--) {
        const run = toRunRow(checkRun(page[at])!);
        if (status === undefined || run.status === status) rows.push(run);
      }
      end = from;
    }
    return rows;
  });

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
  if (records.length === 0 || !(await counts(connection, threadId, runIndex, "events"))) return [];
  return Promise.all(
    records.map(async (record) => ({ ...record, entries: (await codec.decode(record.entries)) as PackedEntry[] })),
  );
}

async function readMessageRecords(
  connection: Connection,
  threadId: string,
  first: number,
  upTo: number,
  path: ReadonlySet<number> | undefined,
): Promise<MessageRecord[]> {
  const records: MessageRecord[] = [];
  let from: [string, number, number] = [threadId, first, -1];
  if (upTo < first) return records;
  for (;;) {
    const range = IDBKeyRange.bound(from, [threadId, upTo, Infinity], true);
    const page = await connection.read(["messages"], (tx) => tx.objectStore("messages").getAll(range, 4 * PAGE));
    for (const record of page) {
      if (path !== undefined && !path.has(record.runIndex)) continue;
      if (record.resets === 1) records.length = 0;
      records.push(record);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < 4 * PAGE) return records;
    from = [threadId, last.runIndex, last.n];
  }
}

export async function readMessageRows(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  upTo: number,
  path: ReadonlySet<number> | undefined,
): Promise<StoredMessageRow[]> {
  const records = await unlessCut(connection, threadId, (first) =>
    readMessageRecords(connection, threadId, first, upTo, path),
  );
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

export async function readStateAfter(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  runIndex: number,
): Promise<{ state: State; interrupts: Interrupt[] } | undefined> {
  const record = await connection.read(["states"], (tx) => tx.objectStore("states").get([threadId, runIndex]));
  if (record === undefined || !(await counts(connection, threadId, runIndex, "end"))) return undefined;
  return {
    // What the codec was given is what it gives back.
    state: (await codec.decode(record.state)) as State,
    interrupts: (await codec.decode(record.interrupts)) as Interrupt[],
  };
}
