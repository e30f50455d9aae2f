import { clip } from "./markdown.js";
import type { ReadText } from "./prepare.js";
import type { Hit } from "./search.js";
import { lineAt, sentencesOf } from "./text/sentences.js";
import type { Passage } from "./text/passages.js";
import { fold, plain, WORD } from "./text/words.js";

/** The part of a passage that answers best. */
export interface Excerpt {
  readonly text: string;
  readonly section: string;
  readonly firstLine: number;
  readonly lastLine: number;
}

const WANTED = 320;

/** The sentence with most of the words that were found, and its neighbours while there is room. */
export function excerptOf(read: ReadText, passage: Passage, hit: Pick<Hit, "words">): Excerpt {
  const { text, headings } = read.document;
  const sentences = sentencesOf(text, passage);
  const weigh = (sentence: string): number => {
    const held = new Set<string>();
    for (const [word] of sentence.matchAll(WORD)) if (hit.words.has(fold(word))) held.add(fold(word));
    return held.size;
  };
  let from = 0;
  let most = -1;
  for (const [i, sentence] of sentences.entries()) {
    const weight = weigh(sentence.text);
    if (weight > most) [from, most] = [i, weight];
  }
  let to = from;
  const length = (): number =>
    (sentences[to]?.start ?? 0) + (sentences[to]?.text.length ?? 0) - (sentences[from]?.start ?? 0);
  while (to + 1 < sentences.length && length() + (sentences[to + 1]?.text.length ?? 0) <= WANTED) to++;
  while (from > 0 && length() + (sentences[from - 1]?.text.length ?? 0) <= WANTED) from--;

  const start = sentences[from]?.start ?? passage.start;
  const end = Math.min(
    start + 2_000,
    sentences.length === 0 ? passage.end : (sentences[to]?.start ?? 0) + (sentences[to]?.text.length ?? 0),
  );
  const raw = text.slice(start, end);
  const firstLine = lineAt(text, passage, start);
  return {
    text: clip((read.markdown ? plain(raw) : raw).replace(/\s+/g, " ").trim(), 600),
    section: headings[passage.section]?.title ?? "",
    firstLine,
    lastLine: lineAt(text, { start, line: firstLine }, end),
  };
}
