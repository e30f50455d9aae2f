import type { CheckpointPlace } from "../checkpoint-store.js";
import { isCount } from "../checks.js";
import type { Place } from "./schema.js";

/** The largest count that `getAll` and `advance` accept, an unsigned long. */
export const MOST = 2 ** 32 - 1;

/*
 * The indexes end in the place. An array is greater than every number, so [] sorts after the turns of a timestamp and
 * [[]] after all places: https://w3c.github.io/IndexedDB/#key-construct
 */

/** Sorts after every key that begins with the ids. */
export const behind = (ids: readonly string[]): IDBValidKey[] => [...ids, [[]]];

/** Every place below these ids. */
export const everyPlace = (...ids: readonly string[]): IDBKeyRange => IDBKeyRange.bound([...ids], behind(ids));

// From 0, so that 0 stays 0.
const negative = (value: number): number => 0 - value;

export const placeOf = ({ timestamp }: { readonly timestamp: number }, turn: number): Place => [
  negative(timestamp),
  negative(turn),
];

/** The places of one timestamp. */
export const placesAt = (ids: readonly string[], timestamp: number): IDBKeyRange =>
  IDBKeyRange.bound([...ids, [negative(timestamp)]], [...ids, [negative(timestamp), []]]);

/** The places older than `before` and newer than `after`, if given; undefined: none. */
export function placesBetween(
  ids: readonly string[],
  before: CheckpointPlace | undefined,
  after: CheckpointPlace | undefined,
): IDBKeyRange | undefined {
  const first = before && [
    ...ids,
    [negative(before.timestamp), before.turn === undefined ? [] : negative(before.turn)],
  ];
  const last = after && [...ids, after.turn === undefined ? [negative(after.timestamp)] : placeOf(after, after.turn)];
  if (first && last && indexedDB.cmp(first, last) >= 0) return undefined;
  return IDBKeyRange.bound(first ?? [...ids], last ?? behind(ids), first !== undefined, last !== undefined);
}

/** The turn; -1 if it is none that another one can follow. */
export const turnOf = (turn: unknown): number => (typeof turn === "number" && isCount(turn + 1) ? turn : -1);

/** The turn in an index key; -1 as in {@link turnOf}. */
export function turnIn(key: IDBValidKey | undefined): number {
  const place: unknown = Array.isArray(key) ? key.at(-1) : undefined;
  return turnOf(Array.isArray(place) ? negative(Number(place[1])) : undefined);
}
