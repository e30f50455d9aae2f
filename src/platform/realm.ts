/**
 * What a process (a JavaScript realm) has one of, made at its first use. It is found by its symbol, so it outlives a hot
 * reload, and copies of this library share it; it can neither be deleted nor replaced, so there are never two.
 */
export function realmWide<T>(key: symbol, make: () => T): T {
  const known = Object.getOwnPropertyDescriptor(globalThis, key);
  if (known !== undefined) return known.value as T; // only this module writes it
  const value = make();
  Object.defineProperty(globalThis, key, { value, enumerable: false });
  return value;
}
