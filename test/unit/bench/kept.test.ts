import { expect, test } from "vitest";
import { figure, type Figure } from "../../bench/figures.js";
import { comparison, merge, readable, type KeptTable } from "../../bench/kept.js";

const SECTIONS = ["stream", "attach"];
const MONDAY = { date: "2026-11-23", machine: "2 cores" };
const TUESDAY = { date: "2026-11-24", machine: "2 cores" };

const ms = (group: string, name: string, ...values: number[]): Figure => figure(group, name, "ms", values);
const groupsOf = (kept: readonly KeptTable[]): string[] => kept.map(({ group }) => group);

test("figures are kept to three digits, with when and on what they were measured", () => {
  const times = Array.from({ length: 30 }, () => 12.3456);
  expect(merge([], [figure("stream: a", "one", "ms", times, "half of two")], MONDAY, SECTIONS)).toEqual([
    {
      group: "stream: a",
      ...MONDAY,
      figures: [{ name: "one", unit: "ms", median: 12.3, p99: 12.3, beside: "half of two" }],
    },
  ]);
});

test("a figure that was not measured is kept without a number", () => {
  const [table] = merge([], [figure("stream: a", "one", "ms", [], "skipped")], MONDAY, SECTIONS);
  expect(JSON.parse(JSON.stringify(table!.figures))).toEqual([{ name: "one", unit: "ms", beside: "skipped" }]);
});

test("the value before the newest is kept, and none before that", () => {
  let kept: KeptTable[] = [];
  for (const value of [1, 2, 3]) kept = merge(kept, [ms("stream: a", "one", value)], TUESDAY, SECTIONS);
  expect(kept[0]!.figures).toEqual([{ name: "one", unit: "ms", median: 3, before: 2 }]);
});

test("the value before is that of the same group", () => {
  const kept = merge([], [ms("stream: a", "one", 1), ms("stream: b", "one", 2)], MONDAY, SECTIONS);
  const again = merge(kept, [ms("stream: b", "one", 3)], TUESDAY, SECTIONS);
  expect(again[0]!.figures[0]!.before).toBe(2);
});

test("other groups of the bench stay as they are", () => {
  const kept = merge([], [ms("attach: a", "one", 1)], MONDAY, SECTIONS);
  const both = merge(kept, [ms("stream: a", "one", 2)], TUESDAY, SECTIONS);
  expect(both).toContainEqual(kept[0]);
  expect(both).toHaveLength(2);
});

test("rows and tables that are not measured any more go", () => {
  const kept = merge([], [ms("stream: a", "one", 1), ms("stream: a", "two", 1), ms("stream: b", "one", 1)], MONDAY, []);
  const again = merge(kept, [ms("stream: a", "one", 2)], TUESDAY, SECTIONS);
  expect(again).toEqual([
    { group: "stream: a", ...TUESDAY, figures: [{ name: "one", unit: "ms", median: 2, before: 1 }] },
  ]);
});

test("the order is that of the bench, whichever group was measured first", () => {
  const stream = [ms("stream: z", "one", 1), ms("stream: a", "one", 1)];
  const attach = [ms("attach: a", "one", 1)];
  const order = ["stream: z", "stream: a", "attach: a"];
  expect(groupsOf(merge(merge([], attach, MONDAY, SECTIONS), stream, MONDAY, SECTIONS))).toEqual(order);
  expect(groupsOf(merge(merge([], stream, MONDAY, SECTIONS), attach, MONDAY, SECTIONS))).toEqual(order);
});

const kept = merge([], [ms("stream: a", "one", 3.2), ms("stream: a", "none", 0)], MONDAY, SECTIONS);

test.each([
  [2.8, "kept 3.2, −13 %"],
  [3.201, "kept 3.2, ±0 %"],
  [6.4, "kept 3.2, +100 %"],
])("%d ms is compared with what is kept: %s", (value, said) => {
  expect(comparison(kept)(ms("stream: a", "one", value))).toBe(said);
});

test("a kept zero is told without a ratio", () => {
  expect(comparison(kept)(ms("stream: a", "none", 1))).toBe("kept 0");
});

test.each([
  ["that is kept in another group", ms("stream: b", "one", 1)],
  ["that was not measured", ms("stream: a", "one")],
])("nothing is said of a figure %s", (_, it) => {
  expect(comparison(kept)(it)).toBeUndefined();
});

test("numbers are read with three digits", () => {
  expect([334_000, 14, 3.2, 0.0123].map(readable)).toEqual(["334,000", "14", "3.2", "0.0123"]);
});
