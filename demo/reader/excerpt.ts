import { clip } from "./markdown.js";
import type { ReadText } from "./prepare.js";
import { type Hit, weightOf } from "./search.js";
import { type Block, LIST } from "./text/blocks.js";
import { lineAt, sentencesOf } from "./text/sentences.js";
import type { Passage } from "./text/passages.js";
import { plain } from "./text/words.js";

/** The part of a passage that answers best. */
export interface Excerpt {
  readonly text: string;
  readonly section: string;
  readonly firstLine: number;
  readonly lastLine: number;
}

const WANTED = 320;
/** Lines up to a blank one. */
const PARAGRAPH = /(?:[^\n]*\S[^\n]*(?:\n|$))+/g;

/** The sentence with the best of the words that were found, and its neighbours while there is room. */
export function excerptOf(read: ReadText, passage: Passage, hit: Pick<Hit, "words">): Excerpt {
  const { text, headings } = read.document;
  const sentences = paragraphsOf(text, passage).flatMap((paragraph, index) =>
    sentencesOf(text, paragraph).map((sentence) => ({ ...sentence, paragraph: index })),
  );
  let from = 0;
  let most = -1;
  for (const [i, sentence] of sentences.entries()) {
    const weight = weightOf(sentence.text, hit.words);
    if (weight > most) [from, most] = [i, weight];
  }
  let to = from;
  /** Whether a neighbour is of the same paragraph and fits. */
  const fits = (neighbour: number): boolean => {
    const [first, last] = [sentences[Math.min(from, neighbour)], sentences[Math.max(to, neighbour)]];
    return (
      first !== undefined &&
      last !== undefined &&
      first.paragraph === last.paragraph &&
      last.start + last.text.length - first.start <= WANTED
    );
  };
  while (fits(to + 1)) to++;
  while (from > 0 && fits(from - 1)) from--;

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

/** A passage may join several blocks: a quote is from one of them. */
function paragraphsOf(text: string, { start, end, kind }: Passage): Pick<Block, "start" | "end" | "kind">[] {
  if (kind === "code") return [{ start, end, kind }];
  const found: Pick<Block, "start" | "end" | "kind">[] = [];
  for (const { 0: body, index } of text.slice(start, end).matchAll(PARAGRAPH)) {
    const at = start + index;
    found.push({
      start: at,
      end: at + body.length,
      kind: LIST.test(body) ? "list" : /^ {0,3}\|/.test(body) ? "table" : "text",
    });
  }
  return found;
}
