import { MAX_DEPTH } from "./json.js";

/** Bounds of one patch and its result. The same for every reader: otherwise they would disagree. */
export interface PatchBounds {
  /** Operations of one patch. */
  readonly operations: number;
  /** Size of all that the operations of one patch copy, see `weigh`. */
  readonly copied: number;
  /** List items that the operations of one patch move: an insertion at the start of a list moves all of it. */
  readonly moved: number;
  /** Levels of a document. */
  readonly depth: number;
}

export const PATCH_BOUNDS: PatchBounds = {
  operations: 10_000,
  copied: 1_000_000,
  moved: 100_000_000,
  depth: MAX_DEPTH,
};
