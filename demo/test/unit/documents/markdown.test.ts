import fc from "fast-check";
import { marked, type Token, type Tokens } from "marked";
import { expect, test } from "vitest";
import { times } from "../../../../test/unit/property.js";
import { blockquote, clip, escapeInline, figure, table } from "../../../documents/markdown.js";

/** What stands in inline tokens as text; fails for anything but text. */
function textOnly(tokens: readonly Token[] | undefined): string {
  return (tokens ?? [])
    .map((token) => {
      if (token.type !== "text" && token.type !== "escape") throw new Error(`A ${token.type}: ${token.raw}`);
      return "tokens" in token && token.tokens ? textOnly(token.tokens) : (token as Tokens.Text).text;
    })
    .join("");
}

const nasty = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(
      fc.constantFrom(
        ..."# > - * _ ` ~~ ~~~ ``` [x](y) ![x](y) <b> </b> &amp; | \\ 1. 1) + = === --- www.a.de http://a.de a@b.de : ! \n \n\n \t x ( ) ] [".split(
          " ",
        ),
        " ",
      ),
    )
    .map((parts) => parts.join("")),
);

test("text of a document stays one paragraph of plain text", () => {
  fc.assert(
    fc.property(nasty, (text) => {
      const escaped = escapeInline(text);
      if (escaped === "") return;
      const tokens = marked.lexer(`x ${escaped}\n`);
      expect(tokens).toHaveLength(1);
      expect(tokens[0]?.type).toBe("paragraph");
      textOnly((tokens[0] as Tokens.Paragraph).tokens);
    }),
    times(2_000),
  );
});

test("a quote stays one quote, whatever is quoted", () => {
  fc.assert(
    fc.property(nasty, nasty, (text, place) => {
      const tokens = marked
        .lexer(`${blockquote(`${text}x`, `${place}x`)}After\n`)
        .filter(({ type }) => type !== "space");
      expect(tokens.map(({ type }) => type)).toEqual(["blockquote", "paragraph"]);
      const inner = (tokens[0] as Tokens.Blockquote).tokens.filter(({ type }) => type !== "space");
      expect(inner.map(({ type }) => type)).toEqual(["paragraph", "paragraph"]);
      textOnly((inner[0] as Tokens.Paragraph).tokens);
    }),
    times(2_000),
  );
});

test("a table keeps its cells, whatever is in them", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(nasty, nasty), { minLength: 1, maxLength: 4 }), (rows) => {
      const tokens = marked.lexer(table(["A", "B"], rows)).filter(({ type }) => type !== "space");
      expect(tokens.map(({ type }) => type)).toEqual(["table"]);
      const found = tokens[0] as Tokens.Table;
      expect(found.rows).toHaveLength(rows.length);
      for (const cell of found.rows.flat()) textOnly(cell.tokens);
    }),
    times(1_000),
  );
});

test("what is escaped reads as it was", () => {
  const text = "5 * 3 < 20 & a_b_c [see] `code` | https://example.org #1";
  expect(textOnly((marked.lexer(escapeInline(text))[0] as Tokens.Paragraph).tokens)).toBe(text);
});

test("clipping leaves no half of a surrogate pair", () => {
  expect(clip("a😀😀😀", 3).isWellFormed()).toBe(true);
  expect(clip("one two three", 9)).toBe("one two…");
});

test.each([
  [1234567, "1,234,567"],
  [0.000123456, "0.0001235"],
  [1234.567, "1,234.57"],
  [Number.NaN, "–"],
])("the figure of %d", (value, text) => {
  expect(figure(value)).toBe(text);
});
