import type { Chunk } from "./types.js";

/** What a value costs beside its text: a field, a number, a bracket. */
const FIELD = 8;

/**
 * About how large a value is, in UTF-16 code units of text that say the same. Cheap, and the same on both sides of a
 * port.
 *
 * @param most no further is counted than a little beyond it, so that nothing costs more to weigh than it is worth
 */
export function sizeOf(value: unknown, most = Infinity): number {
  let size = 0;
  const left: unknown[] = [value];
  // What an agent emits may hold a value twice, or itself: it is cloned and stored once, and so it is weighed.
  const seen = new Set<object>();
  while (left.length > 0 && size < most) {
    const next = left.pop();
    size += FIELD;
    if (typeof next === "string") size += next.length;
    if (typeof next !== "object" || next === null || seen.has(next)) continue;
    seen.add(next);
    // Bytes are no fields: a file of some MB has too many to look at each.
    if (ArrayBuffer.isView(next) || next instanceof ArrayBuffer) size += next.byteLength;
    else if (Array.isArray(next)) for (let at = next.length - 1; at >= 0; at--) left.push(next[at]);
    else {
      for (const key of Object.keys(next)) {
        size += key.length;
        // It was seen to have the key.
        left.push((next as Record<string, unknown>)[key]);
      }
    }
  }
  return size;
}

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
