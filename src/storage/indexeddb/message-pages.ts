import type { Message } from "@ag-ui/client";
import type { PayloadCodec } from "../codec.js";
import { byPlace, readPage, type MessageRows, type Place, type PlacedRow, type Span } from "../message-page.js";
import type { MessagePagePlace, StoredMessagePage } from "../run-store.js";
import { corrupt, isMessage, isMessageAlone } from "./checks.js";
import type { Connection, ReadTransaction } from "./connection.js";
import { unlessCut } from "./heads.js";
import { decodeMessage } from "./payloads.js";
import { messageRecordsIn } from "./records.js";
import type { MessageRecord } from "./schema.js";

/** Rows of one message that are looked at together: few messages are replaced more often. */
const FEW = 4;

type Row = PlacedRow<MessageRecord>;
type Key = [string, number, number];

/** Runs from the first to the second that follow one another on the path; the newest first. */
type Segments = readonly (readonly [number, number])[];

export function readMessagePage(
  connection: Connection,
  codec: PayloadCodec,
  threadId: string,
  upTo: number,
  path: ReadonlySet<number> | undefined,
  { before, limit }: MessagePagePlace,
): Promise<StoredMessagePage | undefined> {
  return unlessCut(connection, threadId, async (first) => {
    const segments = segmentsOf(first, upTo, path);
    const resets = await newestReset(connection, threadId, segments);
    const page = await readPage(new Rows(connection, threadId, segments, resets), before, limit);
    if (page === undefined) return undefined;
    const messages = await Promise.all(page.contents.map((record) => decodeMessage(codec, record)));
    // Each of them has an id, so there is a message in it.
    return { messages: messages as Message[], earlier: page.earlier };
  });
}

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
    while (cursor !== null) {
      const [, runIndex, n] = cursor.primaryKey;
      if (isIn(segments, runIndex)) return { runIndex, n };
      cursor = await cursor.continue();
    }
    return undefined;
  });
}

/** Each call is one short transaction: what is read of settled runs stays as it is. */
class Rows implements MessageRows<MessageRecord> {
  readonly rewrittenBy: number | undefined;
  private readonly segments: Segments;
  private readonly oldest: Place;
  /** Whether any row stands after another message: most threads have none. */
  private hasFollowers: Promise<boolean> | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly threadId: string,
    segments: Segments,
    resets: Place | undefined,
  ) {
    this.rewrittenBy = resets?.runIndex;
    this.oldest = resets ?? { runIndex: segments.at(-1)?.[0] ?? 0, n: 0 };
    const from = this.oldest.runIndex;
    this.segments = segments.flatMap(([first, last]) => (last < from ? [] : [[Math.max(first, from), last] as const]));
  }

  before(place: Place | undefined, limit: number): Promise<Row[]> {
    return this.read(async (tx) => {
      const store = tx.objectStore("messages");
      const rows: Row[] = [];
      for (const [from, to] of this.segments) {
        if (rows.length >= limit) break;
        if (place !== undefined && place.runIndex < from) continue;
        const end: Key = place === undefined || place.runIndex > to ? [this.threadId, to, Infinity] : this.keyOf(place);
        const start: Key = [this.threadId, from, -1];
        const newest = await store.openKeyCursor(IDBKeyRange.bound(start, end, true, true), "prev");
        if (newest === null) continue;
        // No request reads a range backwards, and a cursor takes one for each record: so first where the range begins.
        const upper = newest.primaryKey;
        const left = limit - rows.length;
        const oldest = left === 1 ? newest : await newest.advance(left - 1);
        const records = await messageRecordsIn(tx, IDBKeyRange.bound(oldest?.primaryKey ?? start, upper));
        this.checkSequence(records, oldest === null);
        for (const record of records.toReversed()) rows.push(this.rowOf(record));
      }
      return rows;
    });
  }

  at(places: readonly Place[]): Promise<Row[]> {
    return this.read(async (tx) => {
      const store = tx.objectStore("messages");
      const records = await Promise.all(places.map((place) => store.get(this.keyOf(place))));
      return records.map((record, n) => {
        if (record === undefined) throw corrupt("messages", { threadId: this.threadId, ...places[n]! });
        return this.rowOf(record);
      });
    });
  }

  spans(ids: readonly string[]): Promise<Map<string, Span>> {
    return this.read(async (tx) => {
      const spans = await Promise.all(ids.map((id) => this.spanOf(tx, id)));
      return new Map(
        ids.flatMap((id, n) => {
          const span = spans[n];
          return span === undefined ? [] : [[id, span] as const];
        }),
      );
    });
  }

  async followers(ids: readonly string[]): Promise<Map<string, Row[]>> {
    this.hasFollowers ??= this.read(async (tx) => {
      const all = IDBKeyRange.bound([this.threadId], [this.threadId, []]);
      return (await tx.objectStore("messages").index("after").getKey(all)) !== undefined;
    });
    const followers = new Map<string, Row[]>();
    if (!(await this.hasFollowers)) return followers;
    await this.read(async (tx) => {
      const index = tx.objectStore("messages").index("after");
      const found = await Promise.all(ids.map((id) => index.getAll(IDBKeyRange.only([this.threadId, id]))));
      ids.forEach((id, n) => {
        const rows = found[n]!.map((record) => this.rowOf(record)).filter((row) => this.counts(row));
        if (rows.length > 0) followers.set(id, rows);
      });
    });
    return followers;
  }

  private async spanOf(tx: ReadTransaction, id: string): Promise<Span | undefined> {
    const index = tx.objectStore("messages").index("messageId");
    const only = IDBKeyRange.only([this.threadId, id]);
    const keys = await index.getAllKeys(only, FEW);
    if (keys.length < FEW) {
      const places = keys.map(placeOf).filter((place) => this.counts(place));
      const [first] = places;
      return first && { first, last: places.at(-1)! };
    }
    const first = await this.nearest(tx, only, "next");
    const last = first && (await this.nearest(tx, only, "prev"));
    return last && { first, last };
  }

  /** The first or the last row of the message that counts, of whichever many. */
  private async nearest(tx: ReadTransaction, only: IDBKeyRange, way: "next" | "prev"): Promise<Place | undefined> {
    let cursor = await tx.objectStore("messages").index("messageId").openKeyCursor(only, way);
    const [newestRun = -1] = this.segments[0]?.slice(1) ?? [];
    const bound: Key = way === "next" ? this.keyOf(this.oldest) : [this.threadId, newestRun, Infinity];
    const isOutside = (place: Place): boolean =>
      way === "next" ? byPlace(place, this.oldest) < 0 : place.runIndex > newestRun;
    if (cursor !== null && isOutside(placeOf(cursor.primaryKey))) {
      cursor = await cursor.continuePrimaryKey(cursor.key, bound);
    }
    while (cursor !== null && !this.counts(placeOf(cursor.primaryKey))) cursor = await cursor.continue();
    return cursor === null ? undefined : placeOf(cursor.primaryKey);
  }

  private counts(place: Place): boolean {
    return byPlace(place, this.oldest) >= 0 && isIn(this.segments, place.runIndex);
  }

  /** @param isStart there are none before them in their run's part of the path */
  private checkSequence(records: readonly MessageRecord[], isStart: boolean): void {
    records.forEach((record, at) => {
      const before = records[at - 1];
      const valid =
        at === 0 && !isStart
          ? isMessageAlone(record)
          : isMessage(record, before?.runIndex === record.runIndex ? before : undefined);
      if (!valid) throw corrupt("messages", record);
    });
  }

  private rowOf(record: MessageRecord): Row {
    if (!isMessageAlone(record)) throw corrupt("messages", record ?? { threadId: this.threadId });
    const { runIndex, n, messageId, after, message } = record;
    return { runIndex, n, id: message === undefined ? undefined : messageId, after, content: record };
  }

  private keyOf({ runIndex, n }: Place): Key {
    return [this.threadId, runIndex, n];
  }

  private read<T>(work: (tx: ReadTransaction) => Promise<T>): Promise<T> {
    return this.connection.read(["messages"], work);
  }
}

const placeOf = ([, runIndex, n]: Key): Place => ({ runIndex, n });
