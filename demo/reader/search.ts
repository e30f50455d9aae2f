import MiniSearch from "minisearch";
import type { Slices, Work } from "./slices.js";
import { STOP_WORDS } from "./text/stopwords.js";
import { fold, lower, WORD } from "./text/words.js";

/** What is searched: units by number. `textOf` is asked once for each. */
export interface Corpus {
  readonly size: number;
  textOf(unit: number): string;
  titleOf(unit: number): string;
}

export interface Hit {
  readonly unit: number;
  readonly score: number;
  /** Words of the question that it holds, folded. */
  readonly matched: ReadonlySet<string>;
  /** Words of the document by which it was found, folded, with what each gave to the score. */
  readonly words: ReadonlyMap<string, number>;
}

export interface Found {
  readonly hits: readonly Hit[];
  /** The words searched for, folded. */
  readonly terms: readonly string[];
  /** Those of them that stand nowhere, not even nearly. */
  readonly absent: readonly string[];
  /** Those that stand nowhere, with the near spellings that were taken for them. */
  readonly near: readonly { readonly term: string; readonly words: readonly string[] }[];
}

export type SearchIndex = MiniSearch<number>;

const MAX_TERMS = 12;

const tokenize = (text: string): string[] => text.match(WORD) ?? [];

/** Builds a BM25 index, a few units at a time. */
export async function* buildIndex(corpus: Corpus, slices: Slices): Work<SearchIndex> {
  const index: SearchIndex = new MiniSearch<number>({
    fields: ["text", "title"],
    extractField: (unit, field) =>
      field === "id" ? unit : field === "title" ? corpus.titleOf(unit) : corpus.textOf(unit),
    tokenize,
    processTerm: (term) => {
      const word = fold(term);
      return word.length > 40 || STOP_WORDS.has(lower(term)) ? null : word;
    },
  });
  for (let unit = 0; unit < corpus.size; unit++) {
    index.add(unit);
    if (slices.due()) {
      yield unit / corpus.size;
      await slices.pause();
    }
  }
  return index;
}

/** The words of a question that are worth searching for. */
export function queryTerms(question: string): string[] {
  const words = tokenize(question).map((word) => ({ small: lower(word), key: fold(word) }));
  const telling = words.filter(({ small }) => !STOP_WORDS.has(small));
  return [...new Set(telling.map(({ key }) => key))].slice(0, MAX_TERMS);
}

/** Searches word by word, so that no step is long, and adds the scores. */
export async function searchIndex(index: SearchIndex, terms: readonly string[], slices: Slices): Promise<Found> {
  const hits = new Map<number, { score: number; matched: Set<string>; words: Map<string, number> }>();
  const absent: string[] = [];
  const near: { term: string; words: string[] }[] = [];
  for (const term of terms) {
    let results = index.search(term, {
      prefix: term.length >= 4,
      boost: { title: 1.5 },
      weights: { prefix: 0.6, fuzzy: 0.4 },
    });
    if (results.length === 0 && term.length >= 5) {
      results = index.search(term, { fuzzy: term.length >= 8 ? 2 : 1 });
      const words = [...new Set(results.flatMap((result) => result.terms))].slice(0, 5);
      if (words.length > 0) near.push({ term, words });
    }
    if (results.length === 0) absent.push(term);
    for (const result of results) {
      const unit = result.id as number;
      const hit = hits.get(unit) ?? { score: 0, matched: new Set<string>(), words: new Map<string, number>() };
      hits.set(unit, hit);
      hit.score += result.score;
      hit.matched.add(term);
      for (const word of result.terms) hit.words.set(word, Math.max(result.score, hit.words.get(word) ?? 0));
    }
    await slices.pause();
  }
  const ranked = [...hits]
    .map(([unit, hit]) => ({ unit, ...hit, score: hit.score * (0.4 + (0.6 * hit.matched.size) / terms.length) }))
    .toSorted((a, b) => b.score - a.score || a.unit - b.unit);
  return { hits: ranked.slice(0, 50), terms, absent, near };
}

/** How well a text answers a hit: what the words in it gave to the score, each once. */
export function weightOf(text: string, words: Hit["words"]): number {
  const held = new Set<string>();
  for (const word of tokenize(text)) held.add(fold(word));
  let sum = 0;
  for (const word of held) sum += words.get(word) ?? 0;
  return sum;
}
