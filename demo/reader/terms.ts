import type { Slices, Work } from "../documents/slices.js";
import { type Passage, STOP_WORDS, wordsOf } from "../documents/text.js";
import type { Term } from "./state.js";

const isTelling = (word: string): boolean => word.length >= 3 && word.length <= 40 && /^\p{L}/u.test(word);

interface Entry {
  form: string;
  count: number;
  /** Passages that hold it, and the last of them. */
  passages: number;
  last: Passage;
}

/** Counts the words and ranks them by tf-idf: how often, times the logarithm of how few passages hold them. */
export async function* keyTerms(passages: readonly Passage[], slices: Slices): Work<{ terms: Term[]; words: number }> {
  const entries = new Map<string, Entry>();
  let words = 0;
  for (const [index, passage] of passages.entries()) {
    for (const form of wordsOf(passage.text)) {
      words++;
      const key = form.toLowerCase();
      if (STOP_WORDS.has(key) || !isTelling(key)) continue;
      const entry = entries.get(key) ?? { form, count: 0, passages: 0, last: passage };
      if (entry.count === 0 || entry.last !== passage) entry.passages++;
      entry.count++;
      entry.last = passage;
      // A form in small letters is no name and no start of a sentence.
      if (form === key) entry.form = form;
      entries.set(key, entry);
    }
    if (slices.due()) {
      yield index / passages.length;
      await slices.pause();
    }
  }
  const rank = ({ count, passages: holding }: Entry): number => count * Math.log(1 + passages.length / holding);
  const best = [...entries.values()].toSorted((a, b) => rank(b) - rank(a)).slice(0, 15);
  return { terms: best.map(({ form, count }) => ({ term: form, count })), words };
}
