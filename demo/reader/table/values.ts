/** Cells that stand for no value. */
const MISSING = new Set(["", "na", "n/a", "#n/a", "nan", "null", "-", "–", "—"]);

export const isMissing = (cell: string): boolean => cell.length < 5 && MISSING.has(cell.toLowerCase());

/** Whether the comma or the point divides whole and part. */
export type Decimal = "." | ",";

const SIGNED = /^([-+−]?)\s*([€$£¥]?)\s*([-+−]?)([\d.,'  ]*\d(?:[eE][-+]?\d{1,3})?|\.\d+)\s*(%|€|\$|£|¥)?$/u;
const ENGLISH = /^(?:\d+|\d{1,3}(?:[,' ]\d{3})+)?(?:\.\d+)?(?:[eE][-+]?\d{1,3})?$/;
const GERMAN = /^(?:\d+|\d{1,3}(?:[.' ]\d{3})+)?(?:,\d+)?(?:[eE][-+]?\d{1,3})?$/;

export interface NumberCell {
  readonly value: number;
  readonly unit: string;
}

/** Reads a number with thousands marks, a sign of money or per cent. */
export function readNumber(cell: string, decimal: Decimal): NumberCell | undefined {
  if (cell.length > 40) return undefined;
  const match = SIGNED.exec(cell);
  if (!match) return undefined;
  const [, sign = "", before = "", inner = "", digits = "", after = ""] = match;
  if ((sign !== "" && inner !== "") || (before !== "" && after !== "")) return undefined;
  const body = digits.replace(/[  ]/g, " ");
  if (!(decimal === "." ? ENGLISH : GERMAN).test(body)) return undefined;
  const plain = decimal === "." ? body.replace(/[,' ]/g, "") : body.replace(/[.' ]/g, "").replace(",", ".");
  const value = Number(plain);
  if (!Number.isFinite(value)) return undefined;
  return { value: /[-−]/.test(sign + inner) ? -value : value, unit: before || after };
}

/** "0049" and "01067" are names made of digits. */
export const isCode = (cell: string): boolean => /^0\d+$/.test(cell) || /^\d{16,}$/.test(cell);

/** Which of the two a column uses, by the cells that only one of them explains. */
export function decimalOf(cells: Iterable<string>): Decimal {
  let comma = 0;
  let point = 0;
  for (const cell of cells) {
    const english = readNumber(cell, ".") !== undefined;
    const german = readNumber(cell, ",") !== undefined;
    if (german && !english) comma++;
    if (english && !german) point++;
  }
  return comma > point ? "," : ".";
}

/** In which order a column writes its dates. */
export type DateOrder = "ymd" | "dmy" | "mdy";

const ISO =
  /^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?$/;
const LOCAL = /^(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ ,]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?$/;

/** Reads a date as ms since the Unix epoch. Times of day are taken as they are written; zones are not applied. */
export function readDate(cell: string, order: DateOrder): number | undefined {
  if (cell.length < 8 || cell.length > 35) return undefined;
  const iso = ISO.exec(cell);
  if (iso) return utc(iso[1], iso[2], iso[3], iso[4], iso[5], iso[6]);
  const local = LOCAL.exec(cell);
  if (!local) return undefined;
  const [, a, , b, year, hour, minute, second] = local;
  return order === "mdy" ? utc(year, a, b, hour, minute, second) : utc(year, b, a, hour, minute, second);
}

function utc(...parts: (string | undefined)[]): number | undefined {
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = parts.map((part) => Number(part ?? 0));
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || second > 60) return undefined;
  const date = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  return date.getUTCMonth() === month - 1 ? date.getTime() : undefined;
}

/** Points mean day first; with other marks a number over 12 decides, else the month stands first. */
export function dateOrderOf(cells: Iterable<string>): DateOrder {
  let order: DateOrder = "ymd";
  for (const cell of cells) {
    const local = LOCAL.exec(cell);
    if (!local) continue;
    if (local[2] === "." || Number(local[1]) > 12) return "dmy";
    order = "mdy";
  }
  return order;
}

/** A number or a date, however written: no name of a column. */
export const looksTyped = (cell: string): boolean =>
  readNumber(cell, ".") !== undefined || readNumber(cell, ",") !== undefined || readDate(cell, "dmy") !== undefined;
