const sameBytes = (one: Uint8Array, other: Uint8Array): boolean => {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
};

/** The bytes of a buffer or view, which has millions of them: its items are no fields. */
const bytesOf = (value: object): Uint8Array | undefined => {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
};

/** What a value consists of whose content is not in its own fields. */
function partsOf(value: object): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (value instanceof Map || value instanceof Set) return [...value];
  if (value instanceof Error) return [value.name, value.message, value.stack, value.cause];
  if (value instanceof RegExp) return [String(value)];
  return value instanceof Date ? [value.getTime()] : undefined;
}

const definedFields = (of: object): [string, unknown][] =>
  Object.entries(of).filter(([, value]) => value !== undefined);

/**
 * Deep equality of what IndexedDB keeps: also of bytes, dates, maps and values that contain themselves. A field that is
 * undefined counts as absent.
 */
export function sameValue(a: unknown, b: unknown, pairs = new Map<object, object>()): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b)) return false;
  const [one, other] = [bytesOf(a), bytesOf(b)];
  if (one !== undefined && other !== undefined) return sameBytes(one, other);
  // They are being compared, or were.
  if (pairs.get(a) === b) return true;
  pairs.set(a, b);
  const [left, right] = [partsOf(a), partsOf(b)];
  if (left !== undefined && right !== undefined) {
    // Not `every`, which passes over holes.
    if (left.length !== right.length) return false;
    for (let at = 0; at < left.length; at++) if (!sameValue(left[at], right[at], pairs)) return false;
    return true;
  }
  const fields = definedFields(a);
  const others = new Map(definedFields(b));
  return fields.length === others.size && fields.every(([key, value]) => sameValue(value, others.get(key), pairs));
}
