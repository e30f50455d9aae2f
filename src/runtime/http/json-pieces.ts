import { sizeOf } from "../../run/size.js";

/** Target length of a piece, in UTF-16 code units. */
export const PIECE_LENGTH = 64 * 1024;
/** Values nested deeper are written as one piece. */
const MAX_DEPTH = 100;

const isSmall = (value: unknown): boolean => sizeOf(value, PIECE_LENGTH) < PIECE_LENGTH;

/** `JSON.stringify`; a BigInt, which an older build may have recorded, becomes a string. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "bigint" ? String(inner) : inner));
  }
}

/** {@link jsonText} in pieces, generated lazily: a slow reader holds one piece, not the whole text. */
export function* jsonPieces(value: unknown, depth = 0): Generator<string, void> {
  if (typeof value === "string" && value.length > PIECE_LENGTH) {
    yield '"';
    // Half of a surrogate pair is escaped; a parser joins the two halves.
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

/** Plain objects; those with `toJSON` are left to `JSON.stringify`. */
function isFields(value: unknown): value is object {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.prototype.toString.call(value) === "[object Object]" &&
    !("toJSON" in value)
  );
}

/** `JSON.stringify` omits the other types. */
const isWritten = (value: unknown): boolean => !["undefined", "function", "symbol"].includes(typeof value);

/** Joins pieces to about {@link PIECE_LENGTH} and encodes them as UTF-8. */
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

/** The body of a JSON response; a large one is generated while it is read. */
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
