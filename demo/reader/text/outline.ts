import type { OutlineEntry, OutlineSource } from "../state.js";
import type { TextDocument } from "./blocks.js";
import { sentencesOf } from "./sentences.js";
import { plain } from "./words.js";
import { clip } from "../markdown.js";

export interface Outline {
  readonly entries: readonly OutlineEntry[];
  readonly from: OutlineSource;
  /** Headings that stand in the text; the entries are fewer where there are too many to show. */
  readonly found: number;
}

const MAX_ENTRIES = 80;
const LEADS = 12;

/** The headings, the coarsest where there are too many; without any, how evenly spaced paragraphs begin. */
export function outlineOf(document: TextDocument): Outline {
  const { headings } = document;
  const from = document.headingsFrom;
  if (from === "none" || (from === "guessed titles" && headings.length < 2)) return leads(document);
  let deepest = 6;
  const upTo = (level: number): number => headings.filter((heading) => heading.level <= level).length;
  while (deepest > 1 && upTo(deepest) > MAX_ENTRIES && upTo(deepest - 1) >= 2) deepest--;
  const entries = headings
    .filter((heading) => heading.level <= deepest)
    .slice(0, MAX_ENTRIES)
    .map(({ title, level, line }) => ({ title: clip(plain(title), 120), level, line }));
  return { entries, from, found: headings.length };
}

function leads(document: TextDocument): Outline {
  const paragraphs = document.blocks.filter((block) => block.kind === "text" && block.end - block.start >= 80);
  const every = Math.max(1, paragraphs.length / LEADS);
  const entries: OutlineEntry[] = [];
  for (let at = 0; at < paragraphs.length && entries.length < LEADS; at += every) {
    const block = paragraphs[Math.floor(at)];
    const first = block && sentencesOf(document.text, block)[0];
    if (first && block)
      entries.push({ title: clip(plain(first.text).replace(/\s+/g, " "), 120), level: 1, line: block.line });
  }
  return { entries, from: "leading sentences", found: 0 };
}
