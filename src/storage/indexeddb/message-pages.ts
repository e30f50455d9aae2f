import type { Message } from "@ag-ui/client";
import type { PayloadCodec } from "../codec.js";
import { byPlace, readPage, type MessageRows, type Place, type PlacedRow, type Span } from "../message-page.js";
import type { RunStore } from "../run-store.js";
import { corrupt, isMessage, isMessageAlone } from "./checks.js";
import { unlessCut } from "./heads.js";
import { decodeMessage } from "./payloads.js";
import { messageRecordsIn } from "./records.js";
import type { Connection, MessageRecord, ReadTransaction } from "./schema.js";

type Row = PlacedRow<MessageRecord>;
type Key = [string, number, number];

/** First and last of consecutive runs on the path; the newest first. */
type Segments = readonly (readonly [number, number])[];

export const indexedDBMessagePages =
  (connection: Connection, codec: PayloadCodec): RunStore["messagePage"] =>
  (threadId, upTo, path, { before, limit }) =>
    unlessCut(connection, threadId, async (first) => {
      const segments = segmentsOf(first, upTo, path);
      const resets = await newestReset(connection, threadId, segments);
      const page = await readPage(rowsOf(connection, threadId, segments, resets), before, limit);
      if (page === undefined) return undefined;
      const messages = await Promise.all(page.contents.map((record) => decodeMessage(codec, record)));
      // Records with an id have a message.
      return { messages: messages as Message[], earlier: page.earlier };
    });

function segmentsOf(first: number, upTo: number, path: ReadonlySet<number> | undefined): Segments {
  if (path === undefined) return upTo < first ? [] : [[first, upTo]];
  const segments: [number, number][] = [];
  for (const runIndex of [...path].sort((a, b) => b - a)) {
    if (runIndex < first || runIndex > upTo) continue;
    const last = segments.at(-1);
    if (last?.[0] === runIndex + 1) last[0] = runIndex;
    else segments.push([runIndex, runIndex]);
  }
  return segments;
}

const isIn = (segments: Segments, runIndex: number): boolean =>
  segments.some(([from, to]) => runIndex >= from && runIndex <= to);

async function newestReset(connection: Connection, threadId: string, segments: Segments): Promise<Place | undefined> {
  if (segments.length === 0) return undefined;
  return connection.read(["messages"], async (tx) => {
    const index = tx.objectStore("messages").index("resets");
    const oldest = segments.at(-1)?.[0] ?? 0;
    const range = IDBKeyRange.bound([threadId, 1, oldest], [threadId, 1, segments[0]?.[1] ?? -1]);
    let cursor = await index.openKeyCursor(range, "prev");
    while (cursor !== null && !isIn(segments, cursor.primaryKey[1])) cursor = await cursor.continue();
    return cursor === null ? undefined : placeOf(cursor.primaryKey);
  });
}

const placeOf = ([, runIndex, n]: Key): Place => ({ runIndex, n });

/** Rows of one message read together: few messages are replaced more often. */
const FEW = 4;

/** Each call is one short transaction: rows of settled runs do not change. */
function rowsOf(
  connection: Connection,
  threadId: string,
  path: Segments,
  resets: Place | undefined,
): MessageRows<MessageRecord> {
  const oldest = resets ?? { runIndex: path.at(-1)?.[0] ?? 0, n: 0 };
  const segments = path.flatMap(([first, last]) =>
    last < oldest.runIndex ? [] : [[Math.max(first, oldest.runIndex), last] as const],
  );
  const newestRun = segments[0]?.[1] ?? -1;
  const counts = (place: Place): boolean => byPlace(place, oldest) >= 0 && isIn(segments, place.runIndex);
  const keyOf = ({ runIndex, n }: Place): Key => [threadId, runIndex, n];
  const read = <T>(work: (tx: ReadTransaction) => Promise<T>): Promise<T> => connection.read(["messages"], work);

  const rowOf = (record: MessageRecord): Row => {
    if (!isMessageAlone(record)) throw corrupt("messages", record ?? { threadId });
    const { runIndex, n, messageId, after, message } = record;
    return { runIndex, n, id: message === undefined ? undefined : messageId, after, content: record };
  };

  /** The first or last row of a message that counts, if it has many. */
  const nearest = async (tx: ReadTransaction, only: IDBKeyRange, way: "next" | "prev"): Promise<Place | undefined> => {
    let cursor = await tx.objectStore("messages").index("messageId").openKeyCursor(only, way);
    const bound: Key = way === "next" ? keyOf(oldest) : [threadId, newestRun, Infinity];
    const isOutside = (place: Place): boolean =>
      way === "next" ? byPlace(place, oldest) < 0 : place.runIndex > newestRun;
    if (cursor !== null && isOutside(placeOf(cursor.primaryKey))) {
      cursor = await cursor.continuePrimaryKey(cursor.key, bound);
    }
    while (cursor !== null && !counts(placeOf(cursor.primaryKey))) cursor = await cursor.continue();
    return cursor === null ? undefined : placeOf(cursor.primaryKey);
  };

  const spanOf = async (tx: ReadTransaction, id: string): Promise<Span | undefined> => {
    const only = IDBKeyRange.only([threadId, id]);
    const keys = await tx.objectStore("messages").index("messageId").getAllKeys(only, FEW);
    const places = keys.map(placeOf).filter(counts);
    const first = keys.length < FEW ? places[0] : await nearest(tx, only, "next");
    const last = keys.length < FEW ? places.at(-1) : first && (await nearest(tx, only, "prev"));
    return first && last && { first, last };
  };

  /** Whether any row stands after another message: most threads have none. */
  let hasFollowers: Promise<boolean> | undefined;

  return {
    rewrittenBy: resets?.runIndex,

    before: (place, limit) =>
      read(async (tx) => {
        const store = tx.objectStore("messages");
        const rows: Row[] = [];
        for (const [from, to] of segments) {
          if (rows.length >= limit) break;
          if (place !== undefined && place.runIndex < from) continue;
          const end: Key = place === undefined || place.runIndex > to ? [threadId, to, Infinity] : keyOf(place);
          const start: Key = [threadId, from, -1];
          const newest = await store.openKeyCursor(IDBKeyRange.bound(start, end, true, true), "prev");
          if (newest === null) continue;
          // `getAll` has no direction, and a cursor takes a request per record: so find the start, then read forwards.
          const upper = newest.primaryKey;
          const left = limit - rows.length;
          const first = left === 1 ? newest : await newest.advance(left - 1);
          const records = await messageRecordsIn(tx, IDBKeyRange.bound(first?.primaryKey ?? start, upper));
          checkSequence(records, first === null);
          for (const record of records.toReversed()) rows.push(rowOf(record));
        }
        return rows;
      }),

    at: (places) =>
      read(async (tx) => {
        const store = tx.objectStore("messages");
        const records = await Promise.all(places.map((place) => store.get(keyOf(place))));
        return records.map((record, n) => {
          if (record === undefined) throw corrupt("messages", { threadId, ...places[n]! });
          return rowOf(record);
        });
      }),

    spans: (ids) =>
      read(async (tx) => {
        const spans = await Promise.all(ids.map(async (id) => [id, await spanOf(tx, id)] as const));
        return new Map(spans.flatMap(([id, span]) => (span === undefined ? [] : [[id, span]])));
      }),

    followers: async (ids) => {
      hasFollowers ??= read(async (tx) => {
        const all = IDBKeyRange.bound([threadId], [threadId, []]);
        return (await tx.objectStore("messages").index("after").getKey(all)) !== undefined;
      });
      const followers = new Map<string, Row[]>();
      if (!(await hasFollowers)) return followers;
      await read(async (tx) => {
        const index = tx.objectStore("messages").index("after");
        const found = await Promise.all(ids.map((id) => index.getAll(IDBKeyRange.only([threadId, id]))));
        ids.forEach((id, n) => {
          const rows = found[n]!.map(rowOf).filter(counts);
          if (rows.length > 0) followers.set(id, rows);
        });
      });
      return followers;
    },
  };
}

/** @param isStart no earlier record is in their run's part of the path */
function checkSequence(records: readonly MessageRecord[], isStart: boolean): void {
  records.forEach((record, at) => {
    const before = records[at - 1];
    const valid =
      at === 0 && !isStart
        ? isMessageAlone(record)
        : isMessage(record, before?.runIndex === record.runIndex ? before : undefined);
    if (!valid) throw corrupt("messages", record);
  });
}
