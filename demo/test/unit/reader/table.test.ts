import { describe, expect, test } from "vitest";
import { createSlices, finish } from "../../../reader/slices.js";
import type { ColumnState } from "../../../reader/state.js";
import { typeColumns } from "../../../reader/table/columns.js";
import { MAX_COLUMNS, parseTable, type Table, tableOfJson } from "../../../reader/table/parse.js";
import { describeColumn, sortNumbers } from "../../../reader/table/statistics.js";
import { decimalOf, readDate, readNumber } from "../../../reader/table/values.js";

const slices = createSlices(new AbortController().signal);
const parse = (text: string, type = "text/csv"): Promise<Table> => finish(parseTable(text, type, slices));
const cellsOf = (table: Table): string[][] =>
  Array.from({ length: table.rows }, (_, row) => table.columns.map(({ cells }) => cells[row] ?? "?"));

async function describeAll(text: string): Promise<ColumnState[]> {
  const table = await finish(typeColumns(await parse(text), slices));
  const states: ColumnState[] = [];
  for (const column of table.columns) states.push(await finish(describeColumn(table, column, slices)));
  return states;
}

describe("reading", () => {
  test("quotes, delimiters and line breaks inside cells", async () => {
    const table = await parse('a,b\n"1,5","x ""y"""\n2,"two\nlines"\n');
    expect(table.columns.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(cellsOf(table)).toEqual([
      ["1,5", 'x "y"'],
      ["2", "two\nlines"],
    ]);
  });

  test.each([
    [";", "a;b\n1;2\n3;4"],
    ["\t", "a\tb\n1\t2\n3\t4"],
    ["|", "a|b\n1|2\n3|4"],
  ])("the delimiter %j is guessed", async (delimiter, text) => {
    expect(await parse(text)).toMatchObject({ delimiter, rows: 2 });
  });

  test("records across the borders of windows are whole", async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => [String(i), `a "q" ${i}\nb,c`]);
    const text = rows.map(([a = "", b = ""]) => `${a},"${b.replaceAll('"', '""')}"`).join("\n");
    const table = await parse(`n,t\n${text}`);
    expect(table).toMatchObject({ rows: 20_000, ragged: 0 });
    expect(cellsOf(table)).toEqual(rows);
  });

  test("a quote that is never closed costs its own line only", async () => {
    const filler = "x,y\n".repeat(200_000);
    const table = await parse(`a,b\n1,2\n"open,3\n${filler}`);
    expect(table.rows).toBe(200_002);
    expect(cellsOf(table).slice(0, 3)).toEqual([
      ["1", "2"],
      ['"open', "3"],
      ["x", "y"],
    ]);
  });

  test("short and long rows are counted and kept", async () => {
    const table = await parse("a,b\n1\n1,2,3\n4,5\n");
    expect(table).toMatchObject({ rows: 3, ragged: 2 });
    expect(cellsOf(table)[0]).toEqual(["1", ""]);
  });

  test("without a header the columns are numbered and the first row is data", async () => {
    const table = await parse("1,x\n2,y\n");
    expect(table).toMatchObject({ header: false, rows: 2 });
    expect(table.columns.map(({ name }) => name)).toEqual(["Column 1", "Column 2"]);
  });

  test("names that are empty or stand twice are told apart", async () => {
    expect((await parse("a,,a\n1,2,3\n")).columns.map(({ name }) => name)).toEqual(["a", "Column 2", "a (2)"]);
  });

  test("names of prototypes are names like others", async () => {
    const table = tableOfJson('[{"__proto__": 1, "constructor": 2}, {"toString": 3}]');
    expect(table?.columns.map(({ name }) => name)).toEqual(["__proto__", "constructor", "toString"]);
    expect(table && cellsOf(table)).toEqual([
      ["1", "2", ""],
      ["", "", "3"],
    ]);
  });

  test("columns beyond the limit are left out and counted", async () => {
    const names = Array.from({ length: MAX_COLUMNS + 7 }, (_, i) => `c${i}`).join(",");
    const table = await parse(`${names}\n${names}\n`);
    expect(table.columns).toHaveLength(MAX_COLUMNS);
    expect(table).toMatchObject({ omitted: 7, ragged: 0 });
  });
});

describe("values", () => {
  test.each([
    ["1,234.5", ".", 1234.5],
    ["1.234,5", ",", 1234.5],
    ["-€3", ".", -3],
    ["€ 12.50", ".", 12.5],
    ["12,5 %", ",", 12.5],
    ["1e3", ".", 1000],
    [".5", ".", 0.5],
    ["1,23", ".", undefined],
    ["1.2.3", ".", undefined],
    ["12 apples", ".", undefined],
    ["", ".", undefined],
    ["€", ".", undefined],
  ] as const)("%j with %j is %s", (cell, decimal, value) => {
    expect(readNumber(cell, decimal)?.value).toBe(value);
  });

  test("a column says how its numbers are written", () => {
    expect(decimalOf(["1", "2,5", "1.200"])).toBe(",");
    expect(decimalOf(["1,200", "2.5"])).toBe(".");
  });

  test.each([
    ["2024-02-29", "ymd", "2024-02-29T00:00:00.000Z"],
    ["2024-02-30", "ymd", undefined],
    ["29.02.2024", "dmy", "2024-02-29T00:00:00.000Z"],
    ["02/29/2024", "mdy", "2024-02-29T00:00:00.000Z"],
    ["2024-01-02T03:04:05Z", "ymd", "2024-01-02T03:04:05.000Z"],
    ["hello wor", "ymd", undefined],
  ] as const)("the date %j, %s", (cell, order, iso) => {
    const value = readDate(cell, order);
    expect(value === undefined ? undefined : new Date(value).toISOString()).toBe(iso);
  });
});

describe("statistics", () => {
  test("of numbers, against values worked out by hand", async () => {
    const [column] = await describeAll("n\n2\n4\n4\nNA\n4\n5\n5\n7\n9\n");
    expect(column).toMatchObject({ name: "n", type: "number", count: 8, missing: 1, odd: 0, unique: 5 });
    expect(column?.numbers).toMatchObject({ min: 2, max: 9, sum: 40, mean: 5, median: 4.5, unit: "" });
    // The squares of the distances to 5 add up to 32.
    expect(column?.numbers?.stddev).toBeCloseTo(Math.sqrt(32 / 7), 12);
  });

  test("bins hold every value once, the greatest in the last", async () => {
    const [column] = await describeAll("n\n0\n1\n2\n3\n4\n5\n6\n7\n8\n10\n");
    const bins = column?.numbers?.bins ?? [];
    expect(bins.map(({ count }) => count)).toEqual([2, 2, 2, 2, 2]);
    expect(bins.at(0)?.from).toBe(0);
    expect(bins.at(-1)?.to).toBe(10);
  });

  test("one value, many times", async () => {
    const [column] = await describeAll("n\n3\n3\n3\n");
    expect(column?.numbers).toMatchObject({ mean: 3, stddev: 0, bins: [{ from: 3, to: 3, count: 3 }] });
  });

  test("rounding does not add up", async () => {
    const [column] = await describeAll(`n\n${"0.1\n".repeat(10)}`);
    expect(column?.numbers?.sum).toBe(1);
  });

  test("types: text, codes, dates, money, empty, and a few odd cells", async () => {
    const rows = Array.from(
      { length: 20 },
      (_, i) => `${i % 3 ? "Rome" : "Bari"},0${i + 1000},${i + 1}.03.2024,"€${i},00",,${i === 7 ? "?" : i}`,
    );
    const [city, code, day, money, none, odd] = await describeAll(`city,code,day,money,none,odd\n${rows.join("\n")}\n`);
    expect(city).toMatchObject({
      type: "text",
      unique: 2,
      top: [
        { value: "Rome", count: 13 },
        { value: "Bari", count: 7 },
      ],
    });
    expect(code).toMatchObject({ type: "text" });
    expect(day).toMatchObject({ type: "date", dates: { from: "2024-03-01", to: "2024-03-20" } });
    expect(money).toMatchObject({ type: "number", numbers: { unit: "€", max: 19 } });
    expect(none).toMatchObject({ type: "empty", missing: 20, numbers: null });
    expect(odd).toMatchObject({ type: "number", odd: 1, count: 20, numbers: { sum: 183 } });
  });

  test("sorting in steps sorts", async () => {
    const values = Float64Array.from({ length: 100_001 }, (_, i) => (i * 7919) % 100_003);
    expect(await finish(sortNumbers(values.slice(), slices))).toEqual(values.toSorted());
  });
});
