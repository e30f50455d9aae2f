/** What has a meaning inside a line of Markdown (CommonMark and GFM). */
const INLINE = /[\\`*_[\]<>|~&#$]/g;
/** What GFM makes a link of without brackets. */
const LINKS = /(https?|ftp)(:)(?=\/\/)|(www)(\.)|@/gi;
/** What has a meaning at the start of a line. */
const START = /^(?:([-+=:!])|(\d{1,9})([.)])(?=\s|$))/;
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u2028\u2029]+/g;

/** Text of a document as one line of Markdown that shows it as it is and cannot leave its place. */
export function escapeInline(text: string): string {
  return text
    .toWellFormed()
    .replace(CONTROL, " ")
    .replace(/\s+/g, " ")
    .trim()
    .replace(INLINE, "\\$&")
    .replace(LINKS, (all, scheme?: string, _colon?: string, www?: string) =>
      scheme ? `${scheme}\\:` : www ? `${www}\\.` : `\\${all}`,
    )
    .replace(START, (_all, sign?: string, digits?: string, dot?: string) => (sign ? `\\${sign}` : `${digits}\\${dot}`));
}

/** A block quote, with where it stands. */
export function blockquote(text: string, location: string): string {
  return `> ${escapeInline(text)}\n>\n> — *${escapeInline(location)}*\n\n`;
}

/** A table of GFM. The first `numeric` flags tell which columns stand to the right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  numeric: readonly boolean[] = [],
): string {
  const line = (cells: readonly string[]): string =>
    `| ${head.map((_, i) => escapeCell(cells[i] ?? "")).join(" | ")} |\n`;
  const rule = `| ${head.map((_, i) => (numeric[i] ? "---:" : "---")).join(" | ")} |\n`;
  return `${line(head)}${rule}${rows.map(line).join("")}\n`;
}

function escapeCell(text: string): string {
  return escapeInline(clip(text, 80));
}

/** At most `max` characters, cut at a word where one is near, with an ellipsis. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text
    .slice(0, max - 1)
    .toWellFormed()
    .replace(/\uFFFD$/, "");
  const space = cut.lastIndexOf(" ");
  return `${(space > max * 0.6 ? cut.slice(0, space) : cut).trimEnd()}…`;
}

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

/** A number for people: 12,345.68. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-6)) return value.toExponential(3);
  if (Number.isInteger(value)) return WHOLE.format(value);
  return Math.abs(value) < 1 ? SMALL.format(value) : PLAIN.format(value);
}

/** "1 row", "2 rows". */
export const many = (count: number, one: string, more = `${one}s`): string =>
  `${figure(count)} ${count === 1 ? one : more}`;
