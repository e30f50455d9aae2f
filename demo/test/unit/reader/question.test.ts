import { describe, expect, test } from "vitest";
import { createSlices, finish } from "../../../reader/slices.js";
import { aggregate } from "../../../reader/table/aggregate.js";
import { type TypedTable, typeColumns } from "../../../reader/table/columns.js";
import { parseTable } from "../../../reader/table/parse.js";
import { understand } from "../../../reader/table/question.js";

const slices = createSlices(new AbortController().signal);

const CSV = `City,Price,unit price,Sold on,Note
Berlin,10,1.5,2024-01-05,red
Paris,20,2.5,2024-02-01,blue and red
Berlin,30,3.5,2024-03-10,
Rome,,4.5,2024-04-01,green
Paris,40,5.5,2023-12-31,red
`;

async function table(): Promise<TypedTable> {
  return finish(typeColumns(await finish(parseTable(CSV, "text/csv", slices)), slices));
}

/** The groups as [key, value], or why there are none. */
async function ask(question: string): Promise<[string, number][] | string> {
  const own = await table();
  const understood = understand(own, question);
  if (understood.is !== "computable") return understood.is === "unclear" ? understood.why : "other";
  const { groups } = await aggregate(own, understood.question, slices);
  return groups.map(({ key, value }) => [key, value]);
}

describe("what is calculated", () => {
  test.each<[string, [string, number][]]>([
    ["average of price", [["", 25]]],
    ["What is the mean price?", [["", 25]]],
    [
      "Durchschnitt von Price nach City",
      [
        ["Paris", 30],
        ["Berlin", 20],
        ["Rome", NaN],
      ],
    ],
    [
      "average of price by city",
      [
        ["Paris", 30],
        ["Berlin", 20],
        ["Rome", NaN],
      ],
    ],
    [
      "sum of prices per city?",
      [
        ["Paris", 60],
        ["Berlin", 40],
        ["Rome", NaN],
      ],
    ],
    ["median of unit price", [["", 3.5]]],
    ["max of price", [["", 40]]],
    [
      "lowest unit price by city",
      [
        ["Rome", 4.5],
        ["Paris", 2.5],
        ["Berlin", 1.5],
      ],
    ],
    ["how many rows", [["", 5]]],
    [
      "count by city",
      [
        ["Berlin", 2],
        ["Paris", 2],
        ["Rome", 1],
      ],
    ],
    ["how many different cities", [["", 3]]],
    ["how many rows where city is Berlin", [["", 2]]],
    ["how many rows where city is berlin", [["", 2]]],
    ["count rows where price > 15", [["", 3]]],
    ["count rows where price is at least 20 and city is not Paris", [["", 1]]],
    ["how many rows where price is between 10 and 30", [["", 3]]],
    ["how many rows where price between 10 and 30 and city is Berlin", [["", 2]]],
    ['how many rows where note is "blue and red"', [["", 1]]],
    ["how many rows where note contains red", [["", 3]]],
    ["sum of price where sold on after 2024-01-31", [["", 50]]],
    ["latest sold on", [["", Date.UTC(2024, 3, 1)]]],
    [
      "average price where unit price < 5 by city",
      [
        ["Berlin", 20],
        ["Paris", 20],
        ["Rome", NaN],
      ],
    ],
    [
      "which city has the highest total price?",
      [
        ["Paris", 60],
        ["Berlin", 40],
        ["Rome", NaN],
      ],
    ],
    [
      "which city has the lowest unit price",
      [
        ["Berlin", 1.5],
        ["Paris", 2.5],
        ["Rome", 4.5],
      ],
    ],
    [
      "which city has the most rows",
      [
        ["Berlin", 2],
        ["Paris", 2],
        ["Rome", 1],
      ],
    ],
  ])("%s", async (question, groups) => {
    expect(await ask(question)).toEqual(groups);
  });
});

test("part of a column's name will do where only one column has it", async () => {
  expect(await ask("average of unit")).toEqual([["", 3.5]]);
  expect(await ask("how many rows where sold after 2024-01-31")).toEqual([["", 3]]);
});

describe("what is not calculated", () => {
  test.each([
    ["average of weight", "I see no column to take the average of"],
    ["average of city", "the column “City” holds text, which has no average"],
    ["average of price by country", "I know no column “country”"],
    ["count rows where weight > 3", "I know no column in “weight > 3”"],
    ["count rows where price > many", "“many” cannot be compared with the values of “Price”"],
    ["tell me about Rome", "other"],
  ])("%s: %s", async (question, why) => {
    expect(await ask(question)).toBe(why);
  });
});
