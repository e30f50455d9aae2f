/** Sets an own field. `__proto__` too becomes a plain field, as it is in JSON. */
export function setOwn(target: object, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else (target as Record<string, unknown>)[key] = value;
}

/** Sets every own field of `source` on `target`. */
export function assignOwn(target: object, source: object | null): void {
  if (source !== null)
    for (const key of Object.keys(source)) setOwn(target, key, (source as Record<string, unknown>)[key]);
}

/** An object that is one in JSON too: no list, no Date. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Object.prototype.toString.call(value) === "[object Object]";

/** A deep copy. Faster than structuredClone for JSON values, and equal to it for others. */
export function cloneJson<T>(value: T): T {
  if (typeof value !== "object" || value === null) {
    return typeof value === "function" || typeof value === "symbol" ? structuredClone(value) : value;
  }
  if (Array.isArray(value)) return value.map(cloneJson) as T;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return structuredClone(value);
  const copy = {};
  for (const key of Object.keys(value)) setOwn(copy, key, cloneJson((value as Record<string, unknown>)[key]));
  return copy as T;
}

/** Deep equality of JSON values; a field that is undefined counts as absent. */
export function equalJson(a: unknown, b: unknown): boolean {
  return alike(a, b, false);
}

/** Equal, and the same as text: fields stand in the same order. */
export function sameJson(a: unknown, b: unknown): boolean {
  return alike(a, b, true);
}

/** @param most stops after one more */
function definedKeys(of: Record<string, unknown>, most: number): string[] {
  const defined: string[] = [];
  for (const key of Object.keys(of)) {
    if (of[key] === undefined) continue;
    defined.push(key);
    if (defined.length > most) break;
  }
  return defined;
}

function alike(a: unknown, b: unknown, inOrder: boolean): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  if (Array.isArray(a) || Array.isArray(b)) {
    // Lists of different lengths are not walked: one of them may be far longer.
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    for (let at = 0; at < a.length; at++) if (!alike(a[at], b[at], inOrder)) return false;
    return true;
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  // The number of keys of one bounds the walk over the other.
  const others = definedKeys(right, Infinity);
  const keys = definedKeys(left, others.length);
  if (keys.length !== others.length) return false;
  return keys.every(
    (key, at) => (inOrder ? others[at] === key : Object.hasOwn(right, key)) && alike(left[key], right[key], inOrder),
  );
}

/** Deeper values are refused: later code may walk them recursively. */
export const MAX_DEPTH = 200;
/** A value of more fields and items is refused. JSON of 4 MB has 2 million at most. */
const MAX_FIELDS = 10_000_000;

/**
 * Why a value from outside must not be handed on, as the end of a sentence. A field `__proto__` at any depth is one
 * reason: code that copies objects field by field would make its value the copy's prototype. An object in many places
 * counts in each of them, as in JSON.
 */
export function flawOf(value: unknown): string | undefined {
  let left = MAX_FIELDS;
  const look = (within: object, depth: number): string | undefined => {
    if (depth > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`;
    if (ArrayBuffer.isView(within)) return undefined;
    const isList = Array.isArray(within);
    const keys = isList ? undefined : Object.keys(within);
    const { length } = keys ?? (within as readonly unknown[]); // a list, where it has no keys
    if ((left -= length) < 0) return "has too many fields";
    for (let at = 0; at < length; at++) {
      const key = keys?.[at] ?? at;
      if (key === "__proto__") return 'has a field "__proto__"';
      const item = (within as Readonly<Record<PropertyKey, unknown>>)[key];
      if (typeof item !== "object" || item === null) continue;
      const flaw = look(item, depth + 1);
      if (flaw !== undefined) return flaw;
    }
    return undefined;
  };
  return typeof value === "object" && value !== null ? look(value, 1) : undefined;
}
