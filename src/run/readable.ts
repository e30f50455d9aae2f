import { isRecord, MAX_DEPTH } from "./json.js";
import { weigh } from "./size.js";

/** Levels of a payload, with those that it has around what agents made. */
const DEEPEST = MAX_DEPTH + 8;
/** Nothing that is recorded now is as large; what an older build recorded may hold one value in many places. */
const LARGEST = 2 ** 29;
/** Lists and objects that are kept of a value that is too deep or too large. */
const KEPT = 10_000;
/** Levels that are kept of it: so much fewer that it stays readable wherever it is put. */
const KEPT_DEPTH = MAX_DEPTH / 2;

/**
 * What of a stored value can be handed on: all of it, unless it is deeper than anything that is recorded now, or holds
 * itself. Then `null` takes the place of what is deep in it. Older builds recorded such values. Some contexts cannot copy
 * or send them.
 */
export function readable<T>(stored: T): T {
  const { size, depth } = weigh(stored, { depth: DEEPEST, size: LARGEST });
  if (depth <= DEEPEST && size <= LARGEST) return stored;
  let left = KEPT;
  const holders = new Set<object>();
  const inside = (value: object, at: number): unknown => {
    if (Array.isArray(value)) return value.map((item) => cut(item, at + 1));
    if (!isRecord(value)) return null;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cut(inner, at + 1)]));
  };
  const cut = (value: unknown, at: number): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (at > KEPT_DEPTH || holders.has(value) || --left < 0) return null;
    holders.add(value);
    const kept = inside(value, at);
    holders.delete(value);
    return kept;
  };
  return cut(stored, 1) as T; // what the project relies on is not as deep
}

/** The same list where all of it is readable. */
export function readableItems<T>(items: readonly T[]): readonly T[] {
  const kept = items.map(readable);
  return kept.every((item, at) => item === items[at]) ? items : kept;
}
