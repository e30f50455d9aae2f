import { isRecord } from "../../run/json.js";
import { RunnerError } from "../../run/errors.js";
import { checkKeyRecord, type KeyRecord } from "../../storage/encryption/keys.js";

/*
 * The keys of a space, as they stand in its log: in a thread of their own, wrapped by the key that people give. The first
 * entry of it decides what the keys are; each later one has the same keys, wrapped by another key.
 */

/**
 * History of what an encrypted space is made of: 1, the first. A device does not join a space of a later version.
 */
export const SEALED_VERSION = 1;

/** An entry of the thread of keys. */
export interface KeyEntry {
  /** The later ones are newer, see `mac`. */
  readonly number: number;
  readonly record: KeyRecord;
  /** Made with the keys themselves, of everything else and the name of the space. */
  readonly mac: string;
}

/** The largest entry of keys, in bytes, generously. */
const LARGEST = 64 * 1_024;
const BYTES = "base64:";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** A record as JSON: always the same text for the same one. */
export const keyText = (record: KeyRecord): string =>
  JSON.stringify(record, (_, value: unknown) =>
    value instanceof Uint8Array ? BYTES + btoa(String.fromCharCode(...value)) : value,
  );

/** Errors: any, for what {@link keyText} did not write. */
export function keyRecordOf(text: string): KeyRecord {
  const record: unknown = JSON.parse(text, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(BYTES)
      ? Uint8Array.from(atob(value.slice(BYTES.length)), (char) => char.charCodeAt(0))
      : value,
  );
  const checked = checkKeyRecord(record);
  if (checked === undefined) throw new RunnerError("corrupt-record");
  return checked;
}

export const keyEntryText = ({ number, record, mac }: KeyEntry): string =>
  JSON.stringify({ v: SEALED_VERSION, number, record: keyText(record), mac });

/** Undefined for what {@link keyEntryText} did not write. */
export function keyEntryIn(text: string): KeyEntry | undefined {
  const entry = decodeKeyEntry(encoder.encode(text));
  return entry === "newer" ? undefined : entry;
}

/** Undefined: it is none. `newer`: of a later version. */
export function decodeKeyEntry(body: Uint8Array): KeyEntry | "newer" | undefined {
  if (body.length > LARGEST) return undefined;
  try {
    const value: unknown = JSON.parse(decoder.decode(body));
    if (!isRecord(value)) return undefined;
    const { v, number, record, mac } = value;
    if (Number.isSafeInteger(v) && (v as number) > SEALED_VERSION) return "newer";
    if (v !== SEALED_VERSION || !Number.isSafeInteger(number)) return undefined;
    if (typeof record !== "string" || typeof mac !== "string") return undefined;
    return { number: number as number, record: keyRecordOf(record), mac };
  } catch (error) {
    return RunnerError.is(error, "outdated") ? "newer" : undefined;
  }
}
