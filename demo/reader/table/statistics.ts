import type { Slices, Work } from "../slices.js";
import type { Bin, ColumnState, NumberStatistics } from "../state.js";
import { clip } from "../markdown.js";
import { type TypedColumn, type TypedTable, valueAt } from "./columns.js";
import { isMissing } from "./values.js";

const STRIDE = 2_000;
const MAX_UNIQUE = 50_000;
const TOP = 5;
const MAX_BINS = 20;

/** What is known of a column before its statistics. */
export function columnState(column: TypedColumn): ColumnState {
  return {
    name: column.name,
    type: column.type,
    count: column.cells.length - column.missing,
    missing: column.missing,
    odd: column.odd,
    unique: 0,
    uniqueAtLeast: false,
    numbers: null,
    dates: null,
    top: [],
  };
}

/** Counts and measures one column. */
export async function* describeColumn(table: TypedTable, column: TypedColumn, slices: Slices): Work<ColumnState> {
  const counts = new Map<string, number>();
  const values = new Float64Array(column.type === "number" || column.type === "date" ? table.rows : 0);
  let filled = 0;
  let more = false;
  for (const [row, cell] of column.cells.entries()) {
    if (!isMissing(cell)) {
      const seen = counts.get(cell);
      if (seen !== undefined || counts.size < MAX_UNIQUE) counts.set(cell, (seen ?? 0) + 1);
      else more = true;
      const value = valueAt(column, row);
      if (value !== undefined) values[filled++] = value;
    }
    if (row % STRIDE === 0 && slices.due()) {
      yield (0.8 * row) / table.rows;
      await slices.pause();
    }
  }
  const sorted = yield* sortNumbers(values.subarray(0, filled), slices);
  const first = sorted[0];
  const last = sorted.at(-1);
  return {
    ...columnState(column),
    unique: counts.size,
    uniqueAtLeast: more,
    numbers: column.type === "number" ? numbersOf(sorted, column.unit) : null,
    dates:
      column.type === "date" && first !== undefined && last !== undefined ? { from: day(first), to: day(last) } : null,
    top: column.type === "text" ? topOf(counts) : [],
  };
}

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

function topOf(counts: ReadonlyMap<string, number>): ColumnState["top"] {
  const best: [string, number][] = [];
  for (const entry of counts) {
    if (best.length === TOP && entry[1] <= (best.at(-1)?.[1] ?? 0)) continue;
    best.push(entry);
    best.sort((a, b) => b[1] - a[1]);
    best.length = Math.min(best.length, TOP);
  }
  return best.map(([value, count]) => ({ value: clip(value.toWellFormed(), 80), count }));
}

/** Sum, mean and standard deviation are of the sorted numbers, smallest first, for the least rounding. */
function numbersOf(sorted: Float64Array, unit: string): NumberStatistics | null {
  const min = sorted[0];
  const max = sorted.at(-1);
  if (min === undefined || max === undefined) return null;
  const sum = total(sorted);
  const mean = sum / sorted.length;
  let squares = 0;
  for (const value of sorted) squares += (value - mean) ** 2;
  return {
    min,
    max,
    sum,
    mean,
    median: medianOf(sorted),
    stddev: sorted.length < 2 ? 0 : Math.sqrt(squares / (sorted.length - 1)),
    unit,
    bins: binsOf(sorted, min, max),
  };
}

/** The sum with the rounding kept apart (Neumaier), so that 0.1 ten times is 1. */
export function total(values: Iterable<number>): number {
  let sum = 0;
  let lost = 0;
  for (const value of values) {
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return sum + lost;
}

/** Of sorted numbers; NaN of none. */
export function medianOf(sorted: Float64Array): number {
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

function binsOf(sorted: Float64Array, min: number, max: number): Bin[] {
  if (min === max) return [{ from: min, to: max, count: sorted.length }];
  const wanted = Math.min(MAX_BINS, Math.max(5, Math.ceil(Math.log2(sorted.length) + 1)));
  const width = (max - min) / wanted;
  if (!Number.isFinite(width) || width === 0) return [{ from: min, to: max, count: sorted.length }];
  const counts = Array.from({ length: wanted }, () => 0);
  for (const value of sorted) {
    const at = Math.min(wanted - 1, Math.floor((value - min) / width));
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts.map((count, i) => ({
    from: min + i * width,
    to: i === wanted - 1 ? max : min + (i + 1) * width,
    count,
  }));
}

const RUN = 20_000;

/** Sorts in short steps: runs first, then merges of them. */
export async function* sortNumbers(values: Float64Array, slices: Slices): Work<Float64Array> {
  for (let from = 0; from < values.length; from += RUN) {
    values.subarray(from, from + RUN).sort();
    if (slices.due()) {
      yield 0.8 + (0.1 * from) / values.length;
      await slices.pause();
    }
  }
  let source: Float64Array = values;
  let target: Float64Array = new Float64Array(values.length > RUN ? values.length : 0);
  for (let size = RUN; size < values.length; size *= 2) {
    for (let from = 0; from < values.length; from += 2 * size) {
      const middle = Math.min(from + size, values.length);
      const end = Math.min(from + 2 * size, values.length);
      let left = from;
      let right = middle;
      for (let to = from; to < end; to++) {
        const a = source[left] ?? 0;
        const b = source[right] ?? 0;
        const takeLeft = left < middle && (right >= end || a <= b);
        target[to] = takeLeft ? a : b;
        if (takeLeft) left++;
        else right++;
        if (to % RUN === 0 && slices.due()) {
          yield 0.95;
          await slices.pause();
        }
      }
    }
    [source, target] = [target, source];
  }
  return source;
}
