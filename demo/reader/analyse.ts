import type { JsonPatchOperation } from "@ag-ui/core";
import type { ThreadDocument } from "./message.js";
import { escapeInline } from "./markdown.js";
import {
  type DocumentCache,
  type LoadFile,
  type ReadDocument,
  readDocument,
  type ReadTable,
  type ReadText,
  typedTable,
} from "./prepare.js";
import type { Events, Session } from "./session.js";
import type { Slices, Work } from "./slices.js";
import {
  type Count,
  type DocumentState,
  type ReaderPhase,
  replaceIn,
  setDocument,
  setIn,
  setProgress,
  TABLE_PHASES,
  type TableDocumentState,
  TEXT_PHASES,
  type TextDocumentState,
} from "./state.js";
import * as report from "./report.js";
import { columnState, describeColumn } from "./table/statistics.js";
import { outlineOf } from "./text/outline.js";
import { findSentences } from "./text/sentences.js";
import { findTerms } from "./text/terms.js";

export interface Means {
  readonly session: Session;
  readonly slices: Slices;
  readonly load: LoadFile;
  readonly cache: DocumentCache;
}

/** Reads a document, phase by phase, and reports it. Returns it for questions that follow at once. */
export async function* analyse(document: ThreadDocument, means: Means): Events<ReadDocument> {
  const { session } = means;
  const { id, name } = document;
  const read = yield* session.step("Reading", readDocument(document, means), (done) => [
    setProgress({ documentId: id, name, phase: "Reading", done }),
  ]);
  yield* read.kind === "text" ? analyseText(document, read, means) : analyseTable(document, read, means);
  yield session.patch(setIn(id, "phase", "Done"), setIn(id, "done", 1), setProgress(null));
  return read;
}

const baseOf = (document: ThreadDocument, counts: readonly Count[]) => ({
  id: document.id,
  name: document.name,
  mimeType: document.type,
  size: document.size,
  phase: "Reading" as const,
  counts,
});

/** A phase as a step, with its share of the document's progress. */
function phase<T>(
  document: ThreadDocument,
  name: ReaderPhase,
  phases: readonly ReaderPhase[],
  work: Work<T>,
  session: Session,
  results: () => JsonPatchOperation[] = () => [],
): Events<T> {
  const before = phases.indexOf(name);
  return session.step(name, work, (done) => [
    setIn(document.id, "phase", name),
    setIn(document.id, "done", Number(((before + done) / phases.length).toFixed(3))),
    setProgress({ documentId: document.id, name: document.name, phase: name, done }),
    ...results(),
  ]);
}

async function* analyseText(document: ThreadDocument, read: ReadText, { session, slices }: Means): Events {
  const { id } = document;
  const text = read.document;
  const paragraphs = text.blocks.filter((block) => block.kind !== "code").length;
  const counts: Count[] = [
    { name: "characters", value: text.text.length },
    { name: "lines", value: text.lines },
    { name: "paragraphs", value: paragraphs },
  ];
  const initial: TextDocumentState = {
    ...baseOf(document, counts),
    kind: "text",
    done: 1 / TEXT_PHASES.length,
    outlineFrom: null,
    outline: [],
    terms: [],
    sentences: [],
  };
  yield session.patch(setDocument(initial satisfies DocumentState));
  yield* session.think(report.whyText(text));
  yield* session.say(report.textTitle(document.name, counts));

  const outline = yield* phase(
    document,
    "Outline",
    TEXT_PHASES,
    once(() => outlineOf(text)),
    session,
  );
  yield session.patch(setIn(id, "outline", outline.entries), setIn(id, "outlineFrom", outline.from));
  yield* session.think(report.whyOutline(outline));
  yield* session.say(report.outline(outline));

  const vocabulary = yield* phase(document, "Key terms", TEXT_PHASES, findTerms(text, slices), session);
  yield session.patch(
    setIn(id, "terms", vocabulary.terms),
    setIn(id, "counts", [...counts, { name: "words", value: vocabulary.words }]),
  );
  yield* session.think(report.whyTerms(vocabulary));
  yield* session.say(report.terms(vocabulary));

  const sentences = yield* phase(
    document,
    "Key sentences",
    TEXT_PHASES,
    findSentences(text, vocabulary, slices),
    session,
  );
  yield session.patch(setIn(id, "sentences", sentences.central));
  yield* session.think(report.whySentences(sentences));
  yield* session.endThinking();
  yield* session.say(report.sentences(sentences));
  yield* session.say(report.textEnd(vocabulary));
}

async function* analyseTable(document: ThreadDocument, read: ReadTable, { session, slices }: Means): Events {
  const { id } = document;
  const counts: Count[] = [
    { name: "rows", value: read.table.rows },
    { name: "columns", value: read.table.columns.length + read.table.omitted },
  ];
  const initial: TableDocumentState = {
    ...baseOf(document, counts),
    kind: "table",
    done: 1 / TABLE_PHASES.length,
    columns: [],
  };
  yield session.patch(setDocument(initial satisfies DocumentState));
  yield* session.think(report.whyTable(read.table));
  yield* session.say(report.tableTitle(document.name, read.table));
  if (read.table.rows === 0) {
    yield* session.endThinking();
    yield* session.say(
      `There are no rows under the names of the columns: ${read.table.columns.map(({ name }) => escapeInline(name)).join(", ")}.\n\n`,
    );
    return;
  }

  const table = yield* phase(document, "Columns", TABLE_PHASES, typedTable(read, slices), session);
  const states = table.columns.map(columnState);
  yield session.patch(setIn(id, "columns", [...states]));
  yield* session.think(report.whyColumns(table));

  const described: JsonPatchOperation[] = [];
  yield* phase(document, "Statistics", TABLE_PHASES, statistics(), session, () => described.splice(0));
  yield* session.think(report.whyStatistics(states));
  yield* session.endThinking();
  yield* session.say(report.columns(table, states));
  yield* session.say(report.tableEnd(states));

  async function* statistics(): Work<void> {
    for (const [i, column] of table.columns.entries()) {
      const work = describeColumn(table, column, slices);
      for (;;) {
        const next = await work.next();
        if (next.done) {
          states[i] = next.value;
          described.push(replaceIn(id, "columns", i, next.value));
          break;
        }
        yield (i + next.value) / table.columns.length;
      }
    }
  }
}

/** Short work as a step. */
async function* once<T>(work: () => T): Work<T> {
  yield 0;
  return work();
}
