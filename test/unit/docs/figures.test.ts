import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { GROUPS } from "../../bench/groups.js";
import { sectionsIn, withTables } from "../../bench/guide-tables.js";
import { formatted, GUIDE, KEPT, readKept } from "../../bench/keeping.js";

const guide = readFileSync(GUIDE, "utf8");

test("the tables of the guide have the kept figures (npm run bench -- --keep writes both)", async () => {
  expect(guide).toBe(await formatted(GUIDE, withTables(guide, await readKept())));
});

test("the kept figures are written as the bench writes them", async () => {
  expect(readFileSync(KEPT, "utf8")).toBe(await formatted(KEPT, JSON.stringify(await readKept())));
});

test("the marks of the guide name groups of the bench, each once", () => {
  const sections = sectionsIn(guide);
  expect(sections.filter((name) => !(name in GROUPS))).toEqual([]);
  expect(sections).toEqual([...new Set(sections)]);
});
