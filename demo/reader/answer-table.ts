import type { Means } from "./analyse.js";
import { clip, escapeInline, figure, many, table as markdownTable } from "./markdown.js";
import type { ReadTable } from "./prepare.js";
import { type Readable, rowsTable } from "./readable.js";
import { withUnit } from "./report.js";
import type { Events } from "./session.js";
import { setProgress } from "./state.js";
import { type Aggregate, aggregate, type Group } from "./table/aggregate.js";
import { NAMES, type TableQuestion, understand } from "./table/question.js";

/** Groups that are shown in words, and that stand in the result of the tool call. */
const MAX_SHOWN = 30;

/** Calculates where the question is a clear one to a table. Returns whether it has answered. */
export async function* answerTable(question: string, documents: readonly Readable[], means: Means): Events<boolean> {
  const { session, slices } = means;
  let unclear: { why: string; one: Readable } | undefined;
  for (const one of documents.toReversed()) {
    const { document, read } = one;
    if (read.kind !== "table" || !read.typed) continue;
    const table = read.typed;
    const understood = understand(table, question);
    if (understood.is === "unclear") unclear ??= { why: understood.why, one };
    if (understood.is !== "computable") continue;
    const asked = understood.question;
    yield* session.think(
      `This is a question I can calculate from all ${many(table.rows, "row")} of ${document.name}: ${describe(asked)}. `,
    );
    yield session.patch(setProgress({ documentId: document.id, name: document.name, phase: "Calculating", done: 0 }));
    const result = yield* session.call("Calculating", "query_table", argsOf(document.name, asked), async () => {
      const value = await aggregate(table, asked, slices);
      return { value, result: resultOf(asked, value) };
    });
    yield* session.think(
      `${many(result.matched, "row")} of ${figure(table.rows)} ${result.matched === 1 ? "fits" : "fit"}` +
        (result.skipped > 0
          ? `; ${many(result.skipped, "of these rows has", "of these rows have")} no value in ${asked.column?.name ?? "the column"} and ${result.skipped === 1 ? "stays" : "stay"} out.`
          : "."),
    );
    yield* session.endThinking();
    yield* session.say(say(asked, result, read, document.name));
    return true;
  }
  if (unclear) {
    const { why, one } = unclear;
    const names = one.read.kind === "table" ? one.read.table.columns.map(({ name }) => name) : [];
    yield* session.think(`It looks like a question to calculate, but ${why}. I search the rows instead. `);
    yield* session.say(
      `I could not calculate that: ${escapeInline(why)}. The columns are ${names.map((name) => `**${escapeInline(name)}**`).join(", ")}. I looked for the words instead.\n\n`,
    );
  }
  return false;
}

/** The question as it was understood, in words. */
function describe({ operation, column, by, where, extreme }: TableQuestion): string {
  const what = column ? `${NAMES[operation]} of ${column.name}` : "number of rows";
  const conditions = where.map((one) => `${one.column.name} ${one.comparison} ${one.value}`).join(" and ");
  return `${what}${by ? ` by ${by.name}` : ""}${conditions ? ` where ${conditions}` : ""}${extreme ? `, ${extreme} first` : ""}`;
}

function argsOf(document: string, { operation, column, by, where }: TableQuestion): object {
  return {
    document,
    operation,
    ...(column ? { column: column.name } : {}),
    ...(by ? { by: by.name } : {}),
    where: where.map((one) => ({ column: one.column.name, comparison: one.comparison, value: one.value })),
  };
}

function resultOf(question: TableQuestion, { groups, matched, skipped }: Aggregate): object {
  return {
    matched,
    skipped,
    groups: groups.slice(0, MAX_SHOWN).map((group) => ({
      ...(question.by ? { key: group.key } : {}),
      value: valueOf(question, group),
      rows: group.rows,
    })),
    ...(groups.length > MAX_SHOWN ? { more: groups.length - MAX_SHOWN } : {}),
  };
}

function valueOf({ column }: TableQuestion, { value }: Group): number | string | null {
  if (Number.isNaN(value)) return null;
  return column?.type === "date" ? new Date(value).toISOString().slice(0, 10) : value;
}

function show(question: TableQuestion, group: Group): string {
  const value = valueOf(question, group);
  if (value === null) return "–";
  if (typeof value === "string") return value;
  const unit = question.column?.type === "number" && question.operation !== "distinct" ? question.column.unit : "";
  return withUnit(figure(value), unit);
}

function say(question: TableQuestion, result: Aggregate, read: ReadTable, name: string): string {
  const first = result.groups[0];
  const what = capital(describe({ ...question, extreme: null }));
  if (!first || result.matched === 0) {
    return question.operation === "count" && !question.by
      ? `**0**: no row of ${escapeInline(name)} fits.\n`
      : `No row of ${escapeInline(name)} fits, so there is nothing to calculate.\n`;
  }
  if (!question.by) {
    if (Number.isNaN(first.value))
      return `${many(result.matched, "row fits", "rows fit")}, but none has a value in that column.\n`;
    if (question.operation === "count") return markdownTable([what], [[show(question, first)]], [true]);
    const kept = figure(result.matched - result.skipped);
    const head = markdownTable([what, "Rows counted"], [[show(question, first), kept]], [true, true]);
    return first.at === null ? head : `${head}The first row with it:\n\n${rowsTable(read, [first.at])}`;
  }
  const shown = result.groups.slice(0, MAX_SHOWN);
  const lead =
    question.extreme && first.key !== ""
      ? `**${escapeInline(clip(first.key, 80))}** has the ${question.extreme}: **${escapeInline(show(question, first))}**.\n\n`
      : "";
  const title = question.column ? `${capital(NAMES[question.operation])} of ${question.column.name}` : "Rows";
  const rows = shown.map((group) => [
    group.key || "(no value)",
    show(question, group),
    ...(question.column ? [figure(group.rows)] : []),
  ]);
  const head = [question.by.name, title, ...(question.column ? ["Rows"] : [])];
  const left = result.groups.length - shown.length;
  return (
    `${lead}${escapeInline(what)}:\n\n${markdownTable(head, rows, [false, true, true])}` +
    (left > 0 ? `${many(left, "further group")} not shown.\n` : "") +
    (result.overflow ? "There are too many different values to keep apart: the groups are those met first.\n" : "")
  );
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
