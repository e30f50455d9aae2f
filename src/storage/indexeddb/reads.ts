import type { Message } from "@ag-ui/client";
import { RunnerError } from "../../run/errors.js";
import { digestOf, isNotOfRecord, type PayloadCodec } from "../codec.js";
import { firstOf, type RowsOfId } from "../decisions.js";
import { readable } from "../../run/readable.js";
import { answeredIn, resultOf } from "../pending-tool-calls.js";
import type { NamedRun, RunReads, RunRow } from "../run-store.js";
import { checkHead, checkRun, corrupt, isHead, isMessage, isMessageAlone, isRecord, isRun } from "./checks.js";
import { endCounts, readHead, readRun, unlessCut } from "./heads.js";
import { decodeClosing, decodeInput, decodeMessage, decodeState } from "./payloads.js";
import { asGiven, messageRecordsIn, PAGE, placeOfResult, runRange, toRunRow } from "./records.js";
import type { Connection, MessageRecord, ReadTransaction, RunRecord, WriteTransaction } from "./schema.js";

/**
 * See `runById` of the store.
 *
 * @param fingerprint as the codec makes it of the given one
 * @param given a run may still be stored with it; it is then returned with the other
 */
export async function runOfId(
  tx: ReadTransaction | WriteTransaction,
  threadId: string,
  runId: string,
  fingerprint: string | undefined,
  given: string | undefined,
): Promise<RunRecord | undefined> {
  const index = tx.objectStore("runs").index("runId");
  const newest = await index.get([threadId, runId]);
  if (newest === undefined || !isRun(newest) || fingerprint === undefined || given === undefined) return newest;
  if (newest.fingerprint === fingerprint) return newest;
  if (newest.fingerprint === given) return { ...newest, fingerprint };
  const former = await index.get(formersOf(threadId, [runId, fingerprint]));
  if (former !== undefined || given === fingerprint) return former ?? newest;
  const older = await index.get(formersOf(threadId, [runId, given]));
  return older === undefined ? newest : { ...older, fingerprint };
}

/** Runs whose id a later one has, see `formerId`. */
const formersOf = (threadId: string, id: readonly [runId: string, fingerprint?: string]): IDBKeyRange =>
  IDBKeyRange.bound([threadId, id], [threadId, [...id, []]]);

/** The run that has the id now. */
export const newestOfId = (
  tx: ReadTransaction | WriteTransaction,
  threadId: string,
  runId: string,
): Promise<RunRecord | undefined> => tx.objectStore("runs").index("runId").get([threadId, runId]);

/** Errors: RunnerError `corrupt-record` */
export const rowsOfId = (same: RunRecord | undefined, newest: RunRecord | undefined): RowsOfId<RunRecord> => ({
  same: checkRun(same),
  newest: same?.runIndex === newest?.runIndex ? same : checkRun(newest),
});

/** See `runNamed` of the store. */
export async function runOfName(
  tx: ReadTransaction | WriteTransaction,
  threadId: string,
  { runId, answerId }: NamedRun,
): Promise<RunRecord | undefined> {
  const newest = await newestOfId(tx, threadId, runId);
  // Whoever reads an invalid one reports it.
  if (newest !== undefined && (!isRun(newest) || newest.answerId === answerId)) return newest;
  const formers = await tx
    .objectStore("runs")
    .index("runId")
    .getAll(formersOf(threadId, [runId]));
  const its = formers.filter((run) => isRun(run) && run.answerId === answerId);
  // One of a deleted thread that is still to be swept has a lower index.
  return its.toSorted((one, other) => other.runIndex - one.runIndex)[0];
}

/** All runs with this index or a greater one. */
export async function readRunsFrom(connection: Connection, threadId: string, first: number): Promise<RunRow[]> {
  const rows: RunRow[] = [];
  for (;;) {
    const range = runRange(threadId, rows.length === 0 ? first : rows.at(-1)!.runIndex + 1, Infinity);
    const page = await connection.read(["runs"], (tx) => tx.objectStore("runs").getAll(range, PAGE));
    rows.push(...page.map((record) => toRunRow(checkRun(record))));
    if (page.length < PAGE) return rows;
  }
}

/** The records from the newest one that resets. */
async function readMessageRecords(
  connection: Connection,
  threadId: string,
  first: number,
  upTo: number,
  path: ReadonlySet<number> | undefined,
): Promise<MessageRecord[]> {
  const records: MessageRecord[] = [];
  if (upTo < first) return records;
  let from: [string, number, number] = [threadId, first, -1];
  let before: MessageRecord | undefined;
  for (;;) {
    const range = IDBKeyRange.bound(from, [threadId, upTo, Infinity], true);
    const page = await connection.read(["messages"], (tx) => messageRecordsIn(tx, range, 4 * PAGE));
    for (const record of page) {
      if (path !== undefined && !path.has(record.runIndex)) continue;
      if (!isMessage(record, before?.runIndex === record.runIndex ? before : undefined))
        throw corrupt("messages", record);
      before = record;
      if (record.resets === 1) records.length = 0;
      records.push(record);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < 4 * PAGE) return records;
    from = [threadId, last.runIndex, last.n];
  }
}

/** Message ids looked up in one transaction. */
const IDS_AT_ONCE = 256;

/** Without the key nothing is given out: the run that would go on is refused. */
function unlessLocked(error: unknown): undefined {
  if (isNotOfRecord(error)) throw error;
}

function unlessUnreadable(error: unknown): undefined {
  if (!RunnerError.is(error, "corrupt-record")) throw error;
}

type Reads = Omit<RunReads, "chunks" | "messagePage" | "thread" | "threads">;

export const indexedDBReads = (connection: Connection, codec: PayloadCodec): Reads => ({
  head: (threadId) => readHead(connection, threadId),

  liveHeads: async () => {
    const heads = await connection.read(["heads"], (tx) => tx.objectStore("heads").index("holder").getAll());
    // An invalid one is reported to readers of its thread; it must not hide the others.
    return heads.filter(isHead);
  },

  heads: async (after) => {
    for (let from = after; ;) {
      const range = from === undefined ? undefined : IDBKeyRange.lowerBound(from, true);
      const [heads, keys] = await connection.read(["heads"], (tx) =>
        Promise.all([tx.objectStore("heads").getAll(range, PAGE), tx.objectStore("heads").getAllKeys(range, PAGE)]),
      );
      const valid = heads.filter(isHead);
      if (valid.length > 0 || keys.length === 0) return valid;
      from = keys.at(-1);
    }
  },

  run: async (threadId, runIndex) => {
    const record = await readRun(connection, threadId, runIndex);
    return record && toRunRow(record);
  },

  runById: async (threadId, runId, given) => {
    const fingerprint = given === undefined ? given : await digestOf(codec, given);
    const [head, record] = await connection.read(["heads", "runs"], (tx) =>
      Promise.all([tx.objectStore("heads").get(threadId), runOfId(tx, threadId, runId, fingerprint, given)]),
    );
    const run = checkRun(record);
    if (run === undefined || run.runIndex < firstOf(checkHead(head))) return undefined;
    return asGiven(toRunRow(run), fingerprint, given);
  },

  runsOfId: (runId, limit) =>
    connection.read(["heads", "runs"], async (tx) => {
      const rows: RunRow[] = [];
      if (limit <= 0) return rows;
      let cursor = await tx.objectStore("runs").index("id").openCursor(runId);
      while (cursor !== null) {
        const run = cursor.value;
        // An invalid one is reported to readers of its thread; it must not hide those of other threads.
        const head = isRun(run) ? await tx.objectStore("heads").get(run.threadId) : undefined;
        if (isRun(run) && (head === undefined || isHead(head)) && run.runIndex >= firstOf(head))
          rows.push(toRunRow(run));
        if (rows.length >= limit) break;
        cursor = await cursor.continue();
      }
      return rows;
    }),

  runs: (threadId) => unlessCut(connection, threadId, (first) => readRunsFrom(connection, threadId, first)),

  // Reads windows of run indexes downwards; they grow while few runs match.
  runsBefore: ({ threadId, status, before = Infinity, limit }) =>
    unlessCut(connection, threadId, async (first, head) => {
      const rows: RunRow[] = [];
      let end = Math.min(before, head?.runCount ?? 0);
      for (let size = Math.min(limit, PAGE); end > first && rows.length < limit; size = Math.min(2 * size, PAGE)) {
        const from = Math.max(first, end - size);
        const range = runRange(threadId, from, end);
        const page = await connection.read(["runs"], (tx) => tx.objectStore("runs").getAll(range));
        for (let at = page.length - 1; at >= 0 && rows.length < limit; at--) {
          const run = toRunRow(checkRun(page[at]!));
          if (status === undefined || run.status === status) rows.push(run);
        }
        end = from;
      }
      return rows;
    }),

  input: async (threadId, runIndex) => {
    const record = await readRun(connection, threadId, runIndex);
    return record && decodeInput(codec, record);
  },

  closing: async (threadId, runIndex) => {
    const record = await readRun(connection, threadId, runIndex);
    return record && decodeClosing(codec, record);
  },

  messageRows: async (threadId, upTo, path) => {
    const records = await unlessCut(connection, threadId, (first) =>
      readMessageRecords(connection, threadId, first, upTo, path),
    );
    return Promise.all(
      records.map(async (record) => {
        const { runIndex, after, addedBy, resets } = record;
        const message = await decodeMessage(codec, record);
        const row = message && {
          message,
          ...(after !== undefined && { after }),
          ...(addedBy !== undefined && { addedBy }),
        };
        return { runIndex, resets: resets === 1, row };
      }),
    );
  },

  messageForms: async (threadId, messageIds) => {
    const forms = new Map<string, Message[]>();
    const asked = [...new Set(messageIds)];
    while (asked.length > 0) {
      const ids = asked.splice(0, IDS_AT_ONCE);
      const records = await unlessCut(connection, threadId, (first) =>
        connection.read(["messages"], async (tx) => {
          const index = tx.objectStore("messages").index("messageId");
          const found = await Promise.all(ids.map((id) => index.getAll([threadId, id])));
          return found.flat().filter((record) => isMessageAlone(record) && record.runIndex >= first);
        }),
      );
      for (const record of records) {
        const message = await decodeMessage(codec, record).catch(unlessUnreadable);
        if (message !== undefined) forms.set(message.id, [...(forms.get(message.id) ?? []), message]);
      }
    }
    return forms;
  },

  stateAfter: async (threadId, runIndex) => {
    const record = await connection.read(["states"], (tx) => tx.objectStore("states").get([threadId, runIndex]));
    if (record === undefined || !(await endCounts(connection, threadId, runIndex))) return undefined;
    if (!isRecord(record)) throw corrupt("states", { threadId, runIndex });
    return decodeState(codec, record);
  },

  toolResults: async (head) => {
    // An answer that cannot be read must not keep the thread from its next run (L7).
    const decoded = answeredIn(head).map(async (call) =>
      resultOf(
        call,
        readable(
          await codec.decode(call.result, placeOfResult(head?.threadId ?? "", call.toolCallId)).catch(unlessLocked),
        ),
      ),
    );
    return Promise.all(decoded);
  },
});
