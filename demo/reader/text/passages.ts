import type { Slices, Work } from "../slices.js";
import { type Block, cutNear, lineBreaks, type TextDocument } from "./blocks.js";

/** What a search finds: some lines of a document. */
export interface Passage {
  readonly start: number;
  readonly end: number;
  readonly line: number;
  /** Index of its heading; -1 for none. */
  readonly section: number;
  readonly kind: Block["kind"];
}

const TARGET = 700;
const MAX_PASSAGES = 12_000;

/** Joins and cuts blocks to passages of like size. There are never more than some 12,000: those of a large text are larger. */
export async function* passagesOf(document: TextDocument, slices: Slices): Work<Passage[]> {
  const target = Math.max(TARGET, Math.ceil(document.text.length / MAX_PASSAGES));
  const passages: Passage[] = [];
  let open: Passage | undefined;
  for (const [index, block] of document.blocks.entries()) {
    if (open && (open.section !== block.section || block.end - open.start > target * 1.6)) {
      passages.push(open);
      open = undefined;
    }
    if (open) {
      open = { ...open, end: block.end };
    } else {
      let { start, line } = block;
      while (block.end - start > target * 1.6) {
        const end = cutNear(document.text, start, start + target);
        passages.push({ start, end, line, section: block.section, kind: block.kind });
        line += lineBreaks(document.text, start, end);
        start = end;
      }
      open = { start, end: block.end, line, section: block.section, kind: block.kind };
    }
    if (slices.due()) {
      yield index / document.blocks.length;
      await slices.pause();
    }
  }
  if (open) passages.push(open);
  return passages;
}
