import { expect, test } from "vitest";
import { sameValue } from "../../../src/run/same-value.js";

const cyclic = (text: string): unknown => {
  const value: Record<string, unknown> = { text };
  value["self"] = [value];
  return value;
};

/** Different values of each kind, each made anew. */
const KINDS: readonly (() => readonly unknown[])[] = [
  () => [1, -1, NaN, 0, -0, "1", 1n, true, null, undefined],
  () => [{}, { a: 1 }, { b: 1 }, { a: { b: 1 } }, Object.create(null, { c: { value: 1, enumerable: true } })],
  () => [[], [1], [1, 2], [undefined]],
  () => [new Map(), new Map([["a", 1]]), new Map([["a", 2]])],
  () => [new Set(), new Set([1]), new Set([{ a: 1 }])],
  () => [new Date(1), new Date(2)],
  () => [/a/, /a/g, /b/],
  () => [new Error("a"), new Error("b"), new TypeError("a")].map((error) => Object.assign(error, { stack: "" })),
  () => [
    new Uint8Array([1]),
    new Uint8Array([2]),
    new Uint8Array(2),
    new Int8Array([1]),
    new DataView(new ArrayBuffer(1)),
  ],
  () => [new ArrayBuffer(1), new Uint8Array([1]).buffer],
  () => [cyclic("a"), cyclic("b")],
];

test("equal values are the same, of whatever kind, and others are not", () => {
  const [values, again] = [KINDS, KINDS].map((kinds) => kinds.flatMap((kind) => kind()));
  for (const [at, one] of values!.entries()) {
    expect(again!.filter((other) => sameValue(one, other))).toEqual([again![at]]);
    expect(sameValue({ in: [one] }, { in: [again![at]] })).toBe(true);
  }
});

test("a field that is undefined counts as absent", () => {
  expect(sameValue({ a: undefined }, {})).toBe(true);
  expect(sameValue({ a: undefined }, { b: undefined, c: 1 })).toBe(false);
});
