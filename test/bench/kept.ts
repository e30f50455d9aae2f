import type { Figure } from "./figures.js";

/** A figure as it is kept: the newest, to three digits. */
export interface KeptFigure {
  readonly name: string;
  readonly unit: Figure["unit"];
  /** Absent where nothing was measured: `beside` says why. */
  readonly median?: number;
  readonly p99?: number;
  readonly beside?: string;
  /** The median that was kept before this one. */
  readonly before?: number;
}

/** Figures that were measured in one go. */
export interface KeptTable {
  readonly group: string;
  readonly date: string;
  readonly machine: string;
  readonly figures: readonly KeptFigure[];
}

/** When and on what a run of the bench measured. */
export type Measured = Pick<KeptTable, "date" | "machine">;

/** The group of the bench (`--only`) that a figure is of: its `group` begins with it. */
export const sectionOf = ({ group }: { readonly group: string }): string => group.split(":")[0]!;

const rounded = (value: number): number => Number(value.toPrecision(3));
const keyOf = (group: string, name: string): string => JSON.stringify([group, name]);

/** The medians of tables, by group and name. */
function mediansOf(kept: readonly KeptTable[]): ReadonlyMap<string, number> {
  const rows = kept.flatMap(({ group, figures }) =>
    figures.flatMap(({ name, median }) => (median === undefined ? [] : [[keyOf(group, name), median] as const])),
  );
  return new Map(rows);
}

/**
 * What is kept after a run of the bench. A section that the run measured is replaced as a whole, so that no row stays
 * that is not measured any more; the others stay as they are.
 *
 * @param sections all of them, in the order of the file
 */
export function merge(
  kept: readonly KeptTable[],
  figures: readonly Figure[],
  measured: Measured,
  sections: readonly string[],
): KeptTable[] {
  const medians = mediansOf(kept);
  const keep = ({ group, name, unit, median, p99, beside }: Figure): KeptFigure => {
    const before = medians.get(keyOf(group, name));
    return {
      name,
      unit,
      ...(Number.isFinite(median) && { median: rounded(median) }),
      ...(p99 !== undefined && { p99: rounded(p99) }),
      ...(beside !== undefined && beside !== "" && { beside }),
      ...(before !== undefined && { before }),
    };
  };
  const tables = [...new Set(figures.map(({ group }) => group))].map((group) => ({
    group,
    ...measured,
    figures: figures.filter((it) => it.group === group).map(keep),
  }));
  const isReplaced = new Set(tables.map(sectionOf));
  const placeOf = (table: KeptTable): number => sections.indexOf(sectionOf(table));
  return [...kept.filter((table) => !isReplaced.has(sectionOf(table))), ...tables].sort(
    (a, b) => placeOf(a) - placeOf(b),
  );
}

/** As one reads a number that has three digits. */
export const readable = (value: number): string => value.toLocaleString("en-US", { maximumSignificantDigits: 3 });

/** What is said of a figure beside the kept one: "kept 3.2, −12 %". Nothing where none is kept. */
export function comparison(kept: readonly KeptTable[]): (figure: Figure) => string | undefined {
  const medians = mediansOf(kept);
  return ({ group, name, median }) => {
    const before = medians.get(keyOf(group, name));
    if (before === undefined || !Number.isFinite(median)) return undefined;
    const percent = Math.round((median / before - 1) * 100);
    if (!Number.isFinite(percent)) return `kept ${readable(before)}`;
    const sign = percent > 0 ? "+" : percent < 0 ? "−" : "±";
    return `kept ${readable(before)}, ${sign}${Math.abs(percent)} %`;
  };
}
