import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { isRecord, MAX_DEPTH } from "./json.js";
import { weigh } from "./size.js";

/** Most levels of a payload, with those around what agents made. */
const DEEPEST = MAX_DEPTH + 8;
/** No record is this large now; one of an older build may hold one value in many places. */
const LARGEST = 2 ** 29;
/** How many lists and objects are kept of a value that is too deep or too large. */
const KEPT = 10_000;
/** How many levels are kept of it: few enough that it stays readable wherever it is put. */
const KEPT_DEPTH = MAX_DEPTH / 2;

/** Events outside of messages and state, which AG-UI's client freezes: freezing bytes throws. */
const MAY_HOLD_BYTES: ReadonlySet<string> = new Set([
  EventType.CUSTOM,
  EventType.RAW,
  EventType.STEP_STARTED,
  EventType.STEP_FINISHED,
  EventType.RUN_FINISHED,
]);

export const mayHoldBytes = ({ type }: BaseEvent): boolean => MAY_HOLD_BYTES.has(type);

const isBigInt = (value: object): boolean => Object.prototype.toString.call(value) === "[object BigInt]";

/**
 * A stored value as it can be handed on: unchanged, unless an older build recorded what some contexts cannot copy, freeze
 * or send.
 * - deeper than the limits, or cyclic: `null` replaces what is deep in it
 * - a BigInt: its text
 * - bytes: `null`
 *
 * @param bytes it may hold them
 */
export function readable<T>(stored: T, bytes = false): T {
  const { size, depth, odd } = weigh(stored, { depth: DEEPEST, size: LARGEST });
  const isWhole = depth <= DEEPEST && size <= LARGEST;
  const isOdd = (found: typeof odd): boolean => found === "BigInt" || (found === "bytes" && !bytes);
  if (isWhole && !isOdd(odd)) return stored;
  let left = isWhole ? Infinity : KEPT;
  const deepest = isWhole ? Infinity : KEPT_DEPTH;
  const holders = new Set<object>();
  /** Results of a whole value by object: one object may stand in many places. */
  const known = new Map<object, unknown>();
  const inside = (value: object, at: number): unknown => {
    if (Array.isArray(value)) return value.map((item) => cut(item, at + 1));
    if (isRecord(value))
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cut(inner, at + 1)]));
    if (isBigInt(value)) return String(value);
    return isWhole && !isOdd(weigh(value, {}).odd) ? value : null;
  };
  const cut = (value: unknown, at: number): unknown => {
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (known.has(value)) return known.get(value);
    if (at > deepest || holders.has(value) || --left < 0) return null;
    holders.add(value);
    const kept = inside(value, at);
    holders.delete(value);
    if (isWhole) known.set(value, kept);
    return kept;
  };
  return cut(stored, 1) as T; // what the project relies on is neither as deep nor odd
}

/**
 * The same list where all of it is readable.
 *
 * @param bytes which items may hold them
 */
export function readableItems<T>(items: readonly T[], bytes: (item: T) => boolean = () => false): readonly T[] {
  const kept = items.map((item) => readable(item, bytes(item)));
  return kept.every((item, at) => item === items[at]) ? items : kept;
}
