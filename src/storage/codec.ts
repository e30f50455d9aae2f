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
  /** It stores values as they are. */
  readonly isPlain?: boolean;
}

/** The first byte of what {@link PayloadCodec}s of this library made of a value. Plain payloads are never bare bytes. */
export const SEALED = 0xe1;

export const isSealed = (stored: unknown): stored is Uint8Array<ArrayBuffer> =>
  stored instanceof Uint8Array && stored[0] === SEALED;

/** Stores values as they are, unless the database is encrypted: then nothing can be read or written without the key. */
export const plainCodec = (isEncrypted: () => Promise<boolean>): PayloadCodec => {
  let encrypted: Promise<boolean> | undefined;
  return {
    isPlain: true,
    encode: async (value) => {
      // Asked once: where somebody encrypts the database later, claims ask again, and what was written is encrypted then.
      encrypted ??= isEncrypted();
      if (await encrypted) throw new RunnerError("locked");
      return value;
    },
    decode: (stored) => (isSealed(stored) ? Promise.reject(new RunnerError("locked")) : Promise.resolve(stored)),
  };
};

/** The host does not have the key: the record itself may be in order. */
export const isKeyMissing = (error: unknown): boolean =>
  RunnerError.is(error, "locked") || RunnerError.is(error, "wrong-key");

/** The short text that stands for another one, see {@link PayloadCodec.digest}. */
export const digestOf = (codec: PayloadCodec, text: string): Promise<string> | string => codec.digest?.(text) ?? text;
