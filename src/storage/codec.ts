/**
 * What stands between a payload (events, messages, states, inputs) and the record that keeps it. Ids, indexes, times,
 * counts, statuses and open constructs stay outside it, so any host can settle any run without reading its content.
 *
 * `decode(encode(x))` must equal `x`. Both are called outside of transactions only, so they may take their time.
 */
export interface PayloadCodec {
  encode(value: unknown): Promise<unknown>;
  decode(stored: unknown): Promise<unknown>;
}

export const identityCodec: PayloadCodec = {
  encode: (value) => Promise.resolve(value),
  decode: (stored) => Promise.resolve(stored),
};
