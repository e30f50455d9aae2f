import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { STREAMS } from "./streams.js";

const TESTS = new URL("../../", import.meta.url);
const names = Object.values(STREAMS).flatMap((streams) => streams.map(({ name }) => name));

/** The last cell of each row, split. */
const shown = readFileSync(new URL("MUSTS.md", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("|") && !/^\| (who|---)/.test(line))
  .flatMap((line) => line.split("|").at(-2)!.trim().split(" · "))
  .filter((said) => said !== "");

test("every test that the table names is there", () => {
  const missing = shown.filter((said) => {
    const [, file, title] = /^(\S+?): ?(.*)$/.exec(said) ?? [];
    if (file === "stream") return !names.includes(title!);
    const path = new URL(file ?? "none", TESTS);
    return file === undefined || !existsSync(path) || !readFileSync(path, "utf8").includes(title!);
  });
  expect(missing).toEqual([]);
});

test("every stream is named by the table", () => {
  expect(names.filter((name) => !shown.includes(`stream: ${name}`))).toEqual([]);
});

test("no two streams have one name", () => {
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});
