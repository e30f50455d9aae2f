import MiniSearch from "minisearch";
import { clip } from "./markdown.js";
import type { Slices, Work } from "./slices.js";
import { type Passage, plain, STOP_WORDS, wordsOf } from "./text.js";

export interface SearchIndex {
  readonly passages: readonly Passage[];
  readonly words: MiniSearch<number>;
}

export interface Hit {
  readonly passage: Passage;
  readonly score: number;
  /** Words of the question that it holds, or holds nearly. */
  readonly matched: readonly string[];
  /** What of the passage answers best: a sentence and those around it, in one line. */
  readonly excerpt: string;
  /** Where the excerpt begins. */
  readonly line: number;
}

const MAX_TERMS = 12;
const WANTED = 320;

/** Builds an index of BM25, a few passages at a time. */
export async function* buildIndex(passages: readonly Passage[], slices: Slices): Work<SearchIndex> {
  const words = new MiniSearch<number>({
    fields: ["text", "section"],
    extractField: (i, field) => (field === "id" ? i : (passages[i]?.[field as "text" | "section"] ?? "")),
    tokenize: wordsOf,
    processTerm: (word) => (word.length > 40 || STOP_WORDS.has(word.toLowerCase()) ? null : word.toLowerCase()),
  });
  for (const i of passages.keys()) {
    words.add(i);
    if (slices.due()) {
      yield i / passages.length;
      await slices.pause();
    }
  }
  return { passages, words };
}

/** The words of a question that are worth searching for. */
export const queryTerms = (question: string): string[] =>
  [...new Set(wordsOf(question.toLowerCase()))].filter((word) => !STOP_WORDS.has(word)).slice(0, MAX_TERMS);

/** The passages that answer best, best first: words with the same beginning and near spellings included. */
export function searchIndex({ passages, words }: SearchIndex, terms: readonly string[], limit: number): Hit[] {
  const results = words.search(terms.join(" "), {
    prefix: (term) => term.length >= 4,
    fuzzy: (term) => (term.length >= 5 ? 0.2 : false),
    weights: { prefix: 0.6, fuzzy: 0.3 },
    boost: { section: 1.5 },
  });
  return results.slice(0, limit).flatMap(({ id, score, queryTerms: matched, terms: found }) => {
    const passage = passages[id as number];
    if (!passage) return [];
    const { text, before } = excerptOf(passage.text, new Set(found));
    const line = passage.line + (before.match(/\n/g)?.length ?? 0);
    return [{ passage, score, matched: [...new Set(matched)], excerpt: text, line }];
  });
}

const sentences = new Intl.Segmenter("en", { granularity: "sentence" });

/** The sentence with most of the words, and the next ones while there is room. */
function excerptOf(text: string, found: ReadonlySet<string>): { text: string; before: string } {
  const all = [...sentences.segment(text)];
  const held = all.map(({ segment }) => new Set(wordsOf(segment.toLowerCase()).filter((word) => found.has(word))).size);
  const best = text.length <= WANTED ? 0 : Math.max(0, held.indexOf(Math.max(...held)));
  const from = all[best]?.index ?? 0;
  let to = from;
  for (const { segment } of all.slice(best)) {
    if (to > from && to - from + segment.length > WANTED) break;
    to += segment.length;
  }
  return { text: clip(plain(text.slice(from, to)).replace(/\s+/g, " ").trim(), 600), before: text.slice(0, from) };
}
