import type { Chunk } from "./types.js";

/** The cost of a value in addition to its text: a field, a number, a bracket. */
const FIELD = 8;
/** Lists that are longer than this are not walked, whatever the limits. */
const UNLISTED = 2 ** 30;

export interface Weight {
  /** About its length as JSON, in UTF-16 code units. */
  readonly size: number;
  /** Levels of nested lists and objects: 0 for text and numbers, 1 for `{}`. */
  readonly depth: number;
  /**
   * It holds a value that is not JSON, so that readers would differ or fail; the worst kind that was found. `other` is
   * what JSON writes in another form: a Date, a class instance, NaN, an `undefined`.
   */
  readonly odd?: "BigInt" | "bytes" | "other";
}

export interface WeighOptions {
  /** Counting stops a little beyond it, which bounds the cost of weighing. */
  readonly size?: number;
  /** The walk goes one level deeper than this at most. */
  readonly depth?: number;
  /** A value in several places counts once, as in a structured clone; otherwise once per place, as in JSON. */
  readonly once?: boolean;
  /** The value's own fields may be `undefined`, which counts as absent. */
  readonly sparse?: boolean;
}

const isJsonNumber = (value: number): boolean => Number.isFinite(value) && !Object.is(value, -0);

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === (Array.isArray(value) ? Array.prototype : Object.prototype);
}

/** The size and depth of a value. Without recursion: a value may be of any depth, or contain itself. */
export function weigh(
  value: unknown,
  { size: most = Infinity, depth: deepest = Infinity, once, sparse }: WeighOptions,
): Weight {
  let size = 0;
  let depth = 0;
  let odd: Weight["odd"];
  const seen = once === true ? new Set<object>() : undefined;
  /** Values that are still to be walked, and their depths. */
  const left: object[] = [];
  const depths: number[] = [];
  const visit = (next: unknown, at: number): void => {
    size += FIELD;
    if (typeof next === "string") size += next.length;
    else if (next === undefined ? at > (sparse === true ? 2 : 1) : typeof next === "number" && !isJsonNumber(next))
      odd ??= "other";
    else if (typeof next === "bigint") odd = "BigInt";
    if (typeof next !== "object" || next === null) return;
    depth = Math.max(depth, at);
    // There may be a million of them.
    if (Array.isArray(next) && next.length === 0 && isPlain(next) && !("toJSON" in next)) return;
    if (seen?.has(next) === true) return;
    seen?.add(next);
    left.push(next);
    depths.push(at);
  };
  const isOver = (): boolean => size > most || depth > deepest;
  visit(value, 1);
  while (left.length > 0 && !isOver()) {
    const next = left.pop()!;
    const below = depths.pop()! + 1;
    // Typed arrays are not walked: a file of some MB has millions of items.
    if (ArrayBuffer.isView(next) || next instanceof ArrayBuffer) {
      if (once === true) size += next.byteLength;
      // JSON has a field for each number in them, and none for a buffer.
      else if ("length" in next) size += Number(next.length) * (FIELD + String(next.length).length);
      if (odd !== "BigInt") odd = "bytes";
      continue;
    }
    if (!isPlain(next)) odd ??= "other";
    // JSON does not write its fields.
    if ("toJSON" in next && typeof next.toJSON === "function") odd ??= "other";
    else if (Array.isArray(next)) {
      // A sparse list may be longer than any memory: its length alone decides.
      if (size + FIELD * next.length > Math.min(most, UNLISTED)) size += FIELD * next.length;
      else for (let n = 0; n < next.length && !isOver(); n++) visit(next[n], below);
    } else if (next instanceof Map || next instanceof Set) for (const entry of next) visit(entry, below);
    else {
      const keys = Object.keys(next);
      // A boxed BigInt has no own fields.
      if (keys.length === 0 && Object.prototype.toString.call(next) === "[object BigInt]") odd = "BigInt";
      for (const key of keys) {
        size += key.length;
        // It was seen to have the key.
        visit((next as Record<string, unknown>)[key], below);
      }
    }
  }
  return { size, depth, ...(odd !== undefined && { odd }) };
}

/**
 * The JSON form of a value. A `toJSON` may return anything, so the size of the result is bounded.
 *
 * @param most counted as {@link weigh} does
 * @returns undefined if it is larger
 * @throws what a getter or a `toJSON` throws, and TypeError for a value without a JSON form
 */
export function jsonOf<T>(value: T, most: number): T | undefined {
  let left = most;
  function count(this: unknown, key: string, inner: unknown): unknown {
    left -= FIELD + (Array.isArray(this) ? 0 : key.length) + (typeof inner === "string" ? inner.length : 0);
    if (left < 0) throw new RangeError();
    return inner;
  }
  try {
    return JSON.parse(JSON.stringify(value, count)) as T; // or anything: callers check it as what they were given
  } catch (error) {
    if (left < 0) return undefined;
    throw error;
  }
}

/**
 * About the length of a value as JSON, in UTF-16 code units. Cheap, and the same on both sides of a port.
 *
 * @param most see {@link WeighOptions.size}
 */
export const sizeOf = (value: unknown, most = Infinity): number => weigh(value, { size: most, once: true }).size;

/** Sizes of chunks that several readers are handed; chunks never change. */
const weighed = new WeakMap<Chunk, number>();

/** About the size of a chunk's events, see {@link sizeOf}. */
export function chunkSize(chunk: Chunk): number {
  const known = weighed.get(chunk);
  if (known !== undefined) return known;
  const size = sizeOf(chunk.entries);
  weighed.set(chunk, size);
  return size;
}
