/*
 * A page of a thread's messages, read backwards from the rows that its runs left. The rows say how the thread came to be,
 * so where a message stands follows from them:
 *
 * - The first row of an id places the message; later ones replace what it says. (Only the row that begins the thread anew
 *   and those of the same run tell several messages of one id; the later ones of them are replaced by nothing.)
 * - A row that stands `after` a message which was there before it comes directly behind that, before what was put there
 *   earlier; any other one at the end.
 *
 * So the messages are a tree: those at the end are its roots, in the order of their rows; each has behind it those that
 * stand after it, the newest row first. Read backwards that is: of each message what stands after it, the oldest row first,
 * and then itself.
 */

/** Where a row stands. */
export interface Place {
  readonly runIndex: number;
  readonly n: number;
}

export interface PlacedRow<Content> extends Place {
  /** Of the message; absent in a row that only resets. */
  readonly id: string | undefined;
  readonly after: string | undefined;
  readonly content: Content;
}

/** The first and the last row of a message. */
export interface Span {
  readonly first: Place;
  readonly last: Place;
}

/**
 * The rows of one path, from the newest that resets (else from the first) to its end.
 *
 * - All rows that it tells of must be of the path, and none older than the newest one that resets.
 * - Lists must be in the order of the places, but for `before`, whose newest row comes first.
 */
export interface MessageRows<Content> {
  /** The run that began the thread anew. */
  readonly rewrittenBy: number | undefined;
  /** Rows older than `place` (undefined: from the end), at most `limit`; fewer only where there are no more. */
  before(place: Place | undefined, limit: number): Promise<readonly PlacedRow<Content>[]>;
  /** The rows in these places; all are there. */
  at(places: readonly Place[]): Promise<readonly PlacedRow<Content>[]>;
  /** For each id of which there is a row. */
  spans(ids: readonly string[]): Promise<ReadonlyMap<string, Span>>;
  /** For each id that rows stand `after`. */
  followers(ids: readonly string[]): Promise<ReadonlyMap<string, readonly PlacedRow<Content>[]>>;
}

export interface Page<Content> {
  /** What each message says now, oldest first. */
  readonly contents: readonly Content[];
  /** There are messages before the first one. */
  readonly earlier: boolean;
}

/** Rows read at a time, at least and at most. */
const LEAST_ROWS = 16;
const MOST_ROWS = 256;

/** A row that places a message. */
interface Placing<Content> {
  readonly row: PlacedRow<Content>;
  readonly id: string;
  /** Of several messages of one id a later one: nothing replaces it, nothing stands after it. */
  readonly again: boolean;
  /** The place of the message that it stands after. */
  readonly behind: Place | undefined;
  readonly last: Place;
}

interface Shown<Content> {
  readonly content: Content;
  readonly again: boolean;
}

const isSame = (a: Place, b: Place): boolean => a.runIndex === b.runIndex && a.n === b.n;
export const byPlace = (a: Place, b: Place): number => a.runIndex - b.runIndex || a.n - b.n;

/**
 * The `limit` messages before the message `before`, or at the end. A page never begins with one of several messages of one
 * id but the first, which `before` names: it is longer where it would.
 *
 * @returns undefined where there is no message of the id `before`
 */
export async function readPage<Content>(
  rows: MessageRows<Content>,
  before: string | undefined,
  limit: number,
): Promise<Page<Content> | undefined> {
  const from = before === undefined ? undefined : (await rows.spans([before])).get(before);
  if (before !== undefined && from === undefined) return undefined;
  const shown: Shown<Content>[] = [];
  for await (const message of backwards(rows, from?.first, limit)) {
    if (shown.length >= limit && shown.at(-1)?.again !== true) return pageOf(shown, true);
    shown.push(message);
  }
  return pageOf(shown, false);
}

const pageOf = <Content>(shown: readonly Shown<Content>[], earlier: boolean): Page<Content> => ({
  contents: shown.map(({ content }) => content).toReversed(),
  earlier,
});

/** The messages before the one that is placed at `from`, the newest first. */
async function* backwards<Content>(
  rows: MessageRows<Content>,
  from: Place | undefined,
  limit: number,
): AsyncGenerator<Shown<Content>, void> {
  let place = from;
  if (from !== undefined) {
    let [at] = await placing(rows, await rows.at([from]));
    // Up from what it stands after to that: what was put between the two later, and then that itself.
    while (at?.behind !== undefined) {
      const { row, behind } = at;
      const [parent] = await placing(rows, await rows.at([behind]));
      if (parent === undefined) break;
      const beside = (await rows.followers([parent.id])).get(parent.id) ?? [];
      const later = (await placing(rows, beside)).filter(
        (other) => isBehind(other, parent) && byPlace(other.row, row) > 0,
      );
      for (const message of await withFollowers(rows, later)) yield message;
      for (const message of await saying(rows, [parent])) yield message;
      at = parent;
    }
    place = at?.row;
  }
  // One more than is shown, which tells whether there are earlier ones.
  const count = Math.min(Math.max(limit + 1, LEAST_ROWS), MOST_ROWS);
  for (;;) {
    const found = await rows.before(place, count);
    const roots = (await placing(rows, found)).filter(({ behind }) => behind === undefined);
    for (const message of await withFollowers(rows, roots)) yield message;
    place = found.at(-1);
    if (place === undefined || found.length < count) return;
  }
}

const isBehind = <Content>({ behind }: Placing<Content>, { row }: Placing<Content>): boolean =>
  behind !== undefined && isSame(behind, row);

/** Those of the rows that place a message, in the order given. */
async function placing<Content>(
  rows: MessageRows<Content>,
  found: readonly PlacedRow<Content>[],
): Promise<Placing<Content>[]> {
  const ids = new Set(found.flatMap(({ id, after }) => [id, after]).filter((id) => id !== undefined));
  const spans = ids.size === 0 ? new Map<string, Span>() : await rows.spans([...ids]);
  return found.flatMap((row): Placing<Content>[] => {
    const { id, after } = row;
    const span = id === undefined ? undefined : spans.get(id);
    if (id === undefined || span === undefined) return [];
    const isFirst = isSame(span.first, row);
    const again = !isFirst && row.runIndex === rows.rewrittenBy && span.first.runIndex === row.runIndex;
    if (again) return [{ row, id, again, behind: undefined, last: row }];
    if (!isFirst) return [];
    const other = after === undefined ? undefined : spans.get(after)?.first;
    const behind = other !== undefined && byPlace(other, row) < 0 ? other : undefined;
    // What the run that begins the thread anew tells of an id again is another message.
    const last = span.last.runIndex === rows.rewrittenBy ? row : span.last;
    return [{ row, id, again, behind, last }];
  });
}

/** What stands behind each of the messages, read backwards, and then itself. */
async function withFollowers<Content>(
  rows: MessageRows<Content>,
  messages: readonly Placing<Content>[],
): Promise<Shown<Content>[]> {
  const all = [...messages];
  const behind = new Map<Placing<Content>, readonly Placing<Content>[]>();
  for (let level = messages.filter(({ again }) => !again); level.length > 0;) {
    const found = await rows.followers(level.map(({ id }) => id));
    if (found.size === 0) break;
    const placed = await placing(rows, [...found.values()].flat());
    for (const message of level)
      behind.set(
        message,
        placed.filter((other) => isBehind(other, message)),
      );
    level = placed.filter((other) => other.behind !== undefined);
    all.push(...level);
  }
  const order: Placing<Content>[] = [];
  const add = (message: Placing<Content>): void => {
    behind.get(message)?.forEach(add);
    order.push(message);
  };
  messages.forEach(add);
  return saying(rows, order);
}

/** What the messages say now. */
async function saying<Content>(
  rows: MessageRows<Content>,
  messages: readonly Placing<Content>[],
): Promise<Shown<Content>[]> {
  const replaced = messages.filter(({ row, last }) => !isSame(row, last));
  const newest = replaced.length === 0 ? [] : await rows.at(replaced.map(({ last }) => last));
  const now = new Map(replaced.map((message, n) => [message, newest[n]]));
  return messages.map((message) => ({
    content: (now.get(message) ?? message.row).content,
    again: message.again,
  }));
}
