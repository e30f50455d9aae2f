import type { JsonPatchOperation } from "@ag-ui/core";

/** The phases of a document, in their order. Texts: Reading, Outline, Key terms, Key sentences. Tables: Reading, Columns, Statistics. */
export type ReaderPhase =
  | "Reading"
  | "Outline"
  | "Key terms"
  | "Key sentences"
  | "Columns"
  | "Statistics"
  | "Indexing"
  | "Searching"
  | "Calculating";

export const TEXT_PHASES = [
  "Reading",
  "Outline",
  "Key terms",
  "Key sentences",
] as const satisfies readonly ReaderPhase[];
export const TABLE_PHASES = ["Reading", "Columns", "Statistics"] as const satisfies readonly ReaderPhase[];

/**
 * What Reader keeps in the thread's state. Plain JSON. Keys of `documents` are SHA-256 hex of the document's text;
 * everything named by a document's data stands in arrays of `{ name, … }`.
 */
export interface ReaderState {
  readonly documents: Readonly<Record<string, DocumentState>>;
  /** What the live run is doing; null between runs. A stopped run leaves its last value: show it only while a run is live. */
  readonly progress: ReaderProgress | null;
}

export interface ReaderProgress {
  readonly documentId: string;
  readonly name: string;
  readonly phase: ReaderPhase;
  /** 0 to 1 of this phase. */
  readonly done: number;
}

/** A figure for a label and a number, in the order to show them: characters, words, rows … */
export interface Count {
  readonly name: string;
  readonly value: number;
}

interface DocumentBase {
  readonly id: string;
  readonly name: string;
  readonly mimeType: string;
  /** Bytes as UTF-8, where the message named them; else characters. */
  readonly size: number;
  /** The phase it is in; "Done" when all are finished. */
  readonly phase: ReaderPhase | "Done";
  /** 0 to 1 over all phases of the document. */
  readonly done: number;
  readonly counts: readonly Count[];
}

export interface TextDocumentState extends DocumentBase {
  readonly kind: "text";
  /** How the outline was found; null until that phase is over. */
  readonly outlineFrom: OutlineSource | null;
  readonly outline: readonly OutlineEntry[];
  readonly terms: readonly Term[];
  readonly sentences: readonly KeySentence[];
}

export interface TableDocumentState extends DocumentBase {
  readonly kind: "table";
  readonly columns: readonly ColumnState[];
}

export type DocumentState = TextDocumentState | TableDocumentState;

export type OutlineSource = "headings" | "guessed titles" | "leading sentences";

export interface OutlineEntry {
  readonly title: string;
  /** 1 to 6. */
  readonly level: number;
  /** 1 is the first. */
  readonly line: number;
}

export interface Term {
  readonly term: string;
  readonly count: number;
  /** 0 to 1, 1 for the strongest. */
  readonly weight: number;
}

export interface KeySentence {
  readonly text: string;
  readonly line: number;
  /** The heading that it stands under; "" for none. */
  readonly section: string;
  /** 0 to 1, 1 for the strongest. */
  readonly score: number;
}

export interface Bin {
  readonly from: number;
  /** Exclusive, but for the last bin. */
  readonly to: number;
  readonly count: number;
}

export interface NumberStatistics {
  readonly min: number;
  readonly max: number;
  readonly sum: number;
  readonly mean: number;
  readonly median: number;
  /** Of a sample (n − 1); 0 for a single value. */
  readonly stddev: number;
  /** The sign that stood with every value, such as "€" or "%"; "" for none. */
  readonly unit: string;
  /** A histogram of equal widths. */
  readonly bins: readonly Bin[];
}

export interface ColumnState {
  readonly name: string;
  readonly type: "number" | "date" | "text" | "empty";
  /** Cells that hold a value. */
  readonly count: number;
  readonly missing: number;
  /** Cells with a value that is not of the column's type. */
  readonly odd: number;
  readonly unique: number;
  /** `unique` is where counting ended: there are more. */
  readonly uniqueAtLeast: boolean;
  /** For type "number", after the phase Statistics. */
  readonly numbers: NumberStatistics | null;
  /** For type "date": the first and last day, ISO 8601. */
  readonly dates: { readonly from: string; readonly to: string } | null;
  /** For type "text": the most frequent values. */
  readonly top: readonly { readonly value: string; readonly count: number }[];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The keys of `documents`: 64 hex digits, so no key is ever taken from data. */
const DOCUMENT_ID = /^[0-9a-f]{64}$/;

export const isDocumentId = (id: unknown): id is string => typeof id === "string" && DOCUMENT_ID.test(id);

const COMMON = {
  id: isDocumentId,
  name: isString,
  mimeType: isString,
  phase: isString,
  size: isNumber,
  done: isNumber,
};

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function isDocumentState(value: unknown): value is DocumentState {
  if (!isRecord(value) || !Array.isArray(value.counts)) return false;
  for (const [key, holds] of Object.entries(COMMON)) if (!holds(value[key])) return false;
  if (value.kind === "table") return Array.isArray(value.columns);
  return (
    value.kind === "text" &&
    Array.isArray(value.outline) &&
    Array.isArray(value.terms) &&
    Array.isArray(value.sentences) &&
    (value.outlineFrom === null || isString(value.outlineFrom))
  );
}

function isProgress(value: unknown): value is ReaderProgress {
  return (
    isRecord(value) &&
    isDocumentId(value.documentId) &&
    isString(value.name) &&
    isString(value.phase) &&
    isNumber(value.done)
  );
}

/** What of any state is Reader's. For the UI: safe with a state of another agent, or with none. */
export function readerStateOf(state: unknown): ReaderState {
  const documents: Record<string, DocumentState> = {};
  if (isRecord(state) && isRecord(state.documents)) {
    for (const [id, document] of Object.entries(state.documents)) {
      if (isDocumentId(id) && isDocumentState(document) && document.id === id) documents[id] = document;
    }
  }
  return { documents, progress: isRecord(state) && isProgress(state.progress) ? state.progress : null };
}

/** Whether patches of Reader apply to a state as it is. */
export function isReaderState(state: unknown): boolean {
  if (!isRecord(state) || !isRecord(state.documents)) return false;
  if (state.progress !== null && !isProgress(state.progress)) return false;
  return Object.entries(state.documents).every(([id, document]) => isDocumentId(id) && isDocumentState(document));
}

/** A state that patches apply to: foreign members of an object are kept, everything else gives way. */
export function shapeState(state: unknown): Record<string, unknown> {
  return { ...(isRecord(state) ? state : {}), ...readerStateOf(state) };
}

/** Sets a member of a document. */
export function setIn(id: string, key: string, value: unknown): JsonPatchOperation {
  return { op: "add", path: `/documents/${id}/${key}`, value };
}

/** Puts a value in the place of an item of a document's list. */
export function replaceIn(id: string, list: string, index: number, value: unknown): JsonPatchOperation {
  return { op: "replace", path: `/documents/${id}/${list}/${index}`, value };
}

export function setDocument(document: DocumentState): JsonPatchOperation {
  return { op: "add", path: `/documents/${document.id}`, value: document };
}

export function setProgress(progress: ReaderProgress | null): JsonPatchOperation {
  return { op: "add", path: "/progress", value: progress };
}
