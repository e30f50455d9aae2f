import type { Means } from "./analyse.js";
import { answerTable } from "./answer-table.js";
import { type Excerpt, excerptOf } from "./excerpt.js";
import { blockquote, clip, escapeInline, figure, many } from "./markdown.js";
import type { ThreadDocument } from "./message.js";
import { indexDocument, type ReadTable, rowText } from "./prepare.js";
import { type Hit, queryTerms, searchIndex, weightOf } from "./search.js";
import { type Readable, rowsTable } from "./readable.js";
import type { Events } from "./session.js";
import { setProgress } from "./state.js";

/** Documents that one question searches at most, the newest. */
export const MAX_SEARCHED = 6;
const MAX_QUOTES = 4;
/** Rows or excerpts in the result of a tool call. */
const MAX_PASSAGES = 6;

/** Answers a question from the thread's documents: calculates where it is a clear question to a table, searches otherwise. */
export async function* answer(question: string, documents: readonly Readable[], means: Means): Events {
  const { session } = means;
  const chosen = narrow(question, documents);
  if (chosen.length < documents.length) {
    yield* session.think(`The question is put to ${chosen.map(({ document }) => document.name).join(", ")}. `);
  }
  if (yield* answerTable(question, chosen, means)) return;

  const terms = queryTerms(question);
  if (terms.length === 0) {
    yield* session.think("There is no word in the question to search for: stop words only.");
    yield* session.endThinking();
    yield* session.say(
      "I search for words, and your question has none that I could search for. Ask with a word that may be in the document.\n",
    );
    return;
  }
  yield* session.think(`I search for ${terms.map((term) => `“${term}”`).join(", ")} and leave stop words out. `);
  const passages: Ranked[] = [];
  const absent = new Set(terms);
  for (const one of chosen) {
    const found = yield* search(one, question, terms, means);
    passages.push(...found.passages);
    for (const term of found.present) absent.delete(term);
  }
  passages.sort((a, b) => b.share - a.share || b.score - a.score);
  yield* say(passages, [...absent], chosen, means);
}

/** The documents that a question names, or all. */
function narrow(question: string, documents: readonly Readable[]): readonly Readable[] {
  const small = question.toLowerCase();
  const named = documents.filter(({ document }) => {
    const name = document.name.toLowerCase();
    const stem = name.replace(/\.[^.]+$/, "");
    return small.includes(name) || (/[^a-z]/.test(stem) && stem.length > 4 && small.includes(stem));
  });
  return (named.length > 0 ? named : documents).slice(-MAX_SEARCHED);
}

interface Ranked {
  readonly document: ThreadDocument;
  readonly score: number;
  /** Of the words of the question, how many it holds: 0 to 1. */
  readonly share: number;
  readonly excerpt: Excerpt | undefined;
  /** For tables: the row, counted from 0. */
  readonly row: number | undefined;
  readonly table: ReadTable | undefined;
}

async function* search(
  { document, read }: Readable,
  question: string,
  asked: readonly string[],
  { session, slices }: Means,
): Events<{ passages: Ranked[]; present: string[] }> {
  const progress = (phase: "Indexing" | "Searching") => (done: number) => [
    setProgress({ documentId: document.id, name: document.name, phase, done }),
  ];
  // A column's name stands in the question to say where to look, not what for.
  const names = new Set(read.kind === "table" ? read.table.columns.flatMap(({ name }) => queryTerms(name)) : []);
  const values = asked.filter((term) => !names.has(term));
  const terms = values.length > 0 ? values : asked;
  if (!read.searchable) yield* session.step("Indexing", indexDocument(read, slices), progress("Indexing"));
  const args = { document: document.name, query: clip(question.replace(/\s+/g, " "), 300) };
  const { found, passages } = yield* session.call("Searching", "search_document", args, async () => {
    if (!read.searchable) throw new Error("The document was not indexed");
    const searched = await searchIndex(read.searchable.index, terms, slices);
    const ranked: Ranked[] = [];
    for (const hit of searched.hits.slice(0, MAX_PASSAGES)) {
      const share = hit.matched.size / terms.length;
      const common = { document, score: hit.score, share };
      if (read.kind === "text") {
        const passage = "passages" in read.searchable ? read.searchable.passages[hit.unit] : undefined;
        if (passage)
          ranked.push({ ...common, excerpt: excerptOf(read, passage, hit), row: undefined, table: undefined });
      } else if ("rowsPerUnit" in read.searchable) {
        const row = bestRow(read, hit.unit, read.searchable.rowsPerUnit, hit.words);
        ranked.push({ ...common, excerpt: undefined, row, table: read });
      }
      if (slices.due()) await slices.pause();
    }
    return {
      value: { found: searched, passages: ranked },
      result: resultOf(document, terms, searched.hits.length, ranked),
    };
  });
  yield* session.think(
    `In ${document.name}, ${many(found.hits.length, "passage")}${found.hits.length === 50 ? " or more" : ""} by BM25 over ${many(read.searchable?.index.documentCount ?? 0, "passage")}, words with the same beginning included. ` +
      found.near
        .map(
          ({ term, words }) =>
            `“${term}” is not in it; I took ${words.map((word) => `“${word}”`).join(", ")} for near spellings. `,
        )
        .join(""),
  );
  return { passages, present: asked.filter((term) => !found.absent.includes(term)) };
}

function resultOf(
  document: ThreadDocument,
  terms: readonly string[],
  found: number,
  ranked: readonly Ranked[],
): object {
  return {
    document: document.name,
    terms,
    found,
    passages: ranked.map(({ score, excerpt, row, table }, i) => ({
      rank: i + 1,
      score: Number(score.toFixed(3)),
      ...(excerpt
        ? { section: excerpt.section, lines: [excerpt.firstLine, excerpt.lastLine], text: excerpt.text }
        : {}),
      ...(row !== undefined && table
        ? { row: row + 1, text: clip(rowText(table.table, row).toWellFormed(), 600) }
        : {}),
    })),
  };
}

/** Of the rows that one unit joins, the one with the best of the words. */
function bestRow(read: ReadTable, unit: number, rowsPerUnit: number, words: Hit["words"]): number {
  let best = unit * rowsPerUnit;
  let most = -1;
  for (let row = best; row < Math.min(read.table.rows, (unit + 1) * rowsPerUnit); row++) {
    const weight = weightOf(rowText(read.table, row), words);
    if (weight > most) [best, most] = [row, weight];
  }
  return best;
}

async function* say(
  passages: readonly Ranked[],
  absent: readonly string[],
  searched: readonly Readable[],
  { session }: Means,
): Events {
  const where =
    searched.length === 1 ? `“${escapeInline(searched[0]?.document.name ?? "")}”` : many(searched.length, "document");
  const missing = absent.map((term) => `“${escapeInline(term)}”`).join(", ");
  const best = passages[0];
  if (!best) {
    yield* session.think("No passage holds any of these words, or a near spelling of one.");
    yield* session.endThinking();
    yield* session.say(
      `I found nothing about ${missing} in ${where}. Try another word for it, or one that stands in the document.\n`,
    );
    return;
  }
  const kept = passages
    .filter(({ score, share }) => score >= best.score * 0.45 && share >= best.share * 0.6)
    .slice(0, MAX_QUOTES + 4);
  yield* session.think(
    `I quote those with at least 45 % of the best score (${figure(Number(best.score.toFixed(2)))}) and most of the words: ${figure(kept.length)} of ${figure(passages.length)}.`,
  );
  yield* session.endThinking();
  const quotes = kept.filter(({ excerpt }) => excerpt).slice(0, MAX_QUOTES);
  const rows = kept.filter(({ row }) => row !== undefined);
  if (absent.length > 0)
    yield* session.say(`I did not find ${missing} anywhere in ${where}; this is what stands closest to the rest:\n\n`);
  else if (quotes.length > 0) yield* session.say(`This is what I found in ${where}:\n\n`);
  else yield* session.say(`These rows of ${where} fit best:\n\n`);
  for (const { document, excerpt } of quotes) {
    if (!excerpt) continue;
    const file = searched.length > 1 ? `${document.name}, ` : "";
    yield* session.say(blockquote(excerpt.text, file + placeOf(excerpt)));
  }
  for (const { document, read } of searched) {
    const own = rows.filter((row) => row.document === document);
    if (own.length === 0 || read.kind !== "table") continue;
    if (searched.length > 1) yield* session.say(`In ${escapeInline(document.name)}:\n\n`);
    yield* session.say(
      rowsTable(
        read,
        own.flatMap(({ row }) => (row === undefined ? [] : [row])),
      ),
    );
  }
}

function placeOf({ section, firstLine, lastLine }: Excerpt): string {
  const lines = firstLine === lastLine ? `line ${firstLine}` : `lines ${firstLine}–${lastLine}`;
  return section === "" ? lines : `${clip(section, 100)}, ${lines}`;
}
