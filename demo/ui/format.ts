const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const exact = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const powers = new Intl.NumberFormat("en", { notation: "scientific", maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

const STEPS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** "now", "5 min. ago", "yesterday". */
export function ago(time: number, now: number): string {
  const past = now - time;
  for (const [unit, length] of STEPS) if (past >= length) return relative.format(-Math.floor(past / length), unit);
  return "now";
}

export const exactTime = (time: number): string => exact.format(time);

/** In units of 1,024, as the limit for files is. */
export function fileSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000 * 1_024) return `${whole.format(bytes / 1_024)} KB`;
  if (bytes < 1_000 * 1_024 ** 2) return `${(bytes / 1_024 ** 2).toFixed(1)} MB`;
  return `${(bytes / 1_024 ** 3).toFixed(1)} GB`;
}

/** A figure in a panel: whole numbers whole, others to four digits, huge ones shortened. */
export function figure(value: number): string {
  if (Math.abs(value) >= 1e15) return powers.format(value);
  if (Math.abs(value) >= 10_000_000) return compact.format(value);
  return Number.isInteger(value) || Math.abs(value) >= 1_000 ? whole.format(value) : short.format(value);
}

/** "in 3 s"; "now" where the time is over. In ms since the Unix epoch. */
export function inSeconds(at: number, now = Date.now()): string {
  const seconds = Math.ceil((at - now) / 1_000);
  return seconds > 0 ? `in ${whole.format(seconds)} s` : "now";
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${whole.format(count)} ${count === 1 ? one : many}`;
