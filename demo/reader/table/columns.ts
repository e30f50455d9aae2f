import type { Slices, Work } from "../slices.js";
import {
  type DateOrder,
  type Decimal,
  dateOrderOf,
  decimalOf,
  isCode,
  isMissing,
  readDate,
  readNumber,
} from "./values.js";
import type { Column, Table } from "./parse.js";

/** A column with what its cells mean. */
export type TypedColumn = Column & {
  readonly missing: number;
  /** Cells with a value that is not of the type. */
  readonly odd: number;
} & (
    | { readonly type: "number"; readonly decimal: Decimal; readonly unit: string }
    | { readonly type: "date"; readonly order: DateOrder }
    | { readonly type: "text" | "empty" }
  );

export interface TypedTable extends Omit<Table, "columns"> {
  readonly columns: readonly TypedColumn[];
}

/** A column is of a type when this share of its values is. */
const SHARE = 0.9;
const SAMPLE = 500;
/** Cells between two looks at the clock. */
const STRIDE = 2_000;

/** Finds out the type of every column from all its cells. */
export async function* typeColumns(table: Table, slices: Slices): Work<TypedTable> {
  const columns: TypedColumn[] = [];
  for (const [index, column] of table.columns.entries()) {
    const sample = sampleOf(column.cells);
    const decimal = decimalOf(sample);
    const order = dateOrderOf(sample);
    let missing = 0;
    let numbers = 0;
    let dates = 0;
    let codes = 0;
    let unit: string | undefined;
    for (const [row, cell] of column.cells.entries()) {
      if (isMissing(cell)) {
        missing++;
      } else {
        const number = readNumber(cell, decimal);
        if (number) {
          numbers++;
          unit = unit === undefined || unit === number.unit ? number.unit : "";
          if (isCode(cell)) codes++;
        } else if (readDate(cell, order) !== undefined) {
          dates++;
        }
      }
      if (row % STRIDE === 0 && slices.due()) {
        yield (index + row / table.rows) / table.columns.length;
        await slices.pause();
      }
    }
    const filled = table.rows - missing;
    if (filled === 0) columns.push({ ...column, type: "empty", missing, odd: 0 });
    else if (dates >= filled * SHARE) columns.push({ ...column, type: "date", order, missing, odd: filled - dates });
    else if (numbers >= filled * SHARE && codes === 0)
      columns.push({ ...column, type: "number", decimal, unit: unit ?? "", missing, odd: filled - numbers });
    else columns.push({ ...column, type: "text", missing, odd: 0 });
  }
  return { ...table, columns };
}

/** Cells with a value from all over the column. */
function sampleOf(cells: readonly string[]): string[] {
  const sample: string[] = [];
  const every = Math.max(1, Math.floor(cells.length / (SAMPLE * 2)));
  for (let i = 0; i < cells.length && sample.length < SAMPLE; i += every) {
    const cell = cells[i];
    if (cell !== undefined && !isMissing(cell)) sample.push(cell);
  }
  return sample;
}

/** A cell's number in its column: of a number itself, of a date the ms since the epoch. */
export function valueAt(column: TypedColumn, row: number): number | undefined {
  const cell = column.cells[row] ?? "";
  if (isMissing(cell)) return undefined;
  if (column.type === "number") return readNumber(cell, column.decimal)?.value;
  if (column.type === "date") return readDate(cell, column.order);
  return undefined;
}
