import { RunnerError } from "../run/errors.js";

/**
 * Where a payload is stored, and what is stored beside it unencoded: the kind of record, ids and numbers. What was encoded
 * for one place must not decode at another.
 */
export type PayloadPlace = readonly (string | number | undefined)[];

/**
 * Encodes payloads (events, messages, states, inputs, titles) for storage, for example to encrypt them. Ids, indexes,
 * times, counts, statuses and open constructs are not encoded, so any host can settle any run without reading its content.
 *
 * `decode(encode(x, place), place)` must equal `x`. Both are called outside of transactions only, so they may be slow.
 */
export interface PayloadCodec {
  encode(value: unknown, place: PayloadPlace): Promise<unknown>;
  /** Errors: RunnerError `locked` if the key is missing; any other for a value that was not encoded for this place. */
  decode(stored: unknown, place: PayloadPlace): Promise<unknown>;
  /** A short text that stands for `text`: equal for equal ones, and telling nothing of it. Default: the text itself. */
  digest?(text: string): Promise<string>;
  /** Errors: RunnerError `locked` or `wrong-key`, as for any value. */
  ready?(): Promise<void>;
  /**
   * What it has made is about to be written: throws where it was made for another database, which had this one's name. Absent:
   * it has no keys in the database.
   *
   * @param keys the record of the keys in the transaction of the write; undefined if there is none
   * @param payloads also records with payloads in their fields
   * @internal
   */
  refuseForeign?(keys: unknown, payloads: readonly unknown[]): void;
  /** It stores values as they are. */
  readonly isPlain?: boolean;
}

/** The first byte of what {@link PayloadCodec}s of this library made of a value. Plain payloads are never bare bytes. */
export const SEALED = 0xe1;

export const isSealed = (stored: unknown): stored is Uint8Array<ArrayBuffer> =>
  stored instanceof Uint8Array && stored[0] === SEALED;

/**
 * Stores values as they are. It reads nothing that is encrypted, and each of its writes must refuse an encrypted database
 * in its own transaction.
 */
export const plainCodec: PayloadCodec = {
  isPlain: true,
  encode: (value) => Promise.resolve(value),
  decode: (stored) => (isSealed(stored) ? Promise.reject(new RunnerError("locked")) : Promise.resolve(stored)),
};

/** Where a database's keys are, in errors about them. */
export const KEYS_PLACE = "keys";

/** Not about the record, which may be in order: the key is missing, the keys or the database cannot be read. */
export const isNotOfRecord = (error: unknown): boolean =>
  RunnerError.is(error) && !(error.code === "corrupt-record" && error.details["store"] !== KEYS_PLACE);

/** Decodes a payload. Errors: RunnerError, `refused()` for what was not encoded for this place. */
export async function decoded(
  codec: PayloadCodec,
  stored: unknown,
  place: PayloadPlace,
  refused: () => RunnerError,
): Promise<unknown> {
  try {
    return await codec.decode(stored, place);
  } catch (error) {
    throw isNotOfRecord(error) ? error : refused();
  }
}

/** What digests look like: no fingerprint of a request does, which has a colon. */
const DIGEST = /^[0-9a-f]{32}$/;

/**
 * The short text that stands for a fingerprint, see {@link PayloadCodec.digest}. One that another device has made stays, so
 * that the run has the same on all devices.
 */
export const digestOf = (codec: PayloadCodec, text: string): Promise<string> | string =>
  DIGEST.test(text) ? text : (codec.digest?.(text) ?? text);
