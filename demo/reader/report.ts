import { blockquote, clip, escapeInline, figure, many, table as markdownTable } from "./markdown.js";
import type { ColumnState, Count, KeySentence } from "./state.js";
import type { TypedTable } from "./table/columns.js";
import type { Table } from "./table/parse.js";
import type { TextDocument } from "./text/blocks.js";
import type { Outline } from "./text/outline.js";
import type { Sentences } from "./text/sentences.js";
import type { Vocabulary } from "./text/terms.js";

/** What Reader says of a document, as Markdown, and how it chose, as plain text. Everything from the document is escaped. */

export function whyText(text: TextDocument): string {
  const from = {
    headings: `${many(text.headings.length, "heading")} of Markdown`,
    "guessed titles": `${many(text.headings.length, "line")} that ${text.headings.length === 1 ? "looks" : "look"} like a title: short, alone, without the end of a sentence`,
    none: "no headings and no lines that look like titles",
  }[text.headingsFrom];
  return `I split ${many(text.lines, "line")} at the blank ones into ${many(text.blocks.length, "block")} and found ${from}. `;
}

export function textTitle(name: string, counts: readonly Count[]): string {
  const [characters = 0, lines = 0, paragraphs = 0] = counts.map(({ value }) => value);
  return `## ${escapeInline(name)}\n\nI read ${many(characters, "character")} in ${many(lines, "line")} and ${many(paragraphs, "paragraph")}.\n\n`;
}

export function whyOutline({ entries, from, found }: Outline): string {
  if (from === "leading sentences") {
    return `For the outline I took how ${many(entries.length, "paragraph")} of 80 characters or more begin, evenly spaced over the text. `;
  }
  const left = found - entries.length;
  return `The outline shows ${left > 0 ? `${figure(entries.length)} of ${many(found, "heading")}, the coarsest first` : `all ${many(found, "heading")}`}. `;
}

export function outline({ entries, from, found }: Outline): string {
  if (entries.length === 0) return "";
  const title = {
    headings: "Outline",
    "guessed titles": "Outline (guessed titles)",
    "leading sentences": "How it goes",
  }[from];
  const depth: number[] = [];
  const items = entries.map((entry) => {
    while ((depth.at(-1) ?? 0) >= entry.level) depth.pop();
    depth.push(entry.level);
    return `${"  ".repeat(depth.length - 1)}- ${escapeInline(entry.title)} *(line ${entry.line})*\n`;
  });
  const left = found > entries.length ? `\n${many(found - entries.length, "finer heading")} left out.\n` : "";
  return `### ${title}\n\n${items.join("")}${left}\n`;
}

export function whyTerms(vocabulary: Vocabulary): string {
  const { words, stopWords, different, pruned } = vocabulary;
  return (
    `For the key terms I counted ${many(words, "word")}, set ${many(stopWords, "stop word")} of English and German aside, ` +
    `and ranked the other ${many(different, "different word")} and their neighbours by tf-idf: how often they stand in the text, times the logarithm of how few of its blocks they stand in. ` +
    (pruned ? "The text has so many different words that I dropped rare ones on the way. " : "")
  );
}

export function terms({ terms: list }: Vocabulary): string {
  if (list.length === 0) return "";
  return `### Key terms\n\n${list.map(({ term, count }) => `**${escapeInline(term)}** (${figure(count)}×)`).join(", ")}\n\n`;
}

export function whySentences({ scored, blocks, central, bySection }: Sentences): string {
  return (
    `For the key sentences I scored ${many(scored, "sentence")} of 6 to 60 words from ${many(blocks, "block")} by the weight of the key terms in them for their length, ` +
    `with a bonus for the first of a paragraph, and kept ${figure(central.length)} that do not repeat each other, at most two of a section` +
    (bySection.length > 0 ? `; ${many(bySection.length, "other section")} gave the best sentence each.` : ".")
  );
}

export function sentences({ central, bySection }: Sentences): string {
  if (central.length === 0) return "There are no full sentences to quote.\n\n";
  const best = central.map((sentence) => blockquote(sentence.text, placeOf(sentence))).join("");
  const sections = bySection.map(
    ({ section, text, line }) => `- **${escapeInline(clip(section, 120))}** *(line ${line})*: ${escapeInline(text)}\n`,
  );
  return `### Key sentences\n\n${best}${sections.length > 0 ? `### Section by section\n\n${sections.join("")}\n` : ""}`;
}

export function placeOf({ section, line }: Pick<KeySentence, "section" | "line">): string {
  return section === "" ? `line ${line}` : `${clip(section, 100)}, line ${line}`;
}

export function textEnd({ terms: list }: Vocabulary): string {
  const term = list[0]?.term;
  return term
    ? `Ask me about it, for example: “What does it say about ${escapeInline(term)}?”\n`
    : "Ask me about it.\n";
}

const DELIMITERS: Readonly<Record<string, string>> = { ",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars" };

export function whyTable(table: Table): string {
  const divided = DELIMITERS[table.delimiter];
  return (
    (divided ? `Cells are divided by ${divided}. ` : "It is a list of objects in JSON. ") +
    (table.header
      ? "I took the first row for the names of the columns, for no cell of it is a number or a date. "
      : "The first row looks like data, so I numbered the columns. ") +
    (table.ragged > 0
      ? `${many(table.ragged, "row has", "rows have")} more or fewer cells than there are columns. `
      : "")
  );
}

export function tableTitle(name: string, table: Table): string {
  return (
    `## ${escapeInline(name)}\n\nI read ${many(table.rows, "row")} with ${many(table.columns.length + table.omitted, "column")}.` +
    (table.omitted > 0 ? ` I left the last ${many(table.omitted, "column")} out.` : "") +
    (table.ragged > 0
      ? ` ${many(table.ragged, "row does", "rows do")} not have as many cells as there are columns.`
      : "") +
    "\n\n"
  );
}

export function whyColumns(table: TypedTable): string {
  const of = (type: string): number => table.columns.filter((column) => column.type === type).length;
  return (
    `A column is of numbers or dates when 9 in 10 of its values read as such: ${figure(of("number"))} of numbers, ${figure(of("date"))} of dates, ${figure(of("text"))} of text, ${figure(of("empty"))} empty. ` +
    "Digits with a zero in front count as text, for they are names. "
  );
}

export function whyStatistics(states: readonly ColumnState[]): string {
  const odd = states.reduce((sum, column) => sum + column.odd, 0);
  return (
    "Statistics are of all rows; empty cells, “NA”, “null” and dashes count as missing; the standard deviation is that of a sample (n − 1)." +
    (odd > 0 ? ` ${many(odd, "cell")} did not read as the type of the column and stayed out.` : "")
  );
}

/** Columns that are shown in words; the state holds all of them. */
const SHOWN = 30;

export function columns(table: TypedTable, states: readonly ColumnState[]): string {
  const shown = states.slice(0, SHOWN);
  const all = markdownTable(
    ["Column", "Type", "Filled", "Missing", "Different"],
    shown.map((column) => [column.name, column.type, figure(column.count), figure(column.missing), different(column)]),
    [false, false, true, true, true],
  );
  const left = states.length > SHOWN ? `${many(states.length - SHOWN, "further column")} not shown here.\n\n` : "";
  return `### Columns\n\n${all}${left}${numbers(shown)}${dates(shown)}${texts(shown, table.rows)}`;
}

const different = (column: ColumnState): string => `${column.uniqueAtLeast ? "over " : ""}${figure(column.unique)}`;

export const withUnit = (value: string, unit: string): string =>
  unit === "" ? value : unit === "%" ? `${value} %` : `${unit}${value}`;

function numbers(states: readonly ColumnState[]): string {
  const rows = states.flatMap(({ name, numbers: found }) => {
    if (!found) return [];
    const { min, max, mean, median, stddev, sum, unit } = found;
    return [[name, ...[min, max, mean, median, stddev, sum].map((value) => withUnit(figure(value), unit))]];
  });
  if (rows.length === 0) return "";
  return `### Numbers\n\n${markdownTable(["Column", "Min", "Max", "Mean", "Median", "Std. dev.", "Sum"], rows, [false, true, true, true, true, true, true])}`;
}

function dates(states: readonly ColumnState[]): string {
  const rows = states.flatMap(({ name, dates: found }) => (found ? [[name, found.from, found.to]] : []));
  return rows.length === 0 ? "" : `### Dates\n\n${markdownTable(["Column", "First", "Last"], rows)}`;
}

function texts(states: readonly ColumnState[], rows: number): string {
  const lines = states.flatMap(({ name, top, unique }) => {
    const first = top[0];
    if (!first) return [];
    if (unique === rows) return [`- **${escapeInline(name)}**: every value stands once\n`];
    const values = top.map(({ value, count }) => `${escapeInline(clip(value, 50)) || "(blank)"} (${figure(count)}×)`);
    return [`- **${escapeInline(name)}**: ${values.join(", ")}\n`];
  });
  return lines.length === 0 ? "" : `### Most frequent values\n\n${lines.join("")}\n`;
}

export function tableEnd(states: readonly ColumnState[]): string {
  const number = states.find(({ type, unique }) => type === "number" && unique > 1)?.name;
  const group = states.find(({ type, unique }) => type === "text" && unique > 1 && unique <= 50)?.name;
  const value = states.find(({ name }) => name === group)?.top[0]?.value;
  const examples = [
    ...(number && group ? [`average of ${number} by ${group}`] : []),
    ...(number ? [`max of ${number}`] : []),
    ...(group && value ? [`how many rows where ${group} is ${value}`] : []),
  ];
  if (examples.length === 0) return "Ask me about it: I look for the words in its rows.\n";
  return `Ask me to calculate, for example:\n\n${examples.map((example) => `- ${escapeInline(example)}\n`).join("")}`;
}
