/*
 * Reads a page of a thread's messages backwards from the rows that its runs left:
 *
 * - The first row of an id places the message; later ones replace its content. (A row that resets the thread, and those of
 *   its run, may have several messages of one id; nothing replaces the later ones.)
 * - A row `after` an earlier message is placed directly behind it, before those placed there earlier; any other at the end.
 *
 * So the messages are a tree: its roots are those placed at the end, in the order of their rows; the children of a message
 * are those placed after it, the newest row first. The list is the tree in pre-order; backwards: of each message first its
 * children, the oldest row first, and then itself.
 */

/** A row's position. */
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

/** A message's first and last row. */
export interface Span {
  readonly first: Place;
  readonly last: Place;
}

/** The rows of one path, from the newest that resets (else the first). Lists are in ascending order, except `before`. */
export interface MessageRows<Content> {
  /** The run that reset the thread. */
  readonly rewrittenBy: number | undefined;
  /** Rows older than `place` (undefined: from the end), newest first; fewer than `limit` only if there are no more. */
  before(place: Place | undefined, limit: number): Promise<readonly PlacedRow<Content>[]>;
  /** The rows in these places, which must exist. */
  at(places: readonly Place[]): Promise<readonly PlacedRow<Content>[]>;
  /** By message id; omits unknown ones. */
  spans(ids: readonly string[]): Promise<ReadonlyMap<string, Span>>;
  /** By message id, the rows `after` it, if any. */
  followers(ids: readonly string[]): Promise<ReadonlyMap<string, readonly PlacedRow<Content>[]>>;
}

export interface Page<Content> {
  /** The messages' newest contents, oldest message first. */
  readonly contents: readonly Content[];
  /** There are messages before the first one. */
  readonly earlier: boolean;
}

/** Bounds of how many rows are read at a time. */
const LEAST_ROWS = 16;
const MOST_ROWS = 256;

/** A row that places a message. */
interface Placing<Content> {
  readonly row: PlacedRow<Content>;
  readonly id: string;
  /** A later one of several messages of one id: nothing replaces it or is placed after it. */
  readonly again: boolean;
  /** The place of its parent in the tree. */
  readonly behind: Place | undefined;
  readonly last: Place;
}

interface Shown<Content> {
  readonly content: Content;
  readonly again: boolean;
}

const isSame = (a: Place, b: Place): boolean => a.runIndex === b.runIndex && a.n === b.n;
export const byPlace = (a: Place, b: Place): number => a.runIndex - b.runIndex || a.n - b.n;

/** See `RunStore.messagePage`. */
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

/** The messages before the one placed at `from`, newest first. */
async function* backwards<Content>(
  rows: MessageRows<Content>,
  from: Place | undefined,
  limit: number,
): AsyncGenerator<Shown<Content>, void> {
  let place = from;
  if (from !== undefined) {
    let [at] = await placing(rows, await rows.at([from]));
    // Up the tree: the siblings between it and its parent, which are newer, and then the parent.
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
  // One more than the page, to know whether there are earlier ones.
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

/** The rows that place a message, in the given order. */
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
    // The later rows of one id in the run that reset the thread are other messages.
    const last = span.last.runIndex === rows.rewrittenBy ? row : span.last;
    return [{ row, id, again, behind, last }];
  });
}

/** The messages, each preceded by its descendants: its part of the list backwards. */
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

/** The messages' newest contents. */
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
