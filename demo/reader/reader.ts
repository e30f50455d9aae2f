import type { Event, JsonPatchOperation, RunAgentInput } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { blockquote, clip, escapeInline, figure, many, table as markdownTable } from "../documents/markdown.js";
import { asksForHelp, asksForReport, HELP, NOTHING_YET } from "./help.js";
import { requestOf, type ThreadDocument } from "../documents/message.js";
import {
  type DocumentCache,
  indexOf,
  type LoadFile,
  MissingDocumentError,
  readDocument,
} from "../documents/prepare.js";
import { type Hit, queryTerms, searchIndex } from "../documents/search.js";
import { Slices, type Work } from "../documents/slices.js";
import { type Events, Session } from "./session.js";
import { type ColumnState, type DocumentState, setDocument, setIn, setProgress, shapeState } from "./state.js";
import { type Table } from "../documents/table.js";
import type { Paragraphs } from "../documents/text.js";
import { describeColumn } from "./statistics.js";
import { keyTerms } from "./terms.js";

export interface ReaderTools {
  readonly load: LoadFile;
  /** Ms between deltas of a few words; 0 streams as fast as it can. Default 12. */
  readonly pace?: number;
  /** Documents as they were read; default one for all runs of this worker. */
  readonly cache?: DocumentCache;
}

const shared: DocumentCache = new Map();
/** Documents that one question searches, the newest. */
const MAX_SEARCHED = 6;
const MAX_QUOTES = 4;
const SHOWN_COLUMNS = 30;
const SHOWN_CELLS = 10;

interface Means {
  readonly session: Session;
  readonly slices: Slices;
  readonly load: LoadFile;
  readonly cache: DocumentCache;
}

/**
 * The agent Reader: reads the documents of a thread and answers questions about them, without network and model.
 * Leaves RUN_STARTED and RUN_FINISHED to the runtime. Ends without an error when the signal aborts.
 */
export async function* reader(
  input: RunAgentInput,
  { signal }: { readonly signal: AbortSignal },
  { load, pace = 12, cache = shared }: ReaderTools,
): AsyncGenerator<Event> {
  const slices = new Slices(signal);
  const session = new Session(input.runId, slices, pace);
  try {
    const snapshot = shapeState(input.state);
    if (snapshot) yield { type: EventType.STATE_SNAPSHOT, snapshot };
    yield* respond(input, { session, slices, load, cache });
    yield session.patch(setProgress(null));
    yield* session.endAnswer();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function* respond(input: RunAgentInput, means: Means): Events {
  const { session } = means;
  const { documents, fresh, question } = await requestOf(input.messages);
  if (documents.length === 0 || (fresh.length === 0 && asksForHelp(question))) {
    yield* session.say(documents.length === 0 ? HELP + NOTHING_YET : HELP);
    return;
  }
  const isQuestion = question !== "" && !asksForReport(question) && !asksForHelp(question);
  // The answer first: who asks does not wait for the report on what was attached.
  if (isQuestion) yield* answer(question, fresh.length > 0 ? fresh : documents.slice(-MAX_SEARCHED), means);
  for (const document of isQuestion || fresh.length > 0 ? fresh : documents.slice(-1)) {
    if (isQuestion) yield* session.endAnswer();
    yield* orMissing(document, means, report(document, means));
  }
}

/** A document whose text is gone is told, and the others go on. */
async function* orMissing(document: ThreadDocument, { session }: Means, events: Events): Events {
  try {
    yield* events;
  } catch (error) {
    if (!(error instanceof MissingDocumentError)) throw error;
    yield* session.say(`I cannot read **${escapeInline(document.name)}**: ${escapeInline(error.message)}\n\n`);
  }
}

/** Does a phase's work as a step, shown in the state as the document's phase. */
function phase<T>({ id, name }: ThreadDocument, step: string, work: Work<T>, { session }: Means, known = true) {
  return session.step(step, work, (done): JsonPatchOperation[] => [
    setProgress({ documentId: id, name, phase: step, done }),
    ...(known ? [setIn(id, "phase", step)] : []),
  ]);
}

/** Reads a document, phase by phase, and reports it. */
async function* report(document: ThreadDocument, means: Means): Events {
  const { session } = means;
  const read = yield* phase(document, "Reading", readDocument(document, means), means, false);
  const { id, name, type: mimeType, size } = document;
  const base = { id, name, mimeType, size, phase: "Reading" };
  if (read.kind === "table") yield* reportTable(document, base, read.table, means);
  else yield* reportText(document, base, read, means);
  yield session.patch(setIn(id, "phase", "Done"), setProgress(null));
}

type Base = Omit<DocumentState, "kind" | "counts" | "outline" | "terms" | "columns">;
type ReadText = { readonly text: string; readonly paragraphs: Paragraphs };

async function* reportText(document: ThreadDocument, base: Base, { text, paragraphs }: ReadText, means: Means): Events {
  const { session, slices } = means;
  const { id, name } = document;
  const { passages, outline, lines } = paragraphs;
  const counts = [
    { name: "characters", value: text.length },
    { name: "lines", value: lines },
    { name: "paragraphs", value: passages.length },
  ];
  yield session.patch(setDocument({ ...base, kind: "text", counts, outline: [], terms: [] }));
  yield* session.say(
    `## ${escapeInline(name)}\n\nI read ${many(text.length, "character")} in ${many(lines, "line")} and ${many(passages.length, "paragraph")}.\n\n`,
  );
  yield* phase(document, "Outline", atOnce(), means);
  yield session.patch(setIn(id, "outline", outline.slice(0, 200)));
  if (outline.length > 0) yield* session.say(`### Outline\n\n${outlineList(outline)}\n`);
  const { terms, words } = yield* phase(document, "Key terms", keyTerms(passages, slices), means);
  yield session.patch(setIn(id, "terms", terms), setIn(id, "counts", [...counts, { name: "words", value: words }]));
  const list = terms.map(({ term, count }) => `**${escapeInline(term)}** (${figure(count)}×)`).join(", ");
  if (list !== "") yield* session.say(`### Key terms\n\n${list}\n\n`);
  const [first] = terms;
  const example = first ? `, for example: “What does it say about ${escapeInline(first.term)}?”` : ".";
  yield* session.say(`Ask me about it${example}\n`);
}

function outlineList(outline: Paragraphs["outline"]): string {
  const depth: number[] = [];
  const items = outline.slice(0, 200).map(({ title, level, line }) => {
    while ((depth.at(-1) ?? 0) >= level) depth.pop();
    depth.push(level);
    return `${"  ".repeat(depth.length - 1)}- ${escapeInline(title)} *(line ${line})*\n`;
  });
  return items.join("");
}

async function* reportTable(document: ThreadDocument, base: Base, table: Table, means: Means): Events {
  const { session, slices } = means;
  const counts = [
    { name: "rows", value: table.rows },
    { name: "columns", value: table.columns.length },
  ];
  yield session.patch(setDocument({ ...base, kind: "table", counts, columns: [] }));
  yield* session.say(
    `## ${escapeInline(document.name)}\n\nI read ${many(table.rows, "row")} with ${many(table.columns.length, "column")}.\n\n`,
  );
  const columns = yield* phase(document, "Columns", describe(), means);
  yield session.patch(setIn(document.id, "columns", columns));
  yield* session.say(columnsTable(columns.slice(0, SHOWN_COLUMNS)));
  yield* session.say("Ask me about it: I look for the words in its rows.\n");

  async function* describe(): Work<ColumnState[]> {
    const described: ColumnState[] = [];
    for (const column of table.columns) {
      described.push(describeColumn(column));
      yield described.length / table.columns.length;
      if (slices.due()) await slices.pause();
    }
    return described;
  }
}

function columnsTable(columns: readonly ColumnState[]): string {
  const rows = columns.map(({ name, type, count, unique, numbers, dates, top }) => {
    const values = numbers
      ? `${figure(numbers.min)} to ${figure(numbers.max)}, mean ${figure(numbers.mean)}`
      : dates
        ? `${dates.from} to ${dates.to}`
        : top
            .slice(0, 3)
            .map((it) => `${it.value} (${figure(it.count)}×)`)
            .join(", ");
    return [name, type, figure(count), figure(unique), values];
  });
  return markdownTable(["Column", "Type", "Values", "Different", "What"], rows, [false, false, true, true]);
}

/** Short work as a step. */
async function* atOnce(): Work<void> {
  yield 1;
}

interface Found {
  readonly document: ThreadDocument;
  readonly table: Table | undefined;
  readonly hits: readonly Hit[];
}

/** Searches the documents for the words of a question, and quotes what it found. */
async function* answer(question: string, given: readonly ThreadDocument[], means: Means): Events {
  const { session } = means;
  const named = given.filter(({ name }) => question.toLowerCase().includes(name.toLowerCase()));
  const documents = named.length > 0 ? named : given;
  const terms = queryTerms(question);
  if (terms.length === 0) {
    yield* session.say(
      "I search for words, and your question has none. Ask with a word that may be in the document.\n",
    );
    return;
  }
  const found: Found[] = [];
  for (const document of documents) yield* orMissing(document, means, search(document, question, terms, means, found));
  if (found.length === 0) return;
  const where = found.length === 1 ? `“${escapeInline(found[0]!.document.name)}”` : many(found.length, "document");
  const best = Math.max(...found.flatMap(({ hits }) => hits.map(({ score }) => score)));
  const absent = terms.filter((term) => !found.some(({ hits }) => hits.some(({ matched }) => matched.includes(term))));
  const missing = absent.map((term) => `“${escapeInline(term)}”`).join(", ");
  if (absent.length === terms.length) {
    yield* session.say(`I found nothing about ${missing} in ${where}. Try another word for it.\n`);
    return;
  }
  yield* session.think(
    `I ranked the passages by BM25: words that are rare in ${where} count more; beginnings and near spellings count less. I quote what has at least half of the best score.`,
  );
  yield* session.say(
    absent.length > 0
      ? `I did not find ${missing} anywhere in ${where}; this is closest to the rest:\n\n`
      : `This is what I found in ${where}:\n\n`,
  );
  for (const { document, table, hits } of found) {
    const kept = hits.filter(({ score }) => score >= best / 2);
    if (table && kept.length > 0) yield* session.say(rowsTable(table, kept));
    for (const { excerpt, passage, line } of table ? [] : kept) {
      const place = [...(found.length > 1 ? [document.name] : []), passage.section, `line ${line}`];
      yield* session.say(blockquote(excerpt, place.filter((part) => part !== "").join(", ")));
    }
  }
}

async function* search(
  document: ThreadDocument,
  question: string,
  terms: readonly string[],
  means: Means,
  found: Found[],
): Events {
  const { session, slices } = means;
  const args = { document: document.name, query: clip(question.replace(/\s+/g, " "), 300) };
  const read = yield* phase(document, "Reading", readDocument(document, means), means, false);
  const hits = yield* session.call("search_document", args, async function* () {
    const index = yield* phase(document, "Searching", indexOf(read, slices), means, false);
    const value = searchIndex(index, terms, MAX_QUOTES);
    const passages = value.map(({ excerpt, passage, line }) => ({ section: passage.section, line, text: excerpt }));
    return { value, result: { terms, passages } };
  });
  found.push({ document, table: read.kind === "table" ? read.table : undefined, hits });
}

/** Rows as a table, with their numbers; the first row of data is 1. */
function rowsTable({ columns }: Table, hits: readonly Hit[]): string {
  const shown = columns.slice(0, SHOWN_CELLS);
  return markdownTable(
    ["Row", ...shown.map(({ name }) => name)],
    hits.map(({ line }) => [figure(line), ...shown.map(({ cells }) => cells[line - 1] ?? "")]),
    [true],
  );
}
