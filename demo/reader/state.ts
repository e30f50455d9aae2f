import type { JsonPatchOperation } from "@ag-ui/core";
import { z } from "zod/v4";
import { isFileId } from "../documents/files.js";

/** The phases of a document, in their order. After them, Searching for an answer. */
export const TEXT_PHASES = ["Reading", "Outline", "Key terms"] as const;
export const TABLE_PHASES = ["Reading", "Columns"] as const;

/** No key of `documents` is ever taken from data. */
const DocumentId = z.string().refine(isFileId);

const document = {
  id: DocumentId,
  name: z.string(),
  mimeType: z.string(),
  /** Bytes as UTF-8, where the message named them; else characters. */
  size: z.number(),
  /** The phase it is in; "Done" when all are finished. */
  phase: z.string(),
  /** Figures for a label and a number, in the order to show them: characters, words, rows … */
  counts: z.array(z.object({ name: z.string(), value: z.number() })),
};

const OutlineEntry = z.object({ title: z.string(), /** 1 to 6. */ level: z.number(), line: z.number() });
const Term = z.object({ term: z.string(), count: z.number() });
const Bin = z.object({ from: z.number(), /** Exclusive, but for the last bin. */ to: z.number(), count: z.number() });

const NumberStatistics = z.object({
  min: z.number(),
  max: z.number(),
  sum: z.number(),
  mean: z.number(),
  median: z.number(),
  /** A histogram of equal widths. */
  bins: z.array(Bin),
});

const ColumnState = z.object({
  name: z.string(),
  type: z.enum(["number", "date", "text", "empty"]),
  /** Cells that hold a value. */
  count: z.number(),
  missing: z.number(),
  unique: z.number(),
  numbers: NumberStatistics.nullable(),
  /** The first and last day, ISO 8601. */
  dates: z.object({ from: z.string(), to: z.string() }).nullable(),
  /** For type "text": the most frequent values. */
  top: z.array(z.object({ value: z.string(), count: z.number() })),
});

const TextDocument = z.object({
  ...document,
  kind: z.literal("text"),
  outline: z.array(OutlineEntry),
  terms: z.array(Term),
});
const TableDocument = z.object({ ...document, kind: z.literal("table"), columns: z.array(ColumnState) });
const DocumentState = z.discriminatedUnion("kind", [TextDocument, TableDocument]);

const Progress = z.object({
  documentId: DocumentId,
  name: z.string(),
  phase: z.string(),
  /** 0 to 1 of this phase. */
  done: z.number(),
});

export type OutlineEntry = z.infer<typeof OutlineEntry>;
export type Term = z.infer<typeof Term>;
export type Bin = z.infer<typeof Bin>;
export type NumberStatistics = z.infer<typeof NumberStatistics>;
export type ColumnState = z.infer<typeof ColumnState>;
export type TextDocumentState = z.infer<typeof TextDocument>;
export type TableDocumentState = z.infer<typeof TableDocument>;
export type DocumentState = z.infer<typeof DocumentState>;
export type ReaderProgress = z.infer<typeof Progress>;

/** What Reader keeps in the thread's state. */
export interface ReaderState {
  readonly documents: Readonly<Record<string, DocumentState>>;
  /** What the live run is doing; null between runs. A stopped run leaves its last value: show it only while a run is live. */
  readonly progress: ReaderProgress | null;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Checked once for each object: the page asks for every frame. */
const checked = new WeakMap<object, boolean>();

function isDocument(id: string, value: unknown): value is DocumentState {
  if (!isRecord(value) || value["id"] !== id) return false;
  const known = checked.get(value) ?? DocumentState.safeParse(value).success;
  checked.set(value, known);
  return known;
}

/** What of any state is Reader's. For the UI: safe with a state of another agent, or with none. */
export function readerStateOf(state: unknown): ReaderState {
  const { documents, progress } = isRecord(state) ? state : {};
  const entries = Object.entries(isRecord(documents) ? documents : {});
  return {
    documents: Object.fromEntries(
      entries.filter((entry): entry is [string, DocumentState] => isDocument(entry[0], entry[1])),
    ),
    progress: Progress.safeParse(progress).data ?? null,
  };
}

/** A state that patches apply to: foreign members of an object are kept, everything else gives way. undefined: it is one. */
export function shapeState(state: unknown): Record<string, unknown> | undefined {
  const shaped = { ...(isRecord(state) ? state : {}), ...readerStateOf(state) };
  return JSON.stringify(shaped) === JSON.stringify(state) ? undefined : shaped;
}

/** Sets a member of a document. */
export const setIn = (id: string, key: string, value: unknown): JsonPatchOperation => ({
  op: "add",
  path: `/documents/${id}/${key}`,
  value,
});

export const setDocument = (value: DocumentState): JsonPatchOperation => ({
  op: "add",
  path: `/documents/${value.id}`,
  value,
});

export const setProgress = (value: ReaderProgress | null): JsonPatchOperation => ({
  op: "add",
  path: "/progress",
  value,
});
