import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { appFilesIn, linesOf } from "../../setup/samples.mjs";
import { deadLinks, guidesLinkedFrom, GUIDES, isFile, lawRows, missingFiles, PAGES, pageOf, ROOT } from "./pages.js";

const LAWS = Array.from({ length: 20 }, (_, n) => `L${n + 1}`);
const INDEX = "demo/guides/index.md";

test("the README is a door: at most 10,240 bytes", () => {
  expect(Buffer.byteLength(pageOf("README.md").text)).toBeLessThanOrEqual(10_240);
});

describe("a chat with threads, a tool and a second tab has less than 60 lines", () => {
  const readme = appFilesIn(pageOf("README.md").text);
  const guide = appFilesIn(pageOf("demo/guides/front-ends.md").text);
  const shared = ["src/agents.worker.ts", "src/connect.ts"];

  test.each([
    ["React", [...shared, "src/App.tsx"]],
    ["Vue", [...shared, "src/main.ts", "src/App.vue"]],
    ["Svelte", [...shared, "src/App.svelte"]],
  ])("%s", (_, paths) => {
    const files = paths.map((path) => readme.get(path) ?? guide.get(path)!);
    expect(linesOf(files)).toBeLessThan(60);
  });

  test("the guide has the connection of the README", () => {
    expect(guide.get("src/connect.ts")).toBe(readme.get("src/connect.ts"));
  });
});

test.each(PAGES)("the links of %s lead somewhere", (path) => {
  expect(deadLinks(pageOf(path))).toEqual([]);
});

test.each(["README.md", ...GUIDES])("the files that %s names are there", (path) => {
  expect(missingFiles(pageOf(path))).toEqual([]);
});

test("every guide is in the list of guides, once", () => {
  expect(guidesLinkedFrom(pageOf(INDEX)).toSorted()).toEqual(GUIDES.filter((path) => path !== INDEX).toSorted());
});

describe("the table of laws", () => {
  const rows = lawRows(pageOf("demo/guides/guarantees.md"));

  test("has every law once", () => {
    expect(rows.map(({ law }) => law)).toEqual(LAWS);
  });

  test.each(rows)(
    "$law is kept in files and shown by suites that are there and name it",
    ({ law, sources, suites }) => {
      expect(sources).not.toEqual([]);
      expect(suites).not.toEqual([]);
      expect([...sources, ...suites].filter((path) => !isFile(path))).toEqual([]);
      const namesLaw = new RegExp(`\\b${law}\\b`);
      expect(suites.filter((path) => !namesLaw.test(readFileSync(join(ROOT, path), "utf8")))).toEqual([]);
    },
  );
});

describe("the checks", () => {
  const page = { path: "demo/guides/x.md", text: "" };
  const link = (href: string) => ({ ...page, tokens: [{ type: "link", raw: "", href, text: "", tokens: [] }] });

  test.each(["gone.md", "index.md#no-such-heading", "../../src/gone.ts"])("find a dead link: %s", (href) => {
    expect(deadLinks(link(href))).toHaveLength(1);
  });

  test.each(["index.md", "index.md#in-the-page", "../../README.md#a-model", "https://example.com/#any"])(
    "take a link that leads somewhere: %s",
    (href) => {
      expect(deadLinks(link(href))).toEqual([]);
    },
  );

  test("find a file that is not there", () => {
    const code = { ...page, tokens: [{ type: "codespan", raw: "", text: "src/gone.ts" }] };
    expect(missingFiles(code)).toHaveLength(1);
  });
});
