import { blockquote, clip, escapeInline, many } from "../documents/markdown.js";
import { queryTerms } from "../documents/search.js";
import { type LibraryMeans, search } from "./library.js";
import type { Finding, Learned, Research } from "./state.js";

/** Streams Markdown; resolves when all of it was said. */
export type Say = (markdown: string) => Promise<void>;

export type Work = (state: Research, say: Say, means: LibraryMeans) => Promise<Learned>;

/** Quotes in the report. */
const QUOTED = 4;

/** Chooses the words to search for. */
const plan: Work = async ({ question, documents }, say) => {
  const terms = queryTerms(question);
  const names = documents.map(({ name }) => `*${escapeInline(name)}*`).join(", ");
  await say(
    terms.length === 0
      ? "The question has no word that I could search for.\n"
      : `I will search ${many(documents.length, "document")} for ${terms.map(quoted).join(", ")}: ${names}. ` +
          `Stop words are left out, and words that begin alike count as one.\n`,
  );
  return { terms };
};

/** Searches each document. */
const gather: Work = async ({ documents, terms }, say, means) => {
  const findings: Finding[] = [];
  for (const document of documents) {
    const found = terms.length === 0 ? [] : await search(document, terms, means);
    findings.push(...found);
    const where = found.map(({ section, line }) => (section === "" ? `line ${line}` : escapeInline(section)));
    await say(
      `- *${escapeInline(document.name)}*: ${many(found.length, "passage")}` +
        `${where.length === 0 ? "" : `, in ${[...new Set(where)].join(" · ")}`}\n`,
    );
  }
  return { findings: findings.toSorted((a, b) => b.matched.length - a.matched.length || b.score - a.score) };
};

/** Quotes the best passages. */
const read: Work = async ({ findings }, say) => {
  if (findings.length === 0) await say("No document mentions it.\n");
  for (const { text, document, section, line } of findings.slice(0, QUOTED)) {
    await say(blockquote(text, [document, section, `line ${line}`].filter((part) => part !== "").join(", ")));
  }
  return {};
};

/** Tells which document mentions which word. */
const compare: Work = async ({ terms, findings }, say) => {
  for (const term of terms) {
    const by = new Set(findings.filter(({ matched }) => matched.includes(term)).map(({ document }) => document));
    const names = [...by].map((name) => `*${escapeInline(name)}*`);
    await say(`- ${quoted(term)}: ${names.length === 0 ? "not mentioned" : names.join(", ")}\n`);
  }
  if (terms.length === 0) await say("There is nothing to compare.\n");
  return {};
};

/** Sums it up. */
const report: Work = async ({ question, findings }, say) => {
  const [best] = findings;
  const sources = new Set(findings.map(({ document }) => document)).size;
  await say(
    best === undefined
      ? `I found nothing about “${escapeInline(clip(question, 80))}”.\n`
      : `I found ${many(findings.length, "passage")} in ${many(sources, "document")} for ` +
          `“${escapeInline(clip(question, 80))}”. The best one is in *${escapeInline(best.document)}*, line ${best.line}: ` +
          `${escapeInline(clip(best.text, 160))}\n`,
  );
  return {};
};

const quoted = (term: string): string => `“${escapeInline(term)}”`;

/** The nodes of the graph, in their order. Each begins only when what the one before found is stored. */
export const NODES = { plan, gather, read, compare, report } as const satisfies Record<string, Work>;

export type NodeName = keyof typeof NODES;

export const NODE_NAMES = Object.keys(NODES) as readonly NodeName[];

export const TITLES: Readonly<Record<NodeName, string>> = {
  plan: "Plan",
  gather: "Search",
  read: "Quotes",
  compare: "Comparison",
  report: "Summary",
};
