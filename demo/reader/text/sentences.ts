import type { Slices, Work } from "../slices.js";
import type { KeySentence } from "../state.js";
import { type Block, lineBreaks, type TextDocument } from "./blocks.js";
import type { Vocabulary } from "./terms.js";
import { fold, plain, WORD } from "./words.js";

export interface Sentence {
  /** As it stands in the text. */
  readonly text: string;
  readonly start: number;
}

const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
/** Ends of what is no sentence: titles and abbreviations, and initials. */
const ABBREVIATED =
  /(?:^|[\s("“])(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|No|Nr|vs|etc|e\.g|i\.e|ca|cf|Fig|vol|z\.\s?B|d\.\s?h|u\.\s?a|bzw|usw|\p{Lu})\.\s*$/u;

/** Splits a block into sentences; each item of a list is one at least. */
export function sentencesOf(text: string, block: Pick<Block, "start" | "end" | "kind">): Sentence[] {
  const found: Sentence[] = [];
  const body = text.slice(block.start, block.end);
  for (const part of block.kind === "list" || block.kind === "table" ? lines(body) : [{ text: body, start: 0 }]) {
    let open = "";
    let from = 0;
    for (const { segment, index } of segmenter.segment(part.text)) {
      if (open === "") from = index;
      open += segment;
      // The segmenter ends a sentence at every line break (UAX #29, SB4), wrapped paragraphs do not.
      if (ABBREVIATED.test(open.slice(-12)) || !/[.!?…:]["'”’»)\]*_]*\s*$/.test(open)) continue;
      push(open, part.start + from);
      open = "";
    }
    if (open !== "") push(open, part.start + from);
  }
  return found;

  function push(sentence: string, at: number): void {
    const trimmed = sentence.trim();
    if (trimmed !== "") found.push({ text: trimmed, start: block.start + at + sentence.indexOf(trimmed) });
  }
}

function* lines(text: string): Generator<Sentence> {
  for (let start = 0; start < text.length;) {
    const end = text.indexOf("\n", start);
    const to = end === -1 ? text.length : end;
    yield { text: text.slice(start, to), start };
    start = to + 1;
  }
}

/** The line of a place in a block. */
export function lineAt(text: string, block: Pick<Block, "start" | "line">, at: number): number {
  return block.line + lineBreaks(text, block.start, at);
}

export interface Sentences {
  /** The most central ones, in the order of the text. */
  readonly central: readonly KeySentence[];
  /** One for each section that has not given a central one, in the order of the text. */
  readonly bySection: readonly KeySentence[];
  readonly scored: number;
  /** Blocks that were split into sentences, of all. */
  readonly blocks: number;
}

interface Scored extends KeySentence {
  readonly at: number;
  readonly sectionIndex: number;
  readonly keys: ReadonlySet<string>;
}

/** Only the best blocks are split, so that a large text costs what a middling one does. */
const MAX_SPLIT = 600;
const MAX_SECTIONS = 40;

/** Ranks sentences by the weight of the key terms they hold for their length. */
export async function* findSentences(document: TextDocument, vocabulary: Vocabulary, slices: Slices): Work<Sentences> {
  const candidates = yield* bestBlocks(document, vocabulary, slices);
  const scored: Scored[] = [];
  for (const [index, block] of candidates.entries()) {
    const sentences = sentencesOf(document.text, block);
    for (const [place, sentence] of sentences.entries()) {
      const one = score(document, vocabulary, block, sentence, place === 0);
      if (one) scored.push(one);
    }
    if (slices.due()) {
      yield 0.5 + (0.5 * index) / candidates.length;
      await slices.pause();
    }
  }
  scored.sort((a, b) => b.score - a.score || a.at - b.at);
  const wanted = Math.min(12, Math.max(3, Math.round(Math.sqrt(scored.length))));
  const central = choose(scored, wanted);
  const top = central[0]?.score ?? 1;
  const rest = new Map<number, Scored>();
  const used = new Set(central.map((one) => one.sectionIndex));
  for (const one of scored) {
    if (one.sectionIndex >= 0 && !used.has(one.sectionIndex) && !rest.has(one.sectionIndex))
      rest.set(one.sectionIndex, one);
  }
  const inOrder = (list: readonly Scored[]): KeySentence[] =>
    list
      .toSorted((a, b) => a.at - b.at)
      .map(({ text, line, section, score: value }) => ({
        text,
        line,
        section,
        score: Number((value / top).toFixed(3)),
      }));
  return {
    central: inOrder(central),
    bySection: inOrder([...rest.values()].slice(0, MAX_SECTIONS)),
    scored: scored.length,
    blocks: candidates.length,
  };
}

/** Per section the two best blocks, and the best of all; in the order of the text. */
async function* bestBlocks(document: TextDocument, { weights }: Vocabulary, slices: Slices): Work<Block[]> {
  const ranked: { block: Block; score: number }[] = [];
  for (const [index, block] of document.blocks.entries()) {
    if (block.kind === "code" || block.kind === "table") continue;
    let sum = 0;
    let words = 0;
    for (const [word] of document.text.slice(block.start, block.end).matchAll(WORD)) {
      words++;
      sum += weights.get(fold(word)) ?? 0;
    }
    if (words >= 5) ranked.push({ block, score: sum / Math.sqrt(words + 10) });
    if (slices.due()) {
      yield (0.5 * index) / document.blocks.length;
      await slices.pause();
    }
  }
  if (ranked.length <= MAX_SPLIT) return ranked.map(({ block }) => block);
  ranked.sort((a, b) => b.score - a.score);
  return ranked
    .slice(0, MAX_SPLIT)
    .map(({ block }) => block)
    .toSorted((a, b) => a.start - b.start);
}

function score(
  document: TextDocument,
  { weights }: Vocabulary,
  block: Block,
  sentence: Sentence,
  first: boolean,
): Scored | undefined {
  const text = plain(sentence.text).replace(/\s+/g, " ").trim();
  const keys = new Set<string>();
  let words = 0;
  for (const [word] of text.matchAll(WORD)) {
    words++;
    const key = fold(word);
    if (weights.has(key)) keys.add(key);
  }
  if (words < 6 || words > 60 || text.length > 500) return undefined;
  let sum = 0;
  for (const key of keys) sum += weights.get(key) ?? 0;
  const length = words < 10 ? 0.8 : words > 35 ? 0.85 : 1;
  return {
    text,
    line: lineAt(document.text, block, sentence.start),
    section: document.headings[block.section]?.title ?? "",
    score: (sum / Math.sqrt(words + 5)) * length * (first ? 1.15 : 1) * (text.endsWith("?") ? 0.7 : 1),
    at: sentence.start,
    sectionIndex: block.section,
    keys,
  };
}

/** The best ones, without those that say the same, and at most two of a section where there are enough sections. */
function choose(scored: readonly Scored[], wanted: number): Scored[] {
  const chosen: Scored[] = [];
  const perSection = new Map<number, number>();
  for (const one of scored) {
    if (chosen.length >= wanted) break;
    const used = perSection.get(one.sectionIndex) ?? 0;
    if (one.sectionIndex >= 0 && used >= 2) continue;
    if (chosen.some((other) => overlap(one.keys, other.keys) > 0.6)) continue;
    perSection.set(one.sectionIndex, used + 1);
    chosen.push(one);
  }
  return chosen;
}

function overlap(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let both = 0;
  for (const key of a) if (b.has(key)) both++;
  const all = a.size + b.size - both;
  return all === 0 ? 0 : both / all;
}
