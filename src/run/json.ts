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

/** Fields and nothing else, in JSON too: not a list, and not a Date, which is text there. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Object.prototype.toString.call(value) === "[object Object]";

/** A deep copy. Faster than structuredClone on JSON, and the same on what is no JSON. */
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

/** @param most no more than one beyond it is looked for */
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
    // Lists of other lengths are not looked through: one of them may be far longer than what asks.
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    for (let at = 0; at < a.length; at++) if (!alike(a[at], b[at], inOrder)) return false;
    return true;
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  // The one that is expected says how much of the other is worth a look.
  const others = definedKeys(right, Infinity);
  const keys = definedKeys(left, others.length);
  if (keys.length !== others.length) return false;
  return keys.every(
    (key, at) => (inOrder ? others[at] === key : Object.hasOwn(right, key)) && alike(left[key], right[key], inOrder),
  );
}

/** A value nested deeper is refused: whoever walks it later may do so by recursion. */
export const MAX_DEPTH = 200;
/** A value of more fields and items is refused. JSON of 4 MB has 2 million at most. */
const MAX_FIELDS = 10_000_000;

/**
 * What keeps a value that came from outside from being handed on, as the end of a sentence. A field `__proto__` does, at
 * any depth: schemas, agents and their libraries copy objects field by field, and would make its value the copy's
 * prototype. One object in many places counts in each of them: in JSON it would stand there as often.
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
