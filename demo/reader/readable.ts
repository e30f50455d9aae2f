import type { Means } from "./analyse.js";
import { figure, table as markdownTable } from "./markdown.js";
import type { ThreadDocument } from "./message.js";
import { type ReadDocument, readDocument, type ReadTable, typedTable } from "./prepare.js";
import type { Events } from "./session.js";
import type { Work } from "./slices.js";
import { setProgress } from "./state.js";

export interface Readable {
  readonly document: ThreadDocument;
  readonly read: ReadDocument;
}

const SHOWN_COLUMNS = 10;

/** Rows as a table, with their numbers; the first row of data is 1. */
export function rowsTable(read: ReadTable, rows: readonly number[]): string {
  const columns = read.table.columns.slice(0, SHOWN_COLUMNS);
  return markdownTable(
    ["Row", ...columns.map(({ name }) => name)],
    rows.map((row) => [figure(row + 1), ...columns.map(({ cells }) => cells[row] ?? "")]),
    [true],
  );
}

/** Reads a document for a question, from the cache where it is there. */
export async function* readForQuestion(document: ThreadDocument, means: Means): Events<ReadDocument> {
  const { id: documentId, name } = document;
  return yield* means.session.step("Reading", both(document, means), (done) => [
    setProgress({ documentId, name, phase: "Reading", done }),
  ]);
}

async function* both(document: ThreadDocument, means: Means): Work<ReadDocument> {
  const read = yield* readDocument(document, means);
  if (read.kind === "table") yield* typedTable(read, means.slices);
  return read;
}
