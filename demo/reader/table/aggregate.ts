import type { Slices } from "../slices.js";
import { finish } from "../slices.js";
import { type TypedColumn, valueAt } from "./columns.js";
import { medianOf, sortNumbers, total } from "./statistics.js";
import type { Condition, Operation, TableQuestion } from "./question.js";
import { isMissing, readDate, readNumber } from "./values.js";
import type { TypedTable } from "./columns.js";

export interface Group {
  /** The value of the `by` column; "" for cells without one, and for the only group of a question without `by`. */
  readonly key: string;
  /** NaN where no row of the group had a value. Dates are ms since the epoch. */
  readonly value: number;
  /** Rows of the group that hold. */
  readonly rows: number;
  /** The first row with the value, for min and max; counted from 0. */
  readonly at: number | null;
}

export interface Aggregate {
  readonly groups: readonly Group[];
  /** Rows that the conditions let through. */
  readonly matched: number;
  /** Rows that match but have no value in the column. */
  readonly skipped: number;
  /** There were more groups than can be kept apart. */
  readonly overflow: boolean;
}

interface Gathered {
  rows: number;
  values: number[];
  rowOf: number[];
  distinct: Set<string>;
}

const STRIDE = 1_000;
const MAX_GROUPS = 20_000;

/** Computes a question from all rows. Groups come with the greatest value first, or the smallest for "lowest". */
export async function aggregate(table: TypedTable, question: TableQuestion, slices: Slices): Promise<Aggregate> {
  const tests = question.where.map(testOf);
  const gathered = new Map<string, Gathered>();
  const { by, column, operation } = question;
  let matched = 0;
  let skipped = 0;
  let overflow = false;
  if (!by) gathered.set("", newGroup());

  for (let row = 0; row < table.rows; row++) {
    if (row % STRIDE === 0 && slices.due()) await slices.pause();
    if (!tests.every((holds) => holds(row))) continue;
    matched++;
    const cell = by ? (by.cells[row] ?? "") : "";
    const key = isMissing(cell) ? "" : cell;
    let group = gathered.get(key);
    if (!group) {
      if (gathered.size >= MAX_GROUPS) {
        overflow = true;
        continue;
      }
      group = newGroup();
      gathered.set(key, group);
    }
    group.rows++;
    if (!column) continue;
    if (operation === "distinct") {
      const value = column.cells[row] ?? "";
      if (isMissing(value)) skipped++;
      else group.distinct.add(value);
      continue;
    }
    const value = valueAt(column, row);
    if (value === undefined) skipped++;
    else {
      group.values.push(value);
      group.rowOf.push(row);
    }
  }

  const groups: Group[] = [];
  for (const [key, group] of gathered) {
    groups.push({ key, rows: group.rows, ...(await measure(operation, group, slices)) });
    if (slices.due()) await slices.pause();
  }
  const sign = question.extreme === "lowest" ? -1 : 1;
  const order = (value: number): number => (Number.isNaN(value) ? -Infinity : value * sign);
  groups.sort((a, b) => order(b.value) - order(a.value) || (a.key < b.key ? -1 : 1));
  return { groups, matched, skipped, overflow };
}

const newGroup = (): Gathered => ({ rows: 0, values: [], rowOf: [], distinct: new Set() });

async function measure(
  operation: Operation,
  group: Gathered,
  slices: Slices,
): Promise<{ value: number; at: number | null }> {
  const { values } = group;
  switch (operation) {
    case "count":
      return { value: group.rows, at: null };
    case "distinct":
      return { value: group.distinct.size, at: null };
    case "sum":
      return { value: values.length === 0 ? NaN : total(values), at: null };
    case "mean":
      return { value: values.length === 0 ? NaN : total(values) / values.length, at: null };
    case "median":
      return { value: medianOf(await finish(sortNumbers(Float64Array.from(values), slices))), at: null };
    case "min":
    case "max": {
      let best = -1;
      for (const [i, value] of values.entries()) {
        const other = values[best];
        if (other === undefined || (operation === "max" ? value > other : value < other)) best = i;
      }
      return { value: values[best] ?? NaN, at: group.rowOf[best] ?? null };
    }
  }
}

function testOf({ column, comparison, value }: Condition): (row: number) => boolean {
  const wanted = wantedOf(column, value);
  const text = value.toLowerCase();
  const cellOf = (row: number): string => (column.cells[row] ?? "").toLowerCase();
  const same = (row: number): boolean =>
    wanted === undefined ? cellOf(row) === text : valueAt(column, row) === wanted;
  const compared =
    (holds: (value: number, wanted: number) => boolean) =>
    (row: number): boolean => {
      const found = valueAt(column, row);
      return found !== undefined && wanted !== undefined && holds(found, wanted);
    };
  switch (comparison) {
    case "=":
      return same;
    case "!=":
      return (row) => !same(row);
    case "contains":
      return (row) => cellOf(row).includes(text);
    case ">":
      return compared((a, b) => a > b);
    case ">=":
      return compared((a, b) => a >= b);
    case "<":
      return compared((a, b) => a < b);
    case "<=":
      return compared((a, b) => a <= b);
  }
}

/** People write numbers of a question with a point, whatever the file does; else as the column does. */
function wantedOf(column: TypedColumn, value: string): number | undefined {
  if (column.type === "number") return (readNumber(value, ".") ?? readNumber(value, column.decimal))?.value;
  if (column.type === "date") return readDate(value, column.order);
  return undefined;
}
