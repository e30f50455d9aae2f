import Papa from "papaparse";
import { clip } from "./markdown.js";

/** Every column has as many cells as there are rows; what a short row lacks is "". */
export interface Table {
  readonly columns: readonly { readonly name: string; readonly cells: readonly string[] }[];
  readonly rows: number;
}

/** Columns beyond it are left out. */
const MAX_COLUMNS = 100;

/** The first row holds the names of the columns. */
export function parseTable(text: string, type: string): Table {
  const delimiter = type === "text/tab-separated-values" ? "\t" : "";
  const { data } = Papa.parse<string[]>(text, { delimiter, skipEmptyLines: "greedy" });
  const [names = [], ...rows] = data;
  const columns = names.slice(0, MAX_COLUMNS).map((name, i) => ({
    name: clip(name.replace(/\s+/g, " ").trim().toWellFormed(), 80) || `Column ${i + 1}`,
    cells: rows.map((row) => row[i]?.trim() ?? ""),
  }));
  return { columns, rows: rows.length };
}
