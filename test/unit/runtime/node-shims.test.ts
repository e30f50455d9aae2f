import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as shim from "../../../demo/shims/node.js";
import { times } from "../property.js";

test("the shim's MD5 is Node's", () => {
  const inNode = (parts: readonly string[]): string => {
    const hash = createHash("md5");
    for (const part of parts) hash.update(part);
    return hash.digest("hex");
  };
  const here = (parts: readonly string[]): string => {
    const hash = shim.createHash("md5");
    for (const part of parts) hash.update(part);
    return hash.digest("hex");
  };
  // Around the lengths at which another block is needed.
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.integer({ min: 50, max: 130 }).map((length) => "x".repeat(length)),
  );
  fc.assert(
    fc.property(fc.array(text, { maxLength: 3 }), (parts) => {
      expect(here(parts)).toBe(inNode(parts));
    }),
    times(200),
  );
});

test("it is no other hash, and refuses to be one", () => {
  expect(() => shim.createHash("sha256")).toThrow("There is no sha256 here");
});
