import type { Slices, Work } from "../slices.js";

/** A stretch of a text without a blank line: a paragraph, a list, a fence of code. */
export interface Block {
  readonly start: number;
  readonly end: number;
  /** Of its first character; 1 is the text's first line. */
  readonly line: number;
  readonly kind: "text" | "list" | "code" | "table";
  /** Index in `headings`; -1 before the first. */
  readonly section: number;
}

export interface Heading {
  readonly title: string;
  readonly level: number;
  readonly line: number;
}

export interface TextDocument {
  readonly text: string;
  readonly blocks: readonly Block[];
  readonly headings: readonly Heading[];
  readonly headingsFrom: "headings" | "guessed titles" | "none";
  readonly lines: number;
}

/** Line breaks from one place to another. Looks no further: a search to the end of a text of one line would be long. */
export function lineBreaks(text: string, start: number, end: number): number {
  const part = text.slice(start, end);
  let count = 0;
  for (let at = part.indexOf("\n"); at !== -1; at = part.indexOf("\n", at + 1)) count++;
  return count;
}

/** Longer blocks are cut, so that every later step has bounded units. */
const MAX_BLOCK = 4_000;
const MAX_LINE = 32_000;
/** More blocks than this are joined, more headings are text. */
const MAX_BLOCKS = 150_000;
const MAX_HEADINGS = 20_000;

const ATX = /^ {0,3}(#{1,6})[ \t]+(.{1,300}?)[ \t]*#*[ \t]*$/;
const SETEXT = /^ {0,3}(=+|-+)[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** The first line of a list. */
export const LIST = /^ {0,3}(?:[-*+]|\d{1,3}[.)])[ \t]+\S/;
const NUMBERED =
  /^(?:(?:chapter|part|section|act|scene|book|kapitel|teil|abschnitt)\s+[\divxlc]+\b|\d{1,2}(?:\.\d{1,2}){0,3}\.?\s+\p{Lu}|[IVXLC]{1,6}\.?\s+\p{Lu})/iu;

interface Line {
  readonly start: number;
  readonly end: number;
  readonly number: number;
}

/** All line ends as "\n". */
export async function* unifyLineEnds(text: string, slices: Slices): Work<string> {
  if (!text.includes("\r")) return text;
  const parts: string[] = [];
  const step = 128 * 1024;
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + step, text.length);
    if (text[to - 1] === "\r" && text[to] === "\n") to++;
    parts.push(text.slice(from, to).replace(/\r\n?/g, "\n"));
    from = to;
    if (slices.due()) {
      yield from / text.length;
      await slices.pause();
    }
  }
  return parts.join("");
}

/** Finds blocks and headings. Headings of Markdown where there are any; else lines that look like titles. */
export async function* readBlocks(text: string, markdown: boolean, slices: Slices): Work<TextDocument> {
  const first = yield* scan(text, { markdown, guess: !markdown }, slices);
  const hashed = !markdown && first.headings.length < 2 && /^#{1,6} \S/m.test(text.slice(0, 100_000));
  if (hashed) return yield* scan(text, { markdown: true, guess: false }, slices);
  return first;
}

async function* scan(text: string, how: { markdown: boolean; guess: boolean }, slices: Slices): Work<TextDocument> {
  const blocks: Block[] = [];
  const headings: Heading[] = [];
  const joinBelow = text.length / MAX_BLOCKS;
  let open: Line[] = [];
  let fence: string | undefined;
  let blankBefore = true;
  let number = 0;

  const close = (): void => {
    const first = open[0];
    const last = open.at(-1);
    open = [];
    if (!first || !last) return;
    addBlock(blocks, text, first, last.end, kindOf(text, first, fence !== undefined), headings.length - 1, joinBelow);
  };
  const addHeading = (title: string, level: number, line: number): void => {
    headings.push({ title: title.trim(), level, line });
  };

  let newline = -1;
  let whole = true;
  for (let start = 0; start <= text.length;) {
    if (newline < start) newline = text.indexOf("\n", start);
    if (newline === -1) newline = text.length;
    // A very long line is taken in parts.
    if (whole) number++;
    whole = newline - start <= MAX_LINE;
    const end = whole ? newline : cutNear(text, start, start + MAX_LINE);
    const line: Line = { start, end, number };
    const head = text.slice(start, Math.min(end, start + 400));
    const blank = end - start < 400 && head.trim() === "";
    const fenced: string | undefined = how.markdown ? FENCE.exec(head)?.[1] : undefined;
    const heading = how.markdown && fence === undefined && headings.length < MAX_HEADINGS && end - start < 400;
    let match: RegExpExecArray | null;

    if (fence !== undefined) {
      open.push(line);
      if (fenced?.startsWith(fence) || open.length > 2_000) {
        close();
        fence = undefined;
      }
    } else if (fenced !== undefined) {
      close();
      fence = fenced;
      open.push(line);
    } else if (blank) {
      close();
    } else if (heading && (match = ATX.exec(head))) {
      close();
      addHeading(match[2] ?? "", match[1]?.length ?? 1, line.number);
    } else if (heading && open.length === 1 && (match = SETEXT.exec(head)) && open[0]) {
      const title = open[0];
      open = [];
      if (title.end - title.start <= 300)
        addHeading(text.slice(title.start, title.end), match[1]?.startsWith("=") ? 1 : 2, title.number);
    } else if (how.guess && blankBefore && headings.length < MAX_HEADINGS && looksLikeTitle(text, head, end)) {
      addHeading(head, NUMBERED.test(head.trim()) || isShouted(head) ? 1 : 2, line.number);
    } else {
      open.push(line);
      if (end - (open[0]?.start ?? end) > MAX_BLOCK || open.length > 500) close();
    }
    blankBefore = blank;
    start = whole ? end + 1 : end;
    if (slices.due()) {
      yield start / text.length;
      await slices.pause();
    }
  }
  close();
  return {
    text,
    blocks,
    headings,
    headingsFrom: headings.length === 0 ? "none" : how.guess ? "guessed titles" : "headings",
    lines: text.endsWith("\n") ? number - 1 : number,
  };
}

function kindOf(text: string, first: Line, fenced: boolean): Block["kind"] {
  if (fenced) return "code";
  const head = text.slice(first.start, Math.min(first.end, first.start + 200));
  if (/^\s{0,3}\|/.test(head)) return "table";
  return LIST.test(head) ? "list" : "text";
}

function addBlock(
  blocks: Block[],
  text: string,
  first: Line,
  end: number,
  kind: Block["kind"],
  section: number,
  joinBelow: number,
): void {
  const before = blocks.at(-1);
  if (before && before.section === section && before.end - before.start < joinBelow && before.kind === kind) {
    blocks[blocks.length - 1] = { ...before, end };
    return;
  }
  let line = first.number;
  for (let start = first.start; start < end;) {
    const to = end - start <= MAX_BLOCK * 1.5 ? end : cutNear(text, start, start + MAX_BLOCK);
    blocks.push({ start, end: to, line, kind, section });
    line += lineBreaks(text, start, to);
    start = to;
  }
}

/** A place to cut at or before `near`: after white space where there is some, never within a surrogate pair. */
export function cutNear(text: string, start: number, near: number): number {
  for (let at = near; at > near - 400 && at > start + 1; at--) if (/\s/.test(text.charAt(at - 1))) return at;
  const code = text.charCodeAt(near);
  return code >= 0xdc00 && code <= 0xdfff ? near - 1 : near;
}

const isShouted = (title: string): boolean => /\p{Lu}{3}/u.test(title) && title === title.toUpperCase();

/** A short line on its own, followed by a blank one, without the end of a sentence. */
function looksLikeTitle(text: string, head: string, end: number): boolean {
  const title = head.trim();
  if (title.length < 3 || title.length > 80 || !/\p{L}/u.test(title)) return false;
  if (/[.,;:!?…]$/.test(title) && !NUMBERED.test(title)) return false;
  if (!/^[\p{Lu}\d]/u.test(title) || /[|{}<>=]/.test(title)) return false;
  const next = text.slice(end + 1, end + 100);
  return end + 1 < text.length && /^[ \t]*\n/.test(next);
}
