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

function alike(a: unknown, b: unknown, inOrder: boolean): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left).filter((key) => left[key] !== undefined);
  const others = Object.keys(right).filter((key) => right[key] !== undefined);
  if (keys.length !== others.length) return false;
  return keys.every(
    (key, at) => (inOrder ? others[at] === key : Object.hasOwn(right, key)) && alike(left[key], right[key], inOrder),
  );
}
