/** The largest file that Reader takes, in bytes. */
export const MAX_FILE_BYTES = 5 * 1024 * 1024;

/** Names of files that Reader takes, with their types. */
const TYPES: readonly (readonly [extension: string, type: string])[] = [
  ["txt", "text/plain"],
  ["text", "text/plain"],
  ["log", "text/plain"],
  ["md", "text/markdown"],
  ["markdown", "text/markdown"],
  ["csv", "text/csv"],
  ["tsv", "text/tab-separated-values"],
  ["tab", "text/tab-separated-values"],
];

/** For the `accept` attribute of a file input. */
export const ACCEPT = TYPES.map(([extension]) => `.${extension}`).join(",");

export type IntakeErrorCode = "unsupported-type" | "too-large" | "empty" | "not-text" | "unreadable";

/** A file that Reader does not take. The message is written for the person who dropped it. */
export class IntakeError extends Error {
  override readonly name = "IntakeError";
  constructor(
    readonly code: IntakeErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface TextFile {
  readonly name: string;
  /** A MIME type without parameters. */
  readonly type: string;
  readonly text: string;
}

/** The part of `File` that is read. */
export type ReadableFile = Pick<File, "name" | "type" | "size" | "arrayBuffer">;

/**
 * Reads a dropped or chosen file as text: UTF-8, or UTF-16 with a byte order mark.
 * @throws {IntakeError}
 */
export async function readTextFile(file: ReadableFile): Promise<TextFile> {
  const name = cleanName(file.name);
  const type = typeOf(name, file.type);
  if (type === undefined) {
    throw new IntakeError(
      "unsupported-type",
      `“${name}” is not a kind of file that Reader knows. Drop a text, Markdown, CSV or TSV file, or save it as one of these first.${
        // A dropped folder comes as a file that has neither.
        file.type === "" && !name.includes(".") ? " If it is a folder, drop the files inside it." : ""
      }`,
    );
  }
  if (file.size > MAX_FILE_BYTES) {
    throw new IntakeError(
      "too-large",
      `“${name}” has ${megabytes(file.size)} MB, and Reader takes up to ${megabytes(MAX_FILE_BYTES)} MB. Split it and drop one part.`,
    );
  }
  if (file.size === 0) throw emptyFile(name);
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch (cause) {
    throw new IntakeError(
      "unreadable",
      `“${name}” could not be read. If it is a folder, drop the files inside it; if it was moved or is open elsewhere, drop it again.`,
      { cause },
    );
  }
  const text = decode(bytes, name);
  if (text.trim() === "") throw emptyFile(name);
  return { name, type, text };
}

/** What a pasted text is taken for, by its first lines. */
export function typeOfPaste(text: string): string {
  const lines = text.slice(0, 4_000).split("\n");
  if (text.length > 4_000) lines.pop();
  const filled = lines.filter((line) => line.trim() !== "");
  for (const [delimiter, type] of [
    ["\t", "text/tab-separated-values"],
    [";", "text/csv"],
    [",", "text/csv"],
  ] as const) {
    const counts = filled.map((line) => line.replace(/"[^"]*"/g, "").split(delimiter).length);
    // As many cells in each line, and no prose with a comma in each.
    if (filled.length >= 3 && counts[0]! > 1 && new Set(counts).size === 1 && !/, \w+ \w+ \w+/.test(text)) return type;
  }
  return lines.some((line) => /^#{1,6} \S/.test(line)) ? "text/markdown" : "text/plain";
}

function typeOf(name: string, given: string): string | undefined {
  const extension = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase();
  const known = TYPES.find(([one]) => one === extension);
  if (known) return known[1];
  const type = given.split(";")[0]?.trim().toLowerCase() ?? "";
  return TYPES.some(([, one]) => one === type) ? type : undefined;
}

function decode(bytes: Uint8Array, name: string): string {
  const [encoding, skip] = byteOrderMark(bytes);
  const body = bytes.subarray(skip);
  let text: string;
  try {
    text = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(body);
  } catch (cause) {
    throw notText(name, cause);
  }
  if (text.includes("\0")) throw notText(name);
  return text;
}

/** https://encoding.spec.whatwg.org/#bom-sniff */
function byteOrderMark(bytes: Uint8Array): ["utf-8" | "utf-16le" | "utf-16be", number] {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return ["utf-8", 3];
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return ["utf-16le", 2];
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return ["utf-16be", 2];
  return ["utf-8", 0];
}

const notText = (name: string, cause?: unknown): IntakeError =>
  new IntakeError(
    "not-text",
    `“${name}” is not readable as text. Save it as text with the encoding UTF-8 (in a spreadsheet: “CSV UTF-8”) and drop it again.`,
    cause === undefined ? undefined : { cause },
  );

const emptyFile = (name: string): IntakeError =>
  new IntakeError("empty", `“${name}” is empty. Choose a file with some text in it.`);

/** Rounded up: what is over the limit never reads like the limit. */
const megabytes = (bytes: number): string => (Math.ceil(bytes / (1024 * 102.4)) / 10).toFixed(1).replace(/\.0$/, "");

/** The last part of a path, without control characters, short enough for a label. */
export function cleanName(name: string): string {
  const last = name.split(/[\\/]/).at(-1) ?? "";
  // oxlint-disable-next-line no-control-regex
  const clean = last.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "").trim();
  return clean === "" ? "Unnamed file" : clean.toWellFormed().slice(0, 120);
}
