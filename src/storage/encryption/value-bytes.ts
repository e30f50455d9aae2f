import { parse, stringify } from "devalue";
import { invalidInput } from "../../run/errors.js";

/** How a value was written: as JSON, with what JSON has no form for (dates, maps, `undefined`), or as the bytes it is. */
const JSON_FORM = 0;
const RICH_FORM = 1;
const BYTES_FORM = 2;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * A value as bytes. What JSON has no form for is kept as IndexedDB keeps it.
 *
 * Errors: RunnerError `invalid-input` for what has no form at all (a Blob, for example), whose field is where it is in
 * `value`; a DataCloneError as IndexedDB throws it.
 */
export function toBytes(value: unknown): { readonly form: number; readonly bytes: Uint8Array<ArrayBuffer> } {
  if (value instanceof Uint8Array && value.buffer instanceof ArrayBuffer) {
    // Its buffer was seen to be no shared one.
    return { form: BYTES_FORM, bytes: value as Uint8Array<ArrayBuffer> };
  }
  if (isJson(value)) return { form: JSON_FORM, bytes: encoder.encode(JSON.stringify(value)) };
  // As IndexedDB: an instance of a class is stored as a plain object.
  const copy: unknown = structuredClone(value);
  try {
    // UTF-8 has no form for half a surrogate pair; JSON text, which this is, has.
    const text = stringify(copy, REDUCERS).replace(/[\ud800-\udfff]/gu, escaped);
    return { form: RICH_FORM, bytes: encoder.encode(text) };
  } catch (cause) {
    const { message: reason, path = "" } = cause as Error & { readonly path?: string }; // a DevalueError, or a RangeError
    throw invalidInput(`value${path}`, `A value cannot be encrypted: ${reason}`);
  }
}

/** Errors: any, for bytes that {@link toBytes} did not write. */
export function fromBytes(form: number, bytes: ArrayBuffer): unknown {
  if (form === BYTES_FORM) return new Uint8Array(bytes);
  if (form !== JSON_FORM && form !== RICH_FORM) throw new RangeError();
  const text = decoder.decode(bytes);
  return form === JSON_FORM ? (JSON.parse(text) as unknown) : (parse(text, REVIVERS) as unknown);
}

const escaped = (half: string): string => `\\u${half.charCodeAt(0).toString(16)}`;

/** A value that is deeper is taken for one that contains itself. */
const DEEPEST = 256;
/** A value of more objects is looked at again: one that has the same ones in many places has no end as JSON. */
const MANY = 100_000;

/** Whether its JSON is read back as an equal value, of about the same size. */
function isJson(value: unknown): boolean {
  const bounds = { left: MANY };
  if (!isJsonPart(value, DEEPEST, bounds)) return false;
  return bounds.left > 0 || isTree(value);
}

const isJsonLeaf = (value: unknown): boolean =>
  typeof value === "number"
    ? Number.isFinite(value) && !Object.is(value, -0)
    : typeof value === "string" || typeof value === "boolean" || value === null;

/** Without a look at what is in it. */
function isJsonNode(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null;
}

function isJsonPart(value: unknown, deeper: number, bounds: { left: number }): boolean {
  if (isJsonLeaf(value)) return true;
  if (deeper === 0 || !isJsonNode(value)) return false;
  if (--bounds.left < 0) return true;
  if (Array.isArray(value)) {
    // Not `every`, which passes over holes.
    for (let at = 0; at < value.length; at++) if (!isJsonPart(value[at], deeper - 1, bounds)) return false;
    return true;
  }
  for (const key of Object.keys(value)) {
    // It was seen to have the key.
    if (!isJsonPart((value as Record<string, unknown>)[key], deeper - 1, bounds)) return false;
  }
  return true;
}

/** The same, with a look at each object once: none is in two places. */
function isTree(value: unknown): boolean {
  const seen = new Set<object>();
  const left: object[] = [];
  const isPart = (inner: unknown): boolean => {
    if (isJsonLeaf(inner)) return true;
    if (!isJsonNode(inner) || seen.has(inner)) return false;
    seen.add(inner);
    left.push(inner);
    return true;
  };
  if (!isPart(value)) return false;
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (Array.isArray(next)) {
      for (let at = 0; at < next.length; at++) if (!isPart(next[at])) return false;
    } else if (!Object.values(next).every(isPart)) return false;
  }
  return true;
}

type Entries = readonly (readonly [string, unknown])[];

/** What devalue refuses, and IndexedDB keeps. */
const REDUCERS = {
  Own: (value: unknown): Entries | undefined =>
    typeof value === "object" && value !== null && Object.hasOwn(value, "__proto__")
      ? Object.entries(value)
      : undefined,
  Error: (value: unknown): unknown =>
    value instanceof Error
      ? [value.name, value.message, value.stack, ...("cause" in value ? [value.cause] : [])]
      : undefined,
};

const ERRORS: Readonly<Record<string, ErrorConstructor>> = {
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

const REVIVERS = {
  Own: (entries: Entries): object => Object.fromEntries(entries),
  Error: ([name, message, stack, ...cause]: readonly [string, string, string | undefined, ...unknown[]]): Error => {
    const options = cause.length > 0 ? { cause: cause[0] } : undefined;
    const error = new (Object.hasOwn(ERRORS, name) ? ERRORS[name]! : Error)(message, options);
    Object.defineProperty(error, "stack", { value: stack, writable: true, configurable: true });
    return error;
  },
};
