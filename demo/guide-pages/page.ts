import { lexer, Marked, walkTokens, type Token, type Tokens } from "marked";
import { headingIds } from "./headings.js";

/** The list of guides: its headings and links are the navigation of every page. */
export const INDEX = "index";

/** The page of the repository's README, beside the guides. */
export const README = "readme";

/** The README with its links as a guide has them: relative to the folder of the guides. */
export const readmeAsGuide = (text: string): string =>
  text.replace(/\]\((?!https?:|#)([^)]*)\)/g, (_, href: string) =>
    href.startsWith("demo/guides/") ? `](${href.slice("demo/guides/".length)})` : `](../../${href})`,
  );

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Where a link of a guide leads in the demo; undefined for files of the repository, which the demo does not have. */
function addressOf(href: string): string | undefined {
  if (/^https?:/.test(href)) return href;
  if (href === "../../README.md") return `${README}.html`;
  const [, name, id = ""] = /^([\w.-]+)\.md(#.*)?$/.exec(href) ?? [];
  if (name !== undefined) return `${name}.html${id}`;
  return href.startsWith("#") ? href : undefined;
}

/** What is wider than the page scrolls by itself, also by keyboard. */
const scrolls = (label: string): string => `<div class="scroll-x" tabindex="0" role="group" aria-label="${label}">`;

function bodyOf(tokens: Token[]): string {
  const ids = headingIds(tokens);
  const marked = new Marked({
    renderer: {
      heading({ tokens: inner, depth }) {
        return `<h${depth} id="${escapeHtml(ids.shift() ?? "")}">${this.parser.parseInline(inner)}</h${depth}>\n`;
      },
      link({ href, tokens: inner }) {
        const text = this.parser.parseInline(inner);
        const address = addressOf(href);
        return address === undefined ? text : `<a href="${escapeHtml(address)}">${text}</a>`;
      },
      code: ({ text }) => `${scrolls("Code")}<pre><code>${escapeHtml(text)}</code></pre></div>\n`,
      // Comments are for whoever edits the file; guides have no other markup.
      html: ({ text }) => (text.trim().startsWith("<!--") ? "" : escapeHtml(text)),
    },
  });
  // Text is escaped: these are the tables themselves.
  return marked
    .parser(tokens)
    .replaceAll("<table>", `${scrolls("Table")}<table>`)
    .replaceAll("</table>", "</table></div>");
}

const titleOf = (tokens: readonly Token[]): string => {
  const title = tokens.find((token): token is Tokens.Heading => token.type === "heading" && token.depth === 1);
  if (!title) throw new Error("a guide begins with a heading: # Title");
  return title.text;
};

/** The groups of the list of guides, with the links of each. */
function navigation(index: string, name: string): string {
  const groups: { title: string; links: Tokens.Link[] }[] = [];
  for (const token of lexer(index)) {
    if (token.type === "heading" && token["depth"] === 2) groups.push({ title: String(token["text"]), links: [] });
    if (token.type !== "list") continue;
    walkTokens([token], (inner) => {
      if (inner.type === "link") groups.at(-1)?.links.push(inner as Tokens.Link); // its type says so
    });
  }
  return groups
    .map(({ title, links }) => {
      const items = links.map(({ href, text }) => {
        const current = href === `${name}.md` ? ' aria-current="page"' : "";
        return `<li><a href="${escapeHtml(addressOf(href) ?? "")}"${current}>${escapeHtml(text)}</a></li>`;
      });
      return `<h2>${escapeHtml(title)}</h2>\n<ul>${items.join("\n")}</ul>`;
    })
    .join("\n");
}

/** Folders of pages, as the site shows them; each has an index. */
export type Folder = "guides" | "reference";
const TITLES: Readonly<Record<Folder, string>> = { guides: "All guides", reference: "API reference" };

/** Which folder a page is in, and all that the site has. */
export interface Place {
  readonly folder: Folder;
  readonly folders: readonly Folder[];
}

/**
 * A guide, or a page of the API reference, as a page that needs no script.
 *
 * @param name of its file, without `.md`
 * @param text its Markdown
 * @param index the Markdown of its folder's index
 */
export function guidePage(
  name: string,
  text: string,
  index: string,
  { folder, folders }: Place = { folder: "guides", folders: ["guides"] },
): string {
  const places = folders.map((it) => {
    const current = it === folder && name === INDEX ? ' aria-current="page"' : "";
    return `<a href="/${it}/${INDEX}.html"${current}>${TITLES[it]}</a>`;
  });
  const tokens = lexer(text);
  const title = escapeHtml(titleOf(tokens));
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta
      http-equiv="Content-Security-Policy"
      content="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'"
    />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title} · ag-ui-local-runtime</title>
    <link rel="icon" type="image/svg+xml" href="/favicon.svg" />
    <link rel="stylesheet" href="/guide-pages/guides.css" />
  </head>
  <body class="guides">
    <a class="skip" href="#guide">Skip to the ${folder === "guides" ? "guide" : "reference"}</a>
    <header class="guides-header">
      <a href="/">Demo</a>
      ${places.join("\n      ")}
    </header>
    <nav class="guides-nav" aria-label="${folder === "guides" ? "Guides" : TITLES[folder]}">
${navigation(index, name)}
    </nav>
    <main class="guide markdown" id="guide" tabindex="-1">
${bodyOf(tokens)}
    </main>
  </body>
</html>
`;
}
