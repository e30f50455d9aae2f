import type { Slices, Work } from "./slices.js";

/** What is searched and quoted: a paragraph of a text, or a row of a table. */
export interface Passage {
  readonly text: string;
  /** The heading it stands under; "" for none, and in tables. */
  readonly section: string;
  /** Of its first character, 1 for the first; in tables the row, 1 for the first of data. */
  readonly line: number;
}

export interface OutlineEntry {
  readonly title: string;
  /** 1 to 6. */
  readonly level: number;
  readonly line: number;
}

export interface Paragraphs {
  readonly passages: readonly Passage[];
  readonly outline: readonly OutlineEntry[];
  readonly lines: number;
}

/** Longer paragraphs are cut, so that every later step has bounded units. */
const MAX_PASSAGE = 2_000;
const MAX_TITLE = 300;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$/;
const FENCE = /^ {0,3}(?:```|~~~)/;
/** A line of capital letters only stands for a heading in a text without Markdown. */
const CAPITALS = /^(?=.*\p{Lu}{3})\P{Ll}{3,60}$/u;

/** Splits a text at its blank lines and headings. */
export async function* paragraphs(text: string, markdown: boolean, slices: Slices): Work<Paragraphs> {
  const passages: Passage[] = [];
  const outline: OutlineEntry[] = [];
  let open: { text: string; line: number } | undefined;
  let fenced = false;
  const close = (): void => {
    if (open) passages.push({ ...open, section: outline.at(-1)?.title ?? "" });
    open = undefined;
  };
  const lines = text.split(/\r\n?|\n/);
  for (const [index, whole] of lines.entries()) {
    const line = index + 1;
    const isFence = markdown && FENCE.test(whole.slice(0, 10));
    if (isFence) fenced = !fenced;
    const heading = fenced || whole.length > MAX_TITLE ? undefined : headingOf(whole, markdown);
    if (heading) {
      close();
      outline.push({ ...heading, line });
    } else if (whole.trim() === "" && !fenced) close();
    else {
      for (let from = 0; from === 0 || from < whole.length; from += MAX_PASSAGE) {
        const part = whole.slice(from, from + MAX_PASSAGE);
        if (open && open.text.length + part.length > MAX_PASSAGE) close();
        open = open ? { ...open, text: `${open.text}\n${part}` } : { text: part, line };
      }
    }
    if (slices.due()) {
      yield line / lines.length;
      await slices.pause();
    }
  }
  close();
  return { passages, outline, lines: lines.length };
}

function headingOf(line: string, markdown: boolean): Omit<OutlineEntry, "line"> | undefined {
  if (!markdown) return CAPITALS.test(line.trim()) ? { title: line.trim(), level: 1 } : undefined;
  const [, marks = "", title] = HEADING.exec(line) ?? [];
  return title === undefined ? undefined : { title: plain(title), level: marks.length };
}

/** A line of Markdown without its marks for emphasis, code, links and quotes. */
export const plain = (markdown: string): string =>
  markdown
    .replace(/!?\[([^\]\n]{0,300})\]\([^)\n]{0,500}\)/g, "$1")
    .replace(/[*`]+|(?<=^|\s)_+(?=\S)|(?<=\S)_+(?=\s|[.,;:!?]|$)/g, "")
    .replace(/^ {0,3}(?:>|[-+]|\d{1,3}[.)])[ \t]+/gm, "");

/** A word: letters and digits, with apostrophes and hyphens inside. */
const WORD = /[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu;

export const wordsOf = (text: string): string[] => text.match(WORD) ?? [];

/** Words that say nothing about a text's subject. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about above after again all also always an and another any are as at away back be became because been before being
  below between both but by came can could did do does don't down during each either even ever every few first for from
  get go goes had has have he her here him his how i if in into is it it's its itself just keep know last less like made
  make many may me more most much must my near never no none not nothing now of off often on once one only or other our
  out over own same said say see she should since so some still such tell than that the their them then there these they
  thing this those though through till to too two under until up upon us very was way we well were what when where whether
  which while who whole whom whose why will with within without would you your`.split(/\s+/),
);
