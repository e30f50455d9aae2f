import Papa from "papaparse";
import type { Slices, Work } from "../slices.js";
import { looksTyped } from "./values.js";

/** A table by columns. Every column has `rows` cells; what a short row lacks is "". */
export interface Table {
  readonly columns: readonly Column[];
  readonly rows: number;
  /** Rows with more or fewer cells than there are columns. */
  readonly ragged: number;
  readonly delimiter: string;
  /** The first row held the names. */
  readonly header: boolean;
  /** Columns beyond the limit, left out. */
  readonly omitted: number;
}

export interface Column {
  readonly name: string;
  readonly cells: readonly string[];
}

export const MAX_COLUMNS = 100;
const WINDOW = 32 * 1024;
/** A record longer than this is taken for a quote that was never closed. */
const MAX_RECORD = 512 * 1024;
/** Each column keeps one copy of this many different values. */
const MAX_SHARED = 20_000;

/** Reads CSV with unified line ends, a window at a time, so that no step is long. */
export async function* parseTable(text: string, type: string, slices: Slices): Work<Table> {
  const delimiter = type === "text/tab-separated-values" ? "\t" : guessDelimiter(text);
  const builder = new TableBuilder(delimiter);
  for (const [rows, done] of windows(text, delimiter)) {
    for (const row of rows) builder.add(row);
    if (slices.due()) {
      yield done;
      await slices.pause();
    }
  }
  return builder.build();
}

function guessDelimiter(text: string): string {
  const sample = text.slice(0, 64 * 1024);
  const guess = Papa.parse(sample, { preview: 20, newline: "\n", delimitersToGuess: [",", ";", "\t", "|"] });
  return guess.meta.delimiter || ",";
}

function* windows(text: string, delimiter: string): Generator<[rows: string[][], done: number]> {
  let quoteChar = '"';
  let unclosed = 0;
  for (let from = 0, size = WINDOW; from < text.length;) {
    const last = from + size >= text.length;
    const parsed = parseWindow(text.slice(from, from + size), delimiter, quoteChar, !last && size < MAX_RECORD);
    if (parsed.used > 0 || last) {
      from = last ? text.length : from + parsed.used;
      size = WINDOW;
      yield [parsed.rows, from / text.length];
    } else if (size < MAX_RECORD) {
      size *= 2;
    } else {
      // A quote that was never closed: the line is taken as it is; when it happens again, quotes mean nothing here.
      const end = text.indexOf("\n", from);
      const to = end === -1 ? text.length : end;
      const line = parseWindow(text.slice(from, Math.min(to, from + MAX_RECORD)), delimiter, "\0", false);
      if (++unclosed >= 3) quoteChar = "\0";
      from = to + 1;
      size = WINDOW;
      yield [line.rows, from / text.length];
    }
  }
}

function parseWindow(
  text: string,
  delimiter: string,
  quoteChar: string,
  partial: boolean,
): { rows: string[][]; used: number } {
  const parser = new Papa.Parser({ delimiter, newline: "\n", quoteChar });
  const result = parser.parse(text, 0, partial) as { data: string[][]; meta: { cursor: number } };
  return { rows: result.data, used: partial ? result.meta.cursor : 0 };
}

/** Gathers rows to columns. The first row decides how many columns there are. */
export class TableBuilder {
  readonly #delimiter: string;
  #first: string[] | undefined;
  #second: string[] | undefined;
  #cells: string[][] = [];
  #shared: Map<string, string>[] = [];
  #rows = 0;
  #ragged = 0;
  #omitted = 0;

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
  }

  add(row: readonly string[]): void {
    if (row.length === 0 || (row.length === 1 && row[0]?.trim() === "")) return;
    if (!this.#first) {
      this.#first = row.slice(0, MAX_COLUMNS);
      this.#omitted = row.length - this.#first.length;
      this.#cells = this.#first.map(() => []);
      this.#shared = this.#first.map(() => new Map());
      return;
    }
    this.#second ??= row.slice(0, MAX_COLUMNS);
    if (row.length !== this.#first.length + this.#omitted) this.#ragged++;
    this.#push(row);
  }

  #push(row: readonly string[]): void {
    this.#rows++;
    for (const [i, cells] of this.#cells.entries()) {
      const value = row[i]?.trim() ?? "";
      const shared = this.#shared[i];
      let one = shared?.get(value);
      if (one === undefined) {
        one = value;
        if (shared && shared.size < MAX_SHARED) shared.set(value, value);
      }
      cells.push(one);
    }
  }

  build(header?: boolean): Table {
    const first = this.#first ?? [];
    const named = header ?? isHeader(first, this.#second);
    this.#shared = [];
    if (!named && this.#first) {
      this.#rows++;
      for (const [i, cells] of this.#cells.entries()) cells.unshift(first[i]?.trim() ?? "");
    }
    const names = uniqueNames(named ? first : first.map(() => ""));
    return {
      columns: this.#cells.map((cells, i) => ({ name: names[i] ?? "", cells })),
      rows: this.#rows,
      ragged: this.#ragged,
      delimiter: this.#delimiter,
      header: named,
      omitted: this.#omitted,
    };
  }
}

/** Names are no numbers and no dates, and differ; a row of data under them may be anything. */
function isHeader(first: readonly string[], second: readonly string[] | undefined): boolean {
  const filled = first.map((cell) => cell.trim()).filter((cell) => cell !== "");
  if (filled.length === 0 || filled.some(looksTyped)) return false;
  if (new Set(filled).size < filled.length) return second?.some((cell) => looksTyped(cell.trim())) ?? false;
  return true;
}

function uniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>();
  return names.map((given, i) => {
    const base = given.replace(/\s+/g, " ").trim().slice(0, 80).toWellFormed() || `Column ${i + 1}`;
    let name = base;
    for (let n = 2; used.has(name); n++) name = `${base} (${n})`;
    used.add(name);
    return name;
  });
}

/** The largest JSON that is read at one go. */
const MAX_JSON = 512 * 1024;

/** JSON that is a list of flat objects, as a table; undefined for all other. */
export function tableOfJson(text: string): Table | undefined {
  if (text.length > MAX_JSON) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const names = new Map<string, number>();
  for (const one of value as unknown[]) {
    if (typeof one !== "object" || one === null || Array.isArray(one)) return undefined;
    for (const name of Object.keys(one)) if (!names.has(name)) names.set(name, names.size);
  }
  if (names.size === 0) return undefined;
  const builder = new TableBuilder("");
  builder.add([...names.keys()]);
  for (const one of value as object[]) {
    const row: string[] = Array.from({ length: names.size }, () => "");
    for (const [name, cell] of Object.entries(one) as [string, unknown][]) {
      row[names.get(name) ?? 0] = cell === null ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell);
    }
    builder.add(row);
  }
  return builder.build(true);
}
