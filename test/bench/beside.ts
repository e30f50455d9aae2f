import type { Context } from "./context.js";
import { figure, shown } from "./figures.js";

/** How many tabs take part, where that matters. */
export const TAB_COUNTS = [1, 4, 16] as const;

export const tabs = (count: number): string => `${count} tab${count > 1 ? "s" : ""}`;

/** Of a figure of the same run. */
export const medianOf = ({ figures }: Pick<Context, "figures">, name: string): number | undefined =>
  figures.find((it) => it.name === name)?.median;

export const median = (values: readonly number[]): number => figure("", "", "ms", values).median;

/** `value` beside `base`; nothing where there is no base. */
export function ratio(value: number, base: number | undefined, what: string): string[] {
  if (base === undefined || Number.isNaN(base)) return [];
  const times = value / base;
  return [`${times >= 2 ? `${shown(times)} ×` : `${(times * 100).toFixed(0)} % of`} ${what}`];
}
