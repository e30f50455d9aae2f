import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BROKEN } from "../laws/laws.mjs";

const root = new URL("../../", import.meta.url);

test("each law has a change that breaks it, and a suite that is to notice", () => {
  expect(BROKEN.map(({ law }) => law)).toEqual(Array.from({ length: 20 }, (_, n) => `L${n + 1}`));
});

test.each(BROKEN)("what breaks $law stands once in its file, and its suite is there", ({ file, find, suite }) => {
  expect(readFileSync(new URL(file, root), "utf8").split(find)).toHaveLength(2);
  expect(existsSync(new URL(suite, root))).toBe(true);
});

test.each(BROKEN)("$law is named where it is kept, so that one search finds it", ({ law, file, find }) => {
  const before = readFileSync(new URL(file, root), "utf8").split(find)[0]!;
  expect(before.split("\n").slice(-6).join("\n")).toMatch(new RegExp(`\\b${law}\\b`));
});
