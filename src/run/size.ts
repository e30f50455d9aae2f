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
  /** It holds what has no place in JSON, so that some reader fails at it. Bytes count less than a BigInt. */
  readonly odd?: "BigInt" | "bytes";
}

export interface WeighOptions {
  /** No more is counted than a little beyond it, so that nothing costs more to weigh than it is worth. */
  readonly size?: number;
  /** No deeper is looked than one level beyond it. */
  readonly depth?: number;
  /** A value in several places is counted once, as it is cloned and stored; else as often as JSON would say it. */
  readonly once?: boolean;
}

/** How large and how deep a value is, without recursion: it may be of any depth, and even hold itself. */
export function weigh(
  value: unknown,
  { size: most = Infinity, depth: deepest = Infinity, once }: WeighOptions,
): Weight {
  let size = 0;
  let depth = 0;
  let odd: Weight["odd"];
  const left: unknown[] = [value];
  const depths: number[] = [0];
  const seen = once === true ? new Set<object>() : undefined;
  const put = (inner: unknown, at: number): void => {
    left.push(inner);
    depths.push(at);
  };
  while (left.length > 0 && size <= most && depth <= deepest) {
    const next = left.pop();
    const at = depths.pop()! + 1;
    size += FIELD;
    if (typeof next === "string") size += next.length;
    if (typeof next === "bigint") odd = "BigInt";
    if (typeof next !== "object" || next === null || seen?.has(next) === true) continue;
    seen?.add(next);
    depth = Math.max(depth, at);
    // Bytes are no fields: a file of some MB has too many to look at each.
    if (ArrayBuffer.isView(next) || next instanceof ArrayBuffer) {
      size += next.byteLength;
      odd ??= "bytes";
    } else if (Array.isArray(next)) {
      // A list without items may be longer than any memory: it is not looked through where its length says enough.
      if (size + FIELD * next.length > Math.min(most, UNLISTED)) size += FIELD * next.length;
      else for (let n = next.length - 1; n >= 0; n--) put(next[n], at);
    } else if (next instanceof Map || next instanceof Set) for (const entry of next) put(entry, at);
    else {
      const keys = Object.keys(next);
      // In its object it has no fields.
      if (keys.length === 0 && Object.prototype.toString.call(next) === "[object BigInt]") odd = "BigInt";
      for (const key of keys) {
        size += key.length;
        // It was seen to have the key.
        put((next as Record<string, unknown>)[key], at);
      }
    }
  }
  return { size, depth, ...(odd !== undefined && { odd }) };
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
