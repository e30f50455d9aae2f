import { readable, sectionOf, type KeptFigure, type KeptTable } from "./kept.js";

/** What stands between two marks of a guide; the first one names groups of the bench. */
const MARKED = /(<!-- figures: ([\w, -]+) -->\n)[^]*?(<!-- \/figures -->)/g;

const cell = (text: string): string => text.replaceAll(/[|<\\]/g, "\\$&");

const UNITS: Readonly<Record<KeptFigure["unit"], string>> = {
  "events/s": " per s",
  ms: " ms",
  times: " ×",
  count: "",
  KB: " KB",
};

/** The columns of a table; those that no row has are left out. */
const COLUMNS: readonly (readonly [string, (figure: KeptFigure) => string | undefined])[] = [
  ["what", ({ name }) => name],
  ["median", ({ median, unit }) => (median === undefined ? "-" : `${readable(median)}${UNITS[unit]}`)],
  ["p99", ({ p99, unit }) => (p99 === undefined ? undefined : `${readable(p99)}${UNITS[unit]}`)],
  ["beside it, same run", ({ beside }) => beside],
];

function tableOf({ group, date, machine, figures }: KeptTable): string {
  const section = sectionOf({ group });
  const columns = COLUMNS.filter(([, of]) => figures.some((figure) => of(figure) !== undefined));
  const rows = [
    columns.map(([title]) => title),
    columns.map(() => "---"),
    ...figures.map((figure) => columns.map(([, of]) => cell(of(figure) ?? ""))),
  ];
  const caption = `\`${section}\`${cell(group.slice(section.length))} (${date}; ${machine}):`;
  return [caption, "", ...rows.map((cells) => `| ${cells.join(" | ")} |`)].join("\n");
}

/** The groups of the bench that the guide's marks name. */
export const sectionsIn = (guide: string): string[] =>
  [...guide.matchAll(MARKED)].flatMap(([, , names]) => names!.split(", "));

/**
 * The guide with the kept figures between its marks. Where not all groups of a mark are kept, what stands there stays.
 *
 * @returns Markdown to be formatted
 */
export const withTables = (guide: string, kept: readonly KeptTable[]): string =>
  guide.replace(MARKED, (whole, begin: string, names: string, end: string) => {
    const sections = names.split(", ");
    const tables = sections.map((section) => kept.filter((table) => sectionOf(table) === section));
    if (tables.some(({ length }) => length === 0)) return whole;
    return `${begin}\n${tables.flat().map(tableOf).join("\n\n")}\n\n${end}`;
  });
