import { expect, test } from "vitest";
import { sectionsIn, withTables } from "../../bench/guide-tables.js";
import type { KeptTable } from "../../bench/kept.js";

const table = (group: string, figures: KeptTable["figures"] = []): KeptTable => ({
  group,
  date: "2026-11-23",
  machine: "2 cores",
  figures,
});

const guide = (names: string): string =>
  `Before.\n\n<!-- figures: ${names} -->\n\nby hand\n\n<!-- /figures -->\n\nAfter.\n`;

test("the tables of a group stand between its marks, with the columns that they have", () => {
  const rows = [
    { name: "a | b", unit: "ms", median: 3.2, p99: 12, before: 3 },
    { name: "skipped", unit: "times" },
  ] as const;
  expect(withTables(guide("stream"), [table("stream: deltas", rows)])).toBe(`Before.

<!-- figures: stream -->

\`stream\`: deltas (2026-11-23; 2 cores):

| what | median | p99 |
| --- | --- | --- |
| a \\| b | 3.2 ms | 12 ms |
| skipped | - |  |

<!-- /figures -->

After.
`);
});

test("units are written as one reads them", () => {
  const rows = (["events/s", "ms", "times", "count"] as const).map((unit) => ({ name: "x", unit, median: 14_000 }));
  const text = withTables(guide("stream"), [table("stream: deltas", rows)]);
  expect(text.match(/14,000[^|]*/g)).toEqual(["14,000 per s ", "14,000 ms ", "14,000 × ", "14,000 "]);
});

test("tables stand in the order of the mark", () => {
  const text = withTables(guide("stream, attach"), [table("attach: a"), table("stream: a"), table("stream: b")]);
  expect(text.match(/`\w+`: \w/g)).toEqual(["`stream`: a", "`stream`: b", "`attach`: a"]);
});

test("what was written by hand stays until each group of the mark is kept", () => {
  const text = guide("stream, attach");
  expect(withTables(text, [])).toBe(text);
  expect(withTables(text, [table("stream: a")])).toBe(text);
  expect(withTables(text, [table("stream: a"), table("attach: a")])).not.toContain("by hand");
});

test("one block changes nothing of the next", () => {
  const text = withTables(`${guide("attach")}${guide("stream")}`, [table("stream: a")]);
  expect(text.match(/by hand/g)).toHaveLength(1);
  expect(text.indexOf("by hand")).toBeLessThan(text.indexOf("`stream`"));
});

test("written twice, it is the same", () => {
  const kept = [table("stream: a", [{ name: "x", unit: "ms", median: 1 }])];
  const once = withTables(guide("stream"), kept);
  expect(withTables(once, kept)).toBe(once);
});

test("the marks say which groups they have", () => {
  expect(sectionsIn(guide("run-start") + guide("stream, attach"))).toEqual(["run-start", "stream", "attach"]);
});
