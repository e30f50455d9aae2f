import type { ThreadDocument } from "./message.js";
import { buildIndex, type SearchIndex } from "./search.js";
import { finish, type Slices, type Work } from "./slices.js";
import { parseTable, type Table } from "./table.js";
import { paragraphs, type Paragraphs, type Passage } from "./text.js";

/** Gives a file's text by its id; rejects where it is gone. */
export type LoadFile = (id: string) => Promise<{ readonly text: string }>;

/** The text of a document is not to be had. The message says what to do. */
export class MissingDocumentError extends Error {
  override readonly name = "MissingDocumentError";
}

export type ReadDocument = { readonly passages: readonly Passage[]; index?: SearchIndex } & (
  | { readonly kind: "text"; readonly text: string; readonly paragraphs: Paragraphs }
  | { readonly kind: "table"; readonly table: Table }
);

/** Documents as they were read, for the life of the worker: the last few. */
export type DocumentCache = Map<string, ReadDocument>;

const MAX_CACHED = 4;

/** Loads and reads a document, or takes it from the cache. */
export async function* readDocument(
  document: ThreadDocument,
  { load, cache, slices }: { load: LoadFile; cache: DocumentCache; slices: Slices },
): Work<ReadDocument> {
  const cached = cache.get(document.id);
  if (cached) return cached;
  const text = document.text ?? (await loadText(document.id, load));
  slices.signal.throwIfAborted();
  yield 0.05;
  const read = yield* parse(text, document.type, slices);
  cache.set(document.id, read);
  for (const oldest of cache.keys()) if (cache.size > MAX_CACHED) cache.delete(oldest);
  return read;
}

async function loadText(id: string, load: LoadFile): Promise<string> {
  try {
    return (await load(id)).text;
  } catch (cause) {
    throw new MissingDocumentError(cause instanceof Error ? cause.message : "The file could not be loaded.", { cause });
  }
}

async function* parse(text: string, type: string, slices: Slices): Work<ReadDocument> {
  if (type === "text/csv" || type === "text/tab-separated-values") {
    const table = parseTable(text, type);
    const passages = Array.from({ length: table.rows }, (_, row) => ({
      text: table.columns.map(({ cells }) => (cells[row] ?? "").slice(0, 500)).join(" "),
      section: "",
      line: row + 1,
    }));
    return { kind: "table", table, passages };
  }
  const read = yield* paragraphs(text, type === "text/markdown", slices);
  return { kind: "text", text, paragraphs: read, passages: read.passages };
}

/** Makes a document searchable, once. */
export async function* indexOf(read: ReadDocument, slices: Slices): Work<SearchIndex> {
  read.index ??= yield* buildIndex(read.passages, slices);
  return read.index;
}

/** A document's index, where nobody looks on. */
export async function indexedDocument(
  document: ThreadDocument,
  means: { load: LoadFile; cache: DocumentCache; slices: Slices },
): Promise<{ read: ReadDocument; index: SearchIndex }> {
  const read = await finish(readDocument(document, means));
  return { read, index: await finish(indexOf(read, means.slices)) };
}
