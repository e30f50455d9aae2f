import { clip } from "../documents/markdown.js";
import type { Table } from "../documents/table.js";
import type { ColumnState, NumberStatistics } from "./state.js";

/** A column is of a type when this share of its values is. */
const SHARE = 0.9;
const TOP = 5;
const MAX_BINS = 20;

const isMissing = (cell: string): boolean => /^(?:n\/?a|nan|null|[-–—])?$/i.test(cell);
/** Digits with a zero in front are a name. */
const isNumber = (cell: string): boolean => Number.isFinite(Number(cell)) && !/^0\d/.test(cell);
const isDate = (cell: string): boolean => /^\d{4}-\d\d-\d\d/.test(cell) && !Number.isNaN(Date.parse(cell));

/** Counts and measures one column. */
export function describeColumn({ name, cells }: Table["columns"][number]): ColumnState {
  const filled = cells.filter((cell) => !isMissing(cell));
  const numbers = filled.filter(isNumber);
  const dates = filled.filter(isDate).toSorted();
  const of = (found: readonly string[]): boolean => filled.length > 0 && found.length >= filled.length * SHARE;
  const type = filled.length === 0 ? "empty" : of(dates) ? "date" : of(numbers) ? "number" : "text";
  const counts = new Map<string, number>();
  for (const cell of filled) counts.set(cell, (counts.get(cell) ?? 0) + 1);
  const top = type === "text" ? [...counts].toSorted((a, b) => b[1] - a[1]).slice(0, TOP) : [];
  return {
    name,
    type,
    count: filled.length,
    missing: cells.length - filled.length,
    unique: counts.size,
    numbers: type === "number" ? statisticsOf(Float64Array.from(numbers, Number).sort()) : null,
    dates: type === "date" ? { from: dates[0]!.slice(0, 10), to: dates.at(-1)!.slice(0, 10) } : null,
    top: top.map(([value, count]) => ({ value: clip(value.toWellFormed(), 80), count })),
  };
}

/** JSON has no infinity. */
const finite = (value: number): number => Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value));

/** @param sorted at least one number, smallest first */
function statisticsOf(sorted: Float64Array): NumberStatistics {
  const [min = 0, max = 0] = [sorted[0], sorted.at(-1)];
  const sum = finite(sorted.reduce((all, value) => all + value, 0));
  const middle = sorted.length >> 1;
  const [lower = 0, upper = 0] = [sorted[sorted.length % 2 === 1 ? middle : middle - 1], sorted[middle]];
  return { min, max, sum, mean: sum / sorted.length, median: lower / 2 + upper / 2, bins: binsOf(sorted, min, max) };
}

function binsOf(sorted: Float64Array, min: number, max: number): NumberStatistics["bins"] {
  const wanted = Math.min(MAX_BINS, Math.max(5, Math.ceil(Math.log2(sorted.length) + 1)));
  const width = (max - min) / wanted;
  if (!Number.isFinite(width) || width === 0) return [{ from: min, to: max, count: sorted.length }];
  const bins = Array.from({ length: wanted }, (_, i) => ({
    from: min + i * width,
    to: i === wanted - 1 ? max : min + (i + 1) * width,
    count: 0,
  }));
  for (const value of sorted) bins[Math.min(wanted - 1, Math.floor((value - min) / width))]!.count++;
  return bins;
}
