import type { Chunk } from "./types.js";

/** What a value costs beside its text: a field, a number, a bracket. */
const FIELD = 8;
/** Items of a list that is larger than this are not looked at, whatever may be counted. */
const UNLISTED = 2 ** 30;

export interface Weight {
  /** In UTF-16 code units of text that says about the same. */
  readonly size: number;
  /** How deep lists and objects stand in each other: 0 for text and numbers, 1 for `{}`. */
  readonly depth: number;
  /**
   * It holds what is no JSON, so that readers would differ, or some fail at it; the gravest of what was found. `other` is
   * what JSON says in another way: a Date, a class instance, NaN, an `undefined`.
   */
  readonly odd?: "BigInt" | "bytes" | "other";
}

export interface WeighOptions {
  /** No more is counted than a little beyond it, so that nothing costs more to weigh than it is worth. */
  readonly size?: number;
  /** No deeper is looked than one level beyond it. */
  readonly depth?: number;
  /** A value in several places is counted once, as it is cloned and stored; else as often as JSON would say it. */
  readonly once?: boolean;
  /** The value's own fields may be `undefined`, which counts as absent. */
  readonly sparse?: boolean;
}

const isJsonNumber = (value: number): boolean => Number.isFinite(value) && !Object.is(value, -0);

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === (Array.isArray(value) ? Array.prototype : Object.prototype);
}

/** How large and how deep a value is, without recursion: it may be of any depth, and even hold itself. */
export function weigh(
  value: unknown,
  { size: most = Infinity, depth: deepest = Infinity, once, sparse }: WeighOptions,
): Weight {
  let size = 0;
  let depth = 0;
  let odd: Weight["odd"];
  const seen = once === true ? new Set<object>() : undefined;
  /** What is still to be looked into, and how deep it stands. */
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
    // Bytes are no fields: a file of some MB has too many to look at each.
    if (ArrayBuffer.isView(next) || next instanceof ArrayBuffer) {
      if (once === true) size += next.byteLength;
      // JSON has a field for each number in them, and nothing of what has no numbers.
      else if ("length" in next) size += Number(next.length) * (FIELD + String(next.length).length);
      if (odd !== "BigInt") odd = "bytes";
      continue;
    }
    if (!isPlain(next)) odd ??= "other";
    // Its fields are not what JSON says of it.
    if ("toJSON" in next && typeof next.toJSON === "function") odd ??= "other";
    else if (Array.isArray(next)) {
      // A list without items may be longer than any memory: it is not looked through where its length says enough.
      if (size + FIELD * next.length > Math.min(most, UNLISTED)) size += FIELD * next.length;
      else for (let n = 0; n < next.length && !isOver(); n++) visit(next[n], below);
    } else if (next instanceof Map || next instanceof Set) for (const entry of next) visit(entry, below);
    else {
      const keys = Object.keys(next);
      // In its object it has no fields.
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
 * What JSON makes of a value. A `toJSON` may make anything, so no more is made than was asked for.
 *
 * @param most counted as {@link weigh} does
 * @returns undefined where it is larger
 * @throws what a getter or a `toJSON` throws, and TypeError where it has no JSON
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
 * About how large a value is, in UTF-16 code units of text that say the same. Cheap, and the same on both sides of a
 * port.
 *
 * @param most see {@link WeighOptions.size}
 */
export const sizeOf = (value: unknown, most = Infinity): number => weigh(value, { size: most, once: true }).size;

/** Of chunks that are kept and handed out as they are, to one reader after the other. */
const weighed = new WeakMap<Chunk, number>();

/** About how large a chunk's events are, see {@link sizeOf}. */
export function chunkSize(chunk: Chunk): number {
  const known = weighed.get(chunk);
  if (known !== undefined) return known;
  const size = sizeOf(chunk.entries);
  weighed.set(chunk, size);
  return size;
}
