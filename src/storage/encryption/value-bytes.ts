import { parse, stringify } from "devalue";
import { invalidInput } from "../../run/errors.js";
import { weigh } from "../../run/size.js";

/** How a value was written: as JSON, with what JSON has no form for (dates, maps, `undefined`), or as the bytes it is. */
const JSON_FORM = 0;
const RICH_FORM = 1;
const BYTES_FORM = 2;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * A value as bytes. What JSON has no form for is kept as IndexedDB keeps it.
 *
 * Errors: RunnerError `invalid-input` for what has no form at all (a Blob, for example); a DataCloneError as IndexedDB
 * throws it.
 */
export function toBytes(value: unknown): { readonly form: number; readonly bytes: Uint8Array<ArrayBuffer> } {
  if (value instanceof Uint8Array && value.buffer instanceof ArrayBuffer) {
    // Its buffer was seen to be no shared one.
    return { form: BYTES_FORM, bytes: value as Uint8Array<ArrayBuffer> };
  }
  if (value !== undefined && weigh(value, {}).odd === undefined) {
    return { form: JSON_FORM, bytes: encoder.encode(JSON.stringify(value)) };
  }
  // As IndexedDB: an instance of a class is stored as a plain object.
  const copy: unknown = structuredClone(value);
  try {
    return { form: RICH_FORM, bytes: encoder.encode(stringify(copy)) };
  } catch (cause) {
    throw invalidInput("value", `A value cannot be encrypted: ${cause instanceof Error ? cause.message : "unknown"}`);
  }
}

/** Errors: any, for bytes that {@link toBytes} did not write. */
export function fromBytes(form: number, bytes: ArrayBuffer): unknown {
  if (form === BYTES_FORM) return new Uint8Array(bytes);
  if (form !== JSON_FORM && form !== RICH_FORM) throw new RangeError();
  const text = decoder.decode(bytes);
  return form === JSON_FORM ? (JSON.parse(text) as unknown) : (parse(text) as unknown);
}
