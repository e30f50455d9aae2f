/**
 * Encodes payloads (events, messages, states, inputs) for storage, for example to encrypt them. Ids, indexes, times,
 * counts, statuses and open constructs are not encoded, so any host can settle any run without reading its content.
 *
 * `decode(encode(x))` must equal `x`. Both are called outside of transactions only, so they may be slow.
 */
export interface PayloadCodec {
  encode(value: unknown): Promise<unknown>;
  decode(stored: unknown): Promise<unknown>;
}

export const identityCodec: PayloadCodec = {
  encode: (value) => Promise.resolve(value),
  decode: (stored) => Promise.resolve(stored),
};
