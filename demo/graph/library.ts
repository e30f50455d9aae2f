import type { ReadText } from "../reader/prepare.js";
import { type DocumentCache, indexDocument, type LoadFile, readDocument } from "../reader/prepare.js";
import { excerptOf } from "../reader/excerpt.js";
import type { ThreadDocument } from "../reader/message.js";
import { searchIndex } from "../reader/search.js";
import { finish, type Slices } from "../reader/slices.js";
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
  const read = await finish(readDocument(document, means));
  if (read.kind === "table") return [];
  await finish(indexDocument(read, means.slices));
  const { hits } = await searchIndex(indexOf(read), terms, means.slices);
  return hits.slice(0, PER_DOCUMENT).flatMap((hit) => {
    const passage = read.searchable?.passages[hit.unit];
    if (!passage) return [];
    const { text, section, firstLine } = excerptOf(read, passage, hit);
    return [{ document: document.name, section, line: firstLine, text, matched: [...hit.matched], score: hit.score }];
  });
}

function indexOf(read: ReadText) {
  if (!read.searchable) throw new Error("The document has no index.");
  return read.searchable.index;
}
