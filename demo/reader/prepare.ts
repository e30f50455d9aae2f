import { RecentlyUsed } from "./cache.js";
import { MAX_FILE_BYTES } from "./intake.js";
import type { ThreadDocument } from "./message.js";
import { buildIndex, type Corpus, type SearchIndex } from "./search.js";
import type { Slices, Work } from "./slices.js";
import { type Table, parseTable, tableOfJson } from "./table/parse.js";
import { type TypedTable, typeColumns } from "./table/columns.js";
import { readBlocks, type TextDocument, unifyLineEnds } from "./text/blocks.js";
import { type Passage, passagesOf } from "./text/passages.js";

/** Gives a file's text by its id; rejects where it is gone. */
export type LoadFile = (id: string) => Promise<string | { readonly text: string }>;

/** The text of a document is not to be had. The message says what to do. */
export class MissingDocumentError extends Error {
  override readonly name = "MissingDocumentError";
}

export interface ReadText {
  readonly kind: "text";
  readonly document: TextDocument;
  readonly markdown: boolean;
  searchable?: { readonly passages: readonly Passage[]; readonly index: SearchIndex };
}

export interface ReadTable {
  readonly kind: "table";
  readonly table: Table;
  typed?: TypedTable;
  searchable?: { readonly rowsPerUnit: number; readonly index: SearchIndex };
}

export type ReadDocument = ReadText | ReadTable;

/** Documents as they were read, for the life of the worker. */
export type DocumentCache = RecentlyUsed<ReadDocument>;

export const createCache = (): DocumentCache => new RecentlyUsed<ReadDocument>(6, MAX_FILE_BYTES * 1.5);

/** Loads and reads a document, or takes it from the cache. */
export async function* readDocument(
  document: ThreadDocument,
  { load, cache, slices }: { load: LoadFile; cache: DocumentCache; slices: Slices },
): Work<ReadDocument> {
  const key = `${document.type} ${document.id}`;
  const cached = cache.get(key);
  if (cached) return cached;
  const raw = document.text ?? (await loadText(document.id, load));
  slices.signal.throwIfAborted();
  yield 0.05;
  const text = yield* unifyLineEnds(raw, slices);
  const read = yield* parse(text, document.type, slices);
  cache.set(key, read, text.length);
  return read;
}

async function loadText(id: string, load: LoadFile): Promise<string> {
  let loaded: Awaited<ReturnType<LoadFile>>;
  try {
    loaded = await load(id);
  } catch (cause) {
    throw new MissingDocumentError(cause instanceof Error ? cause.message : "The file could not be loaded.", { cause });
  }
  return typeof loaded === "string" ? loaded : loaded.text;
}

async function* parse(text: string, type: string, slices: Slices): Work<ReadDocument> {
  if (type === "text/csv" || type === "text/tab-separated-values") {
    return { kind: "table", table: yield* parseTable(text, type, slices) };
  }
  const json = type === "application/json" ? tableOfJson(text) : undefined;
  if (json) return { kind: "table", table: json };
  const markdown = type === "text/markdown";
  const document = yield* readBlocks(text, markdown, slices);
  return { kind: "text", document, markdown: document.headingsFrom === "headings" };
}

export async function* typedTable(read: ReadTable, slices: Slices): Work<TypedTable> {
  read.typed ??= yield* typeColumns(read.table, slices);
  return read.typed;
}

const MAX_UNITS = 12_000;

/** Makes a document searchable, once. */
export async function* indexDocument(read: ReadDocument, slices: Slices): Work<void> {
  if (read.searchable) return;
  if (read.kind === "text") {
    const { document } = read;
    const passages = yield* passagesOf(document, slices);
    const corpus: Corpus = {
      size: passages.length,
      textOf: (unit) => document.text.slice(passages[unit]?.start, passages[unit]?.end ?? 0),
      titleOf: (unit) => document.headings[passages[unit]?.section ?? -1]?.title ?? "",
    };
    read.searchable = { passages, index: yield* buildIndex(corpus, slices) };
    return;
  }
  const { table } = read;
  const rowsPerUnit = Math.max(1, Math.ceil(table.rows / MAX_UNITS));
  const corpus: Corpus = {
    size: Math.ceil(table.rows / rowsPerUnit),
    textOf: (unit) => {
      const rows: string[] = [];
      for (let row = unit * rowsPerUnit; row < Math.min(table.rows, (unit + 1) * rowsPerUnit); row++)
        rows.push(rowText(table, row));
      return rows.join("\n");
    },
    titleOf: () => "",
  };
  read.searchable = { rowsPerUnit, index: yield* buildIndex(corpus, slices) };
}

/** A row's cells; a very long cell by its beginning. */
export function rowText(table: Pick<Table, "columns">, row: number): string {
  return table.columns.map((column) => (column.cells[row] ?? "").slice(0, 2_000)).join(" ");
}
