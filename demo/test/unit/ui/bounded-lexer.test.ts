import { Marked } from "marked";
import { describe, expect, test } from "vitest";
import { boundedTables, lex } from "../../../ui/bounded-lexer.js";

const marked = new Marked(boundedTables, { gfm: true });
const html = (text: string): string => marked.parser(lex(text, marked.defaults));

const repeat = (part: string, size = 40_000): string => part.repeat(size / part.length);
const lines = (count: number, line: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => line(n)).join("\n");

/** Each took minutes, overflowed the stack or made megabytes of a few kilobytes, or is a neighbour of one that did. */
const HOSTILE: Readonly<Record<string, string>> = {
  "quotes in quotes": `${repeat("> ", 6_000)}the end`,
  "quotes without blanks": `${repeat(">", 40_000)}the end`,
  "lists in lists": `${repeat("- ")}the end`,
  "numbered lists in lists": `${repeat("1. ")}the end`,
  "lists in quotes": `${repeat("> - ")}the end`,
  "lists by their indentation": `${lines(300, (n) => `${"  ".repeat(n)}- a`)}\nthe end`,
  "words with underscores": `${repeat("_a__b")} the end`,
  "words with underscores, apart": `${repeat("_a__b ")} the end`,
  "emphasis that never ends": `${repeat("**_a")} the end`,
  "emphasis of both kinds": `${repeat("*_")} the end`,
  "stars in words": `${repeat("a**b")} the end`,
  stars: `${repeat("*")} the end`,
  underscores: `${repeat("_")} the end`,
  tildes: `${repeat("~a ")} the end`,
  backticks: `${lines(280, (n) => "`".repeat(n)).replaceAll("\n", " ")} the end`,
  brackets: `${repeat("[")} the end`,
  "links in links": `${repeat("[a](b")} the end`,
  "images in links": `${repeat("[![")} the end`,
  tags: `${repeat("<a ")} the end`,
  comments: `${repeat("<!--")} the end`,
  addresses: `${repeat("a@")} the end`,
  "the start of an address": `${repeat("a.b-")}@ the end`,
  links: `${repeat("http://a.")} the end`,
  backslashes: `${repeat("\\")} the end`,
  fences: `${repeat("```\n")}the end`,
  "a wide table of short rows": `${repeat("|a", 20_000)}|\n${repeat("|-", 20_000)}|\n${lines(2_000, () => "|a|")}\n\nthe end`,
  "definitions and their uses": `${lines(2_000, (n) => `[a${n}]: b`)}\n\n${repeat("[a1]", 8_000)}\n\nthe end`,
  "a text without an end": `${repeat("Some words. ", 2_000_000)}the end`,
};

describe("Markdown that a parser fails at", () => {
  test.each(Object.entries(HOSTILE))("is shown: %s", (_, text) => {
    const shown = html(text);
    expect(shown).toContain("the end");
    expect(shown.length).toBeLessThan(20 * text.length);
  });

  test.each(Object.entries(HOSTILE))("is shown at each stage of its growth: %s", (_, text) => {
    for (const part of [0.1, 0.33, 0.5, 0.9]) expect(html(text.slice(0, part * text.length))).toBeTypeOf("string");
  });
});

describe("Markdown that people write", () => {
  test.each([
    ["> one\n> > two\n> > > three", "<blockquote>"],
    ["- a\n  - b\n    1. c", "<ol>"],
    ["Some *emphasis* and **more**, `code`, [a link](https://a.example)", "<em>emphasis</em>"],
    ["| a | b |\n| - | - |\n| 1 | 2 |", "<td>2</td>"],
    [`${"A sentence with a word or two. ".repeat(300)} And *this*.`, "<em>this</em>"],
    [lines(200, (n) => `Paragraph ${n} has *emphasis*, **weight** and \`code\`.\n`), "<strong>weight</strong>"],
    [`| ${"a | ".repeat(20)}\n| ${"- | ".repeat(20)}\n${lines(400, () => `| ${"1 | ".repeat(20)}`)}`, "<td>1</td>"],
    [`\`\`\`js\n${lines(3_000, () => "const a_b = c[d] * e_f;")}\n\`\`\``, 'class="language-js"'],
  ])("is Markdown: %#", (text, part) => {
    expect(html(text)).toContain(part);
    expect(html(text)).toBe(new Marked({ gfm: true }).parse(text));
  });

  test("stays Markdown beside a paragraph that is too costly, which is shown as it was written", () => {
    const shown = html(`# Title\n\n${repeat("**_<a")}\n\n*after*`);
    expect(shown).toContain("<h1>Title</h1>");
    expect(shown).toContain("<em>after</em>");
    expect(shown).toContain("<p>**_&lt;a**_");
  });
});
