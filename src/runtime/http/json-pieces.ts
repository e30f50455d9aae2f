import { sizeOf } from "../../run/size.js";

/** A piece of text is about so long, in UTF-16 code units. */
export const PIECE_LENGTH = 64 * 1024;
/** What is nested deeper is one piece. */
const MAX_DEPTH = 100;

const isSmall = (value: unknown): boolean => sizeOf(value, PIECE_LENGTH) < PIECE_LENGTH;

/** What `JSON.stringify` gives; where it fails at a BigInt, which an older build may have recorded, that is text. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "bigint" ? String(inner) : inner));
  }
}

/** What {@link jsonText} gives, in pieces that are made one by one: whoever reads slowly holds one of them, not the whole. */
export function* jsonPieces(value: unknown, depth = 0): Generator<string, void> {
  if (typeof value === "string" && value.length > PIECE_LENGTH) {
    yield '"';
    // Half of a surrogate pair is written as an escape, and two halves are read as the pair.
    for (let at = 0; at < value.length; at += PIECE_LENGTH) {
      yield JSON.stringify(value.slice(at, at + PIECE_LENGTH)).slice(1, -1);
    }
    yield '"';
    return;
  }
  const isList = Array.isArray(value);
  if ((!isList && !isFields(value)) || depth >= MAX_DEPTH || isSmall(value)) {
    yield jsonText(value);
    return;
  }
  let before = isList ? "[" : "{";
  if (isList) {
    for (const item of value as readonly unknown[]) {
      yield before;
      yield* jsonPieces(isWritten(item) ? item : null, depth + 1);
      before = ",";
    }
  } else {
    for (const [key, item] of Object.entries(value)) {
      if (!isWritten(item)) continue;
      yield `${before}${JSON.stringify(key)}:`;
      yield* jsonPieces(item, depth + 1);
      before = ",";
    }
  }
  yield `${before === "," ? "" : before}${isList ? "]" : "}"}`;
}

/** A plain object that says itself how it is written is left to `JSON.stringify`. */
function isFields(value: unknown): value is object {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.prototype.toString.call(value) === "[object Object]" &&
    !("toJSON" in value)
  );
}

/** JSON has nothing for it. */
const isWritten = (value: unknown): boolean => !["undefined", "function", "symbol"].includes(typeof value);

/** Pieces of about {@link PIECE_LENGTH}, as bytes. */
export function* bytesOf(pieces: Iterable<string>): Generator<Uint8Array<ArrayBuffer>, void> {
  const utf8 = new TextEncoder();
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < PIECE_LENGTH) continue;
    yield utf8.encode(text);
    text = "";
  }
  if (text !== "") yield utf8.encode(text);
}

/** The body of an answer of JSON; one that is large is made as it is read. */
export function jsonBody(value: unknown): string | ReadableStream<Uint8Array<ArrayBuffer>> {
  if (isSmall(value)) return jsonText(value);
  const pieces = bytesOf(jsonPieces(value));
  return new ReadableStream(
    {
      pull(controller) {
        const { done, value: bytes } = pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(bytes);
      },
    },
    { highWaterMark: 0 },
  );
}
