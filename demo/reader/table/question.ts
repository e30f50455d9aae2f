import type { TypedColumn, TypedTable } from "./columns.js";
import { STOP_WORDS } from "../text/stopwords.js";
import { readDate, readNumber } from "./values.js";

export type Operation = "count" | "distinct" | "sum" | "mean" | "median" | "min" | "max";
export type Comparison = "=" | "!=" | ">" | ">=" | "<" | "<=" | "contains";

export interface Condition {
  readonly column: TypedColumn;
  readonly comparison: Comparison;
  /** As it was written. */
  readonly value: string;
}

/** A question that can be computed. */
export interface TableQuestion {
  readonly operation: Operation;
  /** Null counts rows. */
  readonly column: TypedColumn | null;
  readonly by: TypedColumn | null;
  readonly where: readonly Condition[];
  /** "which city has the highest …": only the first groups matter. */
  readonly extreme: "highest" | "lowest" | null;
}

/** What a question is to a table: computable, nearly (says what is in the way), or something else. */
export type Understanding =
  | { readonly is: "computable"; readonly question: TableQuestion }
  | { readonly is: "unclear"; readonly why: string }
  | { readonly is: "other" };

const OPERATIONS: readonly (readonly [Operation, RegExp])[] = [
  [
    "distinct",
    /\b(?:how many|number of|count(?: of)?|wie viele|anzahl(?: der)?) (?:the )?(?:different|distinct|unique|verschiedenen?)\b/,
  ],
  ["mean", /\b(?:average|avg|mean|durchschnitt(?:liche[rns]?)?|mittelwert)\b/],
  ["median", /\bmedian\b/],
  ["sum", /\b(?:sum|total|summe|gesamt(?:e[rns]?)?|add up)\b/],
  ["max", /\b(?:max|maximum|highest|largest|biggest|greatest|latest|höchste[rns]?|größte[rns]?)\b/],
  ["min", /\b(?:min|minimum|lowest|smallest|least|earliest|niedrigste[rns]?|kleinste[rns]?)\b/],
  ["count", /\b(?:count|how many|number of|anzahl|wie viele)\b/],
];

const WHERE = /\s(?:where|whose|for which|with|having|wo|bei denen|mit)\s+/;
const BY = /\s(?:by|per|for each|for every|grouped by|group by|nach|pro|je)\s+(?:the )?/;
const WHICH =
  /^(?:which|what|welche[rs]?) (.+?) (?:has|have|had|hat|haben|is|are|ist) (?:the )?(highest|largest|biggest|greatest|most|lowest|smallest|fewest|least|höchste[rns]?|meisten?|niedrigste[rns]?)\b\s*(.*)$/;

/** Reads the clear patterns: operation of column, by column, where column compares to value. */
export function understand(table: TypedTable, asked: string): Understanding {
  // Offsets must be those of `asked`, so that values keep their case.
  const question = asked
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[?.!]+$/, "")
    .trimEnd();
  const small = question.toLowerCase();
  if (small.length !== question.length || question.length > 500) return { is: "other" };

  const which = WHICH.exec(small);
  if (which) return understandWhich(table, which);

  const whereAt = WHERE.exec(small);
  const head = whereAt ? small.slice(0, whereAt.index) : small;
  const tail = whereAt ? question.slice(whereAt.index + whereAt[0].length) : "";
  const byAt = BY.exec(head);
  const byTail = BY.exec(tail.toLowerCase());
  const main = byAt ? head.slice(0, byAt.index) : head;
  const operation = OPERATIONS.find(([, pattern]) => pattern.test(main));
  if (!operation) return { is: "other" };

  const byText = byAt
    ? head.slice(byAt.index + byAt[0].length)
    : byTail
      ? tail.slice(byTail.index + byTail[0].length)
      : "";
  const by = byText === "" ? null : findColumn(table, byText);
  if (by === undefined) return { is: "unclear", why: `I know no column “${byText}”` };
  const where = conditionsOf(table, byTail && !byAt ? tail.slice(0, byTail.index) : tail);
  if ("why" in where) return { is: "unclear", why: where.why };

  const named = main.replace(operation[1], " ");
  return complete(table, operation[0], named, by, where, null);
}

function understandWhich(table: TypedTable, which: RegExpExecArray): Understanding {
  const [, group = "", extremeWord = "", rest = ""] = which;
  const by = findColumn(table, group);
  if (!by) return { is: "other" };
  const extreme = /^(?:lowest|smallest|fewest|least|niedrig)/.test(extremeWord) ? "lowest" : "highest";
  if (/^(?:rows?|entries|records|lines|zeilen|einträge)?$/.test(rest.trim())) {
    return { is: "computable", question: { operation: "count", column: null, by, where: [], extreme } };
  }
  const operation = OPERATIONS.find(([, pattern]) => pattern.test(rest));
  const single = extreme === "highest" ? "max" : "min";
  return complete(table, operation?.[0] ?? single, operation ? rest.replace(operation[1], " ") : rest, by, [], extreme);
}

function complete(
  table: TypedTable,
  operation: Operation,
  named: string,
  by: TypedColumn | null,
  where: readonly Condition[],
  extreme: TableQuestion["extreme"],
): Understanding {
  const column = findColumn(table, named) ?? null;
  if (operation === "count") {
    // "how many rows": of rows nothing needs to be named.
    return { is: "computable", question: { operation, column: null, by, where, extreme } };
  }
  if (!column) return { is: "unclear", why: `I see no column to take the ${NAMES[operation]} of` };
  const measurable =
    column.type === "number" || (column.type === "date" && (operation === "min" || operation === "max"));
  if (operation !== "distinct" && !measurable) {
    return {
      is: "unclear",
      why: `the column “${column.name}” holds ${column.type === "text" ? "text" : `${column.type}s`}, which has no ${NAMES[operation]}`,
    };
  }
  return { is: "computable", question: { operation, column, by, where, extreme } };
}

export const NAMES: Readonly<Record<Operation, string>> = {
  count: "count",
  distinct: "number of different values",
  sum: "sum",
  mean: "average",
  median: "median",
  min: "minimum",
  max: "maximum",
};

const words = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
const singular = (word: string): string =>
  word.length > 4 && word.endsWith("ies")
    ? `${word.slice(0, -3)}y`
    : word.length > 3 && word.endsWith("s") && !word.endsWith("ss")
      ? word.slice(0, -1)
      : word;
const normal = (text: string): string[] => words(text).map(singular);

/** The column whose name stands in a text as whole words; of several, the one with most words, then the first in the text. Else part of a name will do. */
export function findColumn(table: TypedTable, text: string): TypedColumn | undefined {
  const said = normal(text);
  let best: { column: TypedColumn; length: number; at: number } | undefined;
  for (const column of table.columns) {
    const name = normal(column.name);
    const at = name.length === 0 ? -1 : said.findIndex((_, i) => name.every((word, k) => said[i + k] === word));
    if (at === -1) continue;
    if (!best || name.length > best.length || (name.length === best.length && at < best.at))
      best = { column, length: name.length, at };
  }
  return best?.column ?? columnWithWord(table, said);
}

/** The only column that has one of these words in its name: "delay" for "delay_min". */
function columnWithWord(table: TypedTable, said: readonly string[]): TypedColumn | undefined {
  const telling = new Set(said.filter((word) => word.length > 2 && !STOP_WORDS.has(word)));
  const found = table.columns.filter(({ name }) => normal(name).some((word) => telling.has(word)));
  return found.length === 1 ? found[0] : undefined;
}

const PHRASES: readonly (readonly [Comparison, RegExp])[] = [
  ["!=", /^\s*(?:is not|isn't|does not equal|not equal to|ist nicht|!=|<>|≠)\s*/],
  [">=", /^\s*(?:is |are )?(?:at least|greater than or equal to|mindestens|>=|≥)\s*/],
  ["<=", /^\s*(?:is |are )?(?:at most|less than or equal to|höchstens|<=|≤)\s*/],
  [
    ">",
    /^\s*(?:is |are )?(?:greater than|more than|larger than|higher than|bigger than|over|above|after|größer als|mehr als|über|>)\s*/,
  ],
  [
    "<",
    /^\s*(?:is |are )?(?:less than|fewer than|smaller than|lower than|under|below|before|kleiner als|weniger als|unter|<)\s*/,
  ],
  ["contains", /^\s*(?:contains|containing|includes|enthält)\s+/],
  ["=", /^\s*(?:is equal to|equals?|is|are|ist|==?|of)\s*/],
];

function conditionsOf(table: TypedTable, tail: string): readonly Condition[] | { why: string } {
  if (tail.trim() === "") return [];
  const conditions: Condition[] = [];
  for (const part of splitConditions(table, tail.replace(/^the\s+/i, ""))) {
    const between = /^(.*?)\s(?:is\s)?between\s(.+?)\sand\s(.+)$/i.exec(part);
    if (between) {
      const column = findColumn(table, between[1] ?? "");
      if (!column) return { why: `I know no column in “${part}”` };
      conditions.push({ column, comparison: ">=", value: unquote(between[2] ?? "") });
      conditions.push({ column, comparison: "<=", value: unquote(between[3] ?? "") });
      continue;
    }
    const one = conditionOf(table, part);
    if ("why" in one) return one;
    conditions.push(one);
  }
  for (const { column, comparison, value } of conditions) {
    if (comparison === "=" || comparison === "!=" || comparison === "contains") continue;
    if (column.type === "number" && readNumber(value, ".")) continue;
    if (column.type === "date" && readDate(value, column.order) !== undefined) continue;
    return { why: `“${value}” cannot be compared with the values of “${column.name}”` };
  }
  return conditions;
}

/** Splits at each "and" that a column's name follows; any other belongs to a value or to "between". */
function splitConditions(table: TypedTable, tail: string): string[] {
  const parts: string[] = [];
  for (const part of tail.split(/\s(?:and|und)\s/i)) {
    if (parts.length > 0 && !columnAtStart(table, part)) parts.push(`${parts.pop()} and ${part}`);
    else parts.push(part);
  }
  return parts;
}

/** The column with the longest name that a text begins with, and how much of the text names it. */
function columnAtStart(table: TypedTable, text: string): { column: TypedColumn; length: number } | undefined {
  const small = text.toLowerCase();
  const starts = ({ name }: TypedColumn): boolean =>
    [name, name.replaceAll("_", " ")].some((form) => small.startsWith(form.toLowerCase()));
  const column = table.columns.filter(starts).toSorted((a, b) => b.name.length - a.name.length)[0];
  if (column) return { column, length: column.name.length };
  const first = /^[\p{L}\p{N}]+/u.exec(small)?.[0];
  const partly = first === undefined ? undefined : columnWithWord(table, normal(first));
  return first !== undefined && partly ? { column: partly, length: first.length } : undefined;
}

/** A column's name, then the comparison, then the value. */
function conditionOf(table: TypedTable, part: string): Condition | { why: string } {
  const text = part.trim();
  const named = columnAtStart(table, text);
  if (!named) return { why: `I know no column in “${text}”` };
  const { column, length } = named;
  const rest = text.slice(length);
  for (const [comparison, phrase] of PHRASES) {
    const match = phrase.exec(rest.toLowerCase());
    const value = match ? unquote(rest.slice(match[0].length)) : "";
    if (value !== "") return { column, comparison, value };
  }
  return { why: `I do not understand the condition “${text}”` };
}

function unquote(value: string): string {
  const trimmed = value.trim();
  return /^(["'“‘„]).*(["'”’“])$/.test(trimmed) && trimmed.length > 1 ? trimmed.slice(1, -1) : trimmed;
}
