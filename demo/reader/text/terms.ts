import type { Slices, Work } from "../slices.js";
import type { Term } from "../state.js";
import type { TextDocument } from "./blocks.js";
import { STOP_WORDS } from "./stopwords.js";
import { fold, lower, WORD } from "./words.js";

export interface Vocabulary {
  readonly terms: readonly Term[];
  /** Weight of each folded word that may make a sentence central, 0 to 1. */
  readonly weights: ReadonlyMap<string, number>;
  readonly words: number;
  readonly stopWords: number;
  /** Different words that are not stop words. */
  readonly different: number;
  /** Rare words were forgotten to bound memory. */
  readonly pruned: boolean;
}

interface Entry {
  count: number;
  /** Blocks that hold it. */
  blocks: number;
  lastBlock: number;
  form: string;
}

const MAX_ENTRIES = 120_000;
const TERMS = 15;
const WEIGHTS = 400;
/** Two words say more than one. */
const PAIR_BONUS = 1.6;

/**
 * Counts words and pairs of neighbours, and ranks them by tf-idf with the blocks as documents:
 * how often, times the logarithm of how few blocks.
 */
export async function* findTerms(document: TextDocument, slices: Slices): Work<Vocabulary> {
  const words = new Map<string, Entry>();
  const pairs = new Map<string, Entry>();
  let total = 0;
  let stopped = 0;
  let pruned = false;

  for (const [index, block] of document.blocks.entries()) {
    if (block.kind === "code") continue;
    const text = document.text.slice(block.start, block.end);
    let before: { key: string; form: string; end: number } | undefined;
    for (const match of text.matchAll(WORD)) {
      total++;
      const form = match[0];
      const small = lower(form);
      const key = fold(form);
      if (STOP_WORDS.has(small) || key.length < 3 || key.length > 40 || !/^\p{L}/u.test(key)) {
        if (STOP_WORDS.has(small)) stopped++;
        before = undefined;
        continue;
      }
      count(words, key, form, index);
      if (before && text.slice(before.end, match.index) === " ") {
        count(pairs, `${before.key} ${key}`, `${before.form} ${form}`, index);
      }
      before = { key, form, end: match.index + form.length };
    }
    if (words.size > MAX_ENTRIES) pruned = prune(words) || pruned;
    if (pairs.size > MAX_ENTRIES) prune(pairs);
    if (slices.due()) {
      yield index / document.blocks.length;
      await slices.pause();
    }
  }

  const rank = (entry: Entry): number => entry.count * Math.log(1 + document.blocks.length / entry.blocks);
  const ranked = best(words, WEIGHTS, rank);
  const top = ranked[0]?.score ?? 1;
  return {
    terms: chooseTerms(words, ranked, best(pairs, 60, rank)),
    weights: new Map(ranked.map(({ key, score }) => [key, score / top])),
    words: total,
    stopWords: stopped,
    different: words.size,
    pruned,
  };
}

function count(entries: Map<string, Entry>, key: string, form: string, block: number): void {
  const entry = entries.get(key);
  if (!entry) {
    entries.set(key, { count: 1, blocks: 1, lastBlock: block, form });
    return;
  }
  entry.count++;
  if (entry.lastBlock !== block) {
    entry.lastBlock = block;
    entry.blocks++;
  }
  // A form in small letters is no name and no start of a sentence; of singular and plural the shorter one is shown.
  const small = form === form.toLowerCase();
  if (small && (entry.form !== entry.form.toLowerCase() || form.length < entry.form.length)) entry.form = form;
}

/** Forgets what was met once; where that is not enough, what was met less than 4 times, and so on. */
function prune(entries: Map<string, Entry>): true {
  for (let least = 2; entries.size > MAX_ENTRIES / 2; least *= 2) {
    for (const [key, entry] of entries) if (entry.count < least) entries.delete(key);
  }
  return true;
}

interface Ranked {
  readonly key: string;
  readonly entry: Entry;
  readonly score: number;
}

const byScore = (a: Ranked, b: Ranked): number => b.score - a.score || (a.key < b.key ? -1 : 1);

/** The `limit` best without sorting all. */
function best(entries: ReadonlyMap<string, Entry>, limit: number, rank: (entry: Entry) => number): Ranked[] {
  let kept: Ranked[] = [];
  let least = 0;
  for (const [key, entry] of entries) {
    const score = rank(entry);
    if (score <= least) continue;
    kept.push({ key, entry, score });
    if (kept.length >= limit * 4) {
      kept = kept.toSorted(byScore).slice(0, limit);
      least = kept.at(-1)?.score ?? 0;
    }
  }
  return kept.toSorted(byScore).slice(0, limit);
}

/** Single words and pairs. A pair that makes up most of the use of a word stands for it. */
function chooseTerms(words: ReadonlyMap<string, Entry>, singles: readonly Ranked[], pairs: readonly Ranked[]): Term[] {
  const chosen: { entry: Entry; score: number }[] = [];
  const covered = new Set<string>();
  for (const { key, entry, score } of pairs) {
    const parts = key.split(" ");
    const shares = parts.map((part) => entry.count / (words.get(part)?.count ?? Infinity));
    if (entry.count < 3 || !shares.some((share) => share >= 0.4)) continue;
    for (const [i, part] of parts.entries()) if ((shares[i] ?? 0) >= 0.6) covered.add(part);
    chosen.push({ entry, score: score * PAIR_BONUS });
  }
  // What stands once is no key term, unless the text is so short that all does.
  const repeated = singles.filter(({ entry }) => entry.count > 1);
  const usable = repeated.length >= 5 ? repeated : singles;
  for (const single of usable.slice(0, TERMS * 4)) if (!covered.has(single.key)) chosen.push(single);
  chosen.sort((a, b) => b.score - a.score);
  const top = chosen[0]?.score ?? 1;
  return chosen
    .slice(0, TERMS)
    .map(({ entry, score }) => ({ term: entry.form, count: entry.count, weight: Number((score / top).toFixed(3)) }));
}
