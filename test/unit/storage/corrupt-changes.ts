import fc from "fast-check";
import type { Stored } from "./raw.js";

/** A place in a record, by which of its keys is taken at each step down. */
const path = fc.array(fc.nat(50), { maxLength: 4 });

const odd = fc.constantFrom<unknown>(
  undefined,
  null,
  true,
  "",
  "odd",
  -1,
  0,
  1,
  3,
  1.5,
  NaN,
  Infinity,
  -Infinity,
  2 ** 31,
  2 ** 53,
  1e300,
  [],
  [1],
  [null],
  {},
  { length: 1e9 },
  new Date(0),
  new Map([[1, 2]]),
  new Uint8Array(3),
  "__proto__",
  JSON.parse('{ "__proto__": { "deleted": true } }'),
);

/** What is done to a record. */
export type Change =
  | { readonly to: "value"; readonly path: readonly number[]; readonly value: unknown }
  | { readonly to: "nothing"; readonly path: readonly number[] }
  | { readonly to: "more"; readonly key: string; readonly value: unknown }
  | { readonly to: "gone" }
  | { readonly to: "elsewhere"; readonly n: number };

export const change: fc.Arbitrary<Change> = fc.oneof<fc.Arbitrary<Change>[]>(
  fc.record({ to: fc.constant("value" as const), path, value: odd }),
  fc.record({ to: fc.constant("nothing" as const), path }),
  fc.record({
    to: fc.constant("more" as const),
    key: fc.constantFrom(
      "__proto__",
      "constructor",
      "live",
      "stop",
      "deleted",
      "first",
      "cut",
      "underived",
      "resets",
      "holder",
    ),
    value: odd,
  }),
  fc.record({ to: fc.constant("gone" as const) }),
  fc.record({ to: fc.constant("elsewhere" as const), n: fc.constantFrom<number>(0, 1, 2, 3, 7, 1.5, 1e300, Infinity) }),
);

const define = (target: object, key: string, value: unknown): unknown =>
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });

/** The record after the change. What cannot be stored is refused by the database. */
export function changed(record: Stored, how: Exclude<Change, { to: "gone" }>): Stored {
  const value = structuredClone(record.value);
  if (typeof value !== "object" || value === null) return { ...record, value: how.to === "value" ? how.value : "odd" };
  if (how.to === "more") return { ...record, value: define(value, how.key, how.value) };
  if (how.to === "elsewhere") {
    const last = ["firstSeq", "n", "runIndex"].find((key) => Object.hasOwn(value, key));
    return { ...record, value: last === undefined ? value : define(value, last, how.n) };
  }
  let at: object = value;
  for (const [depth, step] of how.path.entries()) {
    const keys = Object.keys(at);
    const key = keys[step % Math.max(1, keys.length)];
    if (key === undefined) break;
    const inner: unknown = Reflect.get(at, key);
    if (depth < how.path.length - 1 && typeof inner === "object" && inner !== null) {
      at = inner;
      continue;
    }
    if (how.to === "nothing") Reflect.deleteProperty(at, key);
    else define(at, key, how.value);
    break;
  }
  return { ...record, value };
}
