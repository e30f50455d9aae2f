import { expect, test } from "vitest";
import { guidePage, readmeAsGuide } from "../../guide-pages/page.js";

const INDEX = "# Guides\n\n## First\n\n- [One & two](one.md): says so\n- [Three](three.md)\n";

const bodyOf = (markdown: string): string => {
  const html = guidePage("one", `# One\n\n${markdown}`, INDEX);
  return html.slice(html.indexOf("</h1>"), html.indexOf("</main>"));
};

test("links lead to pages and headings; files of the repository are told, not linked", () => {
  const body = bodyOf("[a](three.md#part) [b](#here) [c](../../src/index.ts) [d](https://example.com/)");
  expect(body).toContain(
    '<a href="three.html#part">a</a> <a href="#here">b</a> c <a href="https://example.com/">d</a>',
  );
});

test("headings have the ids that links to them name", () => {
  expect(bodyOf("## What `it` does, twice\n\n## What it does, twice")).toMatch(
    /id="what-it-does-twice"[^]*id="what-it-does-twice-1"/,
  );
});

test("markup in a guide is shown as text, comments are left out, no link runs code", () => {
  const body = bodyOf('<!-- for editors -->\n\n<img src=x onerror="a()">\n\n[x](javascript:a%28%29)\n\n`<b>`');
  expect(body).not.toMatch(/for editors|<img|<b>|javascript:/);
  expect(body).toContain("&#60;img");
});

test("a table between marks is shown as one, the marks are not", () => {
  const body = bodyOf("<!-- figures: stream -->\n\n`stream`: x:\n\n| a |\n| - |\n| b |\n\n<!-- /figures -->\n\nAfter.");
  expect(body).toMatch(/<p><code>stream<\/code>: x:<\/p>\s*<div [^>]*><table>[^]*<\/table><\/div>\s*<p>After\.<\/p>/);
  expect(body).not.toMatch(/figures|--/);
});

test("the navigation has the groups and links of the list of guides, and says which is shown", () => {
  const html = guidePage("one", "# One", INDEX);
  expect(html).toMatch(/<h2>First<\/h2>\s*<ul><li><a href="one.html" aria-current="page">One &#38; two<\/a>/);
  expect(html).toContain('<a href="three.html">Three</a>');
});

test("the API reference is led to where it was made, and its pages lead to one another and back", () => {
  const folders = ["guides", "reference"] as const;
  expect(guidePage("one", "# One", INDEX)).not.toContain("/reference/");
  expect(guidePage("one", "# One", INDEX, { folder: "guides", folders })).toContain(
    '<a href="/reference/index.html">API reference</a>',
  );
  const index = "# API reference\n\n## Modules\n\n- [package/node](package.node.md)\n";
  const html = guidePage("index", index, index, { folder: "reference", folders });
  expect(html).toContain('<a href="/reference/index.html" aria-current="page">API reference</a>');
  expect(html).toContain('<a href="/guides/index.html">All guides</a>');
  expect(html).toContain('<a href="package.node.html">package/node</a>');
});

test("the README is one of the guides, and leads to the others", () => {
  const readme = readmeAsGuide(
    "# A\n\n[one](demo/guides/one.md#x) [b](LICENSE) [c](CHANGELOG.md) [d](#e) [f](https://g.h)",
  );
  expect(guidePage("readme", readme, INDEX)).toContain(
    '<a href="one.html#x">one</a> b c <a href="#e">d</a> <a href="https://g.h">f</a>',
  );
  expect(bodyOf("[README](../../README.md)")).toContain('<a href="readme.html">README</a>');
});

test("a guide without a title is told", () => {
  expect(() => guidePage("one", "Text", INDEX)).toThrow(/# Title/);
});
