import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonPieces, PIECE_LENGTH } from "../../../../src/runtime/http/json-pieces.js";
import { times } from "../../property.js";

/** Values whose parts are large now and then, so that they are taken apart. */
const long = fc.constantFrom(
  "x".repeat(PIECE_LENGTH),
  'é😀\n"'.repeat(PIECE_LENGTH),
  "\ud83d".repeat(PIECE_LENGTH + 1),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(null, undefined, 0, -0, NaN, 1e300, true, "", "text", new Date(0), () => 1, Symbol("s")),
    fc.string({ unit: "binary" }),
    long,
    fc.array(tie("any"), { maxLength: 4 }),
    fc.dictionary(fc.string(), tie("any"), { maxKeys: 4 }),
    fc.record({ toJSON: fc.constant(() => "itself"), big: long }),
  ),
})).any;

test("the pieces are what JSON.stringify gives, and parse to the same", () => {
  fc.assert(
    fc.property(value, (given) => {
      const whole = JSON.stringify({ given, of: [given] });
      const pieces = [...jsonPieces({ given, of: [given] })].join("");
      // Halves of a pair that a cut has parted are written as escapes.
      expect(JSON.parse(pieces)).toEqual(JSON.parse(whole));
      if (!whole.includes("😀")) expect(pieces).toBe(whole);
    }),
    times(200),
  );
});

test("no piece is much longer than it may be, whatever is large", () => {
  const large = {
    list: Array.from({ length: 1_000 }, (_, n) => ({ n, text: "x".repeat(1_000) })),
    text: "y".repeat(1e6),
  };
  for (const piece of jsonPieces(large)) expect(piece.length).toBeLessThanOrEqual(PIECE_LENGTH);
});

test("a BigInt that an older build recorded is text, in small values and in pieces of large ones", () => {
  const text = "x".repeat(2 * PIECE_LENGTH);
  expect(JSON.parse([...jsonPieces({ n: 7n })].join(""))).toEqual({ n: "7" });
  expect(JSON.parse([...jsonPieces({ text, list: [7n] })].join(""))).toEqual({ text, list: ["7"] });
});
