import { expect, test } from "vitest";
import { sizeOf } from "../../../src/run/size.js";

test("a value weighs its text and a little for each field", () => {
  expect(sizeOf("x".repeat(1_000))).toBe(1_008);
  expect(sizeOf({ delta: "abc" })).toBe(8 + 5 + 8 + 3);
  expect(sizeOf([1, null, true, undefined])).toBe(5 * 8);
});

test("a copy weighs the same as what it was made of", () => {
  const value = { type: "X", list: [{ a: 1 }, "two", [3]], none: undefined };
  expect(sizeOf(structuredClone(value))).toBe(sizeOf(value));
});

test("no more is weighed than was asked for, not even of what holds itself", () => {
  const loop: { self?: unknown } = {};
  loop.self = loop;
  expect(sizeOf(loop, 1_000)).toBeLessThan(1_100);
  let deep: unknown = 0;
  for (let n = 0; n < 200_000; n++) deep = [deep];
  expect(sizeOf(deep)).toBe(200_001 * 8);
});

test("what holds itself, or one value in many places, is weighed once; bytes by their number", () => {
  const loop: { self?: unknown } = {};
  loop.self = loop;
  // With a bound, so that it fails where it would not end.
  expect(sizeOf(loop, 1_000)).toBe(8 + 4 + 8);
  let twice: unknown = "x";
  for (let n = 0; n < 40; n++) twice = [twice, twice];
  expect(sizeOf(twice, 100_000)).toBeLessThan(2_000);
  expect(sizeOf(new Uint8Array(1_000), 100_000)).toBe(1_008);
  expect(sizeOf({ file: new ArrayBuffer(1_000) }, 100_000)).toBe(1_020);
});

test("a list without items is not looked through, however long it says it is (L19)", () => {
  expect(sizeOf(Object.assign([], { length: 4_000_000_000 }))).toBeGreaterThan(2 ** 30);
});
