import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { lexer, walkTokens, type Token, type Tokens } from "marked";
import { headingIds } from "../../../demo/guide-pages/headings.js";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** A Markdown file of the project. */
export interface Page {
  /** From the top of the repository. */
  readonly path: string;
  readonly text: string;
  readonly tokens: readonly Token[];
}

export function pageOf(path: string): Page {
  const text = readFileSync(join(ROOT, path), "utf8");
  return { path, text, tokens: lexer(text) };
}

const markdownIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`);

export const GUIDES = markdownIn("demo/guides");
export const PAGES = ["README.md", "CHANGELOG.md", ...GUIDES, ...markdownIn(".github")];

function tokensOf<T extends Token>({ tokens }: Page, type: T["type"]): T[] {
  const found: T[] = [];
  // The type says which of the tokens it is.
  walkTokens([...tokens], (token) => void (token.type === type && found.push(token as T)));
  return found;
}

const linksOf = (page: Page): string[] => tokensOf<Tokens.Link>(page, "link").map(({ href }) => href);

/** One sentence for each link of the page into the repository that leads nowhere. */
export function deadLinks(page: Page): string[] {
  return linksOf(page).flatMap((href) => {
    if (/^[a-z]+:/.test(href)) return [];
    const [file = "", id] = href.split("#");
    const path = file === "" ? page.path : relative(ROOT, join(ROOT, dirname(page.path), decodeURI(file)));
    if (!existsSync(join(ROOT, path))) return [`${page.path}: ${href} leads to no file`];
    if (id === undefined || !path.endsWith(".md")) return [];
    return headingIds(pageOf(path).tokens).includes(id) ? [] : [`${page.path}: ${href} leads to no heading`];
  });
}

/** Files of the reader's own app. */
const OF_THE_READER = new Set([
  "src/agents.worker.ts",
  "src/connect.ts",
  "src/App.tsx",
  "src/App.vue",
  "src/App.svelte",
  "src/main.ts",
  "src/node-shims.ts",
]);

/** One sentence for each file or folder of the repository that the page names as code and that is not there. */
export function missingFiles(page: Page): string[] {
  return tokensOf<Tokens.Codespan>(page, "codespan")
    .map(({ text }) => text)
    .filter((text) => /^(src|test|demo)\/[\w./-]+$/.test(text))
    .filter((path) => !OF_THE_READER.has(path) && !existsSync(join(ROOT, path)))
    .map((path) => `${page.path}: ${path} is not there`);
}

/** The guides that the page links to, in order. */
export const guidesLinkedFrom = (page: Page): string[] =>
  linksOf(page)
    .filter((href) => /^[\w-]+\.md$/.test(href))
    .map((href) => `${dirname(page.path)}/${href}`);

export interface Example {
  readonly page: string;
  /** Of its first line of code, from 1. */
  readonly line: number;
  readonly code: string;
  /** What it is written in; default TypeScript. */
  readonly lang?: Lang;
}

const LANGS = ["ts", "tsx", "vue", "svelte"] as const;
type Lang = (typeof LANGS)[number];

/** The TypeScript of the page, also where it stands in components. */
export function examplesOf(page: Page): Example[] {
  let from = 0;
  return tokensOf<Tokens.Code>(page, "code").flatMap(({ lang, text, raw }) => {
    const at = page.text.indexOf(raw, from);
    from = at + raw.length;
    const known = LANGS.find((one) => one === lang);
    if (known === undefined) return [];
    return [{ page: page.path, line: page.text.slice(0, at).split("\n").length + 1, code: text, lang: known }];
  });
}

export interface LawRow {
  readonly law: string;
  readonly sources: readonly string[];
  readonly suites: readonly string[];
}

/** The rows of the table of laws. */
export function lawRows(page: Page): LawRow[] {
  const rows = tokensOf<Tokens.Table>(page, "table").flatMap((table) => table.rows);
  return rows.flatMap((row) => {
    const [law = ""] = row.map(({ text }) => text);
    const paths = row.flatMap(({ text }) => [...text.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path]) => path!));
    if (!/^L\d+$/.test(law) || paths.length === 0) return [];
    return [
      {
        law,
        sources: paths.filter((path) => path.startsWith("src/")),
        suites: paths.filter((path) => path.startsWith("test/")),
      },
    ];
  });
}

export const isFile = (path: string): boolean => existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isFile();
