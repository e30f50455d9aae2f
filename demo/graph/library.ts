import type { ThreadDocument } from "../documents/message.js";
import { type DocumentCache, indexedDocument, type LoadFile } from "../documents/prepare.js";
import { searchIndex } from "../documents/search.js";
import type { Slices } from "../documents/slices.js";
import type { Finding } from "./state.js";

export interface LibraryMeans {
  readonly load: LoadFile;
  readonly cache: DocumentCache;
  readonly slices: Slices;
}

/** Passages that one document gives at most. */
const PER_DOCUMENT = 4;

/** What a text says that has these words in it, best first. */
export async function search(
  document: ThreadDocument,
  terms: readonly string[],
  means: LibraryMeans,
): Promise<Finding[]> {
  const { read, index } = await indexedDocument(document, means);
  if (read.kind === "table") return [];
  return searchIndex(index, terms, PER_DOCUMENT).map(({ passage, excerpt, line, matched, score }) => ({
    document: document.name,
    section: passage.section,
    line,
    text: excerpt,
    matched,
    score,
  }));
}
