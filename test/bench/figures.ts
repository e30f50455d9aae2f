/** One line of the table. */
export interface Figure {
  readonly group: string;
  readonly name: string;
  readonly unit: "events/s" | "ms" | "times" | "count" | "KB";
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** Where there are enough values for one. */
  readonly p99?: number;
  readonly values: readonly number[];
  /** What it stands beside: figures of the same run, or what was measured earlier. */
  readonly beside?: string;
}

function quantile(sorted: readonly number[], q: number): number {
  const place = (sorted.length - 1) * q;
  const low = sorted[Math.floor(place)] ?? NaN;
  const high = sorted[Math.ceil(place)] ?? NaN;
  return low + (high - low) * (place % 1);
}

export const perSecond = (count: number, ms: number): number => (count / ms) * 1_000;

export async function repeat<T>(samples: number, work: () => Promise<T>): Promise<T[]> {
  await work();
  const values: T[] = [];
  for (let i = 0; i < samples; i++) values.push(await work());
  return values;
}

/** As {@link repeat} for several works in turn, so that what else the machine does meets all of them alike. */
export async function inTurn<K extends string>(
  samples: number,
  works: Readonly<Record<K, () => Promise<number>>>,
): Promise<Record<K, number[]>> {
  const names = Object.keys(works) as K[];
  const values = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<K, number[]>;
  for (let i = -1; i < samples; i++) {
    for (const name of names) {
      const value = await works[name]();
      if (i >= 0) values[name].push(value);
    }
  }
  return values;
}

/** How many values a p99 needs to say anything. */
const ENOUGH_FOR_P99 = 30;

export function figure(
  group: string,
  name: string,
  unit: Figure["unit"],
  values: readonly number[],
  beside?: string,
): Figure {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    group,
    name,
    unit,
    median: quantile(sorted, 0.5),
    min: quantile(sorted, 0),
    max: quantile(sorted, 1),
    ...(sorted.length >= ENOUGH_FOR_P99 && { p99: quantile(sorted, 0.99) }),
    values,
    ...(beside !== undefined && { beside }),
  };
}

/** As one reads it: three digits count. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (value >= 1_000) return Number(value.toPrecision(3)).toLocaleString("en-US");
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** @param remark what else there is to say of a figure */
export function printFigures(figures: readonly Figure[], remark: (figure: Figure) => string | undefined): void {
  const width = Math.max(20, ...figures.map(({ name }) => name.length));
  let group = "";
  for (const it of figures) {
    if (it.group !== group) {
      group = it.group;
      console.log(
        `\n${group.padEnd(width)}  ${"median".padStart(9)}  ${"min".padStart(9)}  ${"max".padStart(9)}  ${"p99".padStart(7)}  unit      beside`,
      );
    }
    const cells = [it.median, it.min, it.max].map((value) => shown(value).padStart(9)).join("  ");
    const p99 = (it.p99 === undefined ? "" : shown(it.p99)).padStart(7);
    const beside = [it.beside, remark(it)].filter((text) => text !== undefined && text !== "").join("; ");
    console.log(`${it.name.padEnd(width)}  ${cells}  ${p99}  ${it.unit.padEnd(8)}  ${beside}`.trimEnd());
  }
}
