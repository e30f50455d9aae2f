import { SEALED, type PayloadPlace } from "../codec.js";
import { bytesOf, newIv } from "./keys.js";
import { fromBytes, toBytes } from "./value-bytes.js";

/*
 * The form of an encrypted payload: SEALED, form of the value, id of the data key (4 bytes, big-endian), initialization
 * vector (12 bytes), ciphertext and tag. What precedes the vector is authenticated, as is the payload's place.
 */
const HEADER = 6;
const IV_END = HEADER + 12;
const TAG = 16;

/** A data key and its id. */
export interface DataKey {
  readonly id: number;
  readonly key: CryptoKey;
}

/** The key that a payload is encrypted with; undefined for what is too short to be one. */
export const keyIdOf = (sealed: Uint8Array): number | undefined =>
  sealed.length < IV_END + TAG ? undefined : new DataView(sealed.buffer, sealed.byteOffset).getUint32(2);

const gcm = (header: Uint8Array, iv: Uint8Array<ArrayBuffer>, place: PayloadPlace): AesGcmParams => ({
  name: "AES-GCM",
  iv,
  additionalData: bytesOf([[...header], ...place.map((part) => part ?? null)]),
});

/** Encrypts a value for its place. Errors: see {@link toBytes}. */
export async function seal(
  { id, key }: DataKey,
  value: unknown,
  place: PayloadPlace,
): Promise<Uint8Array<ArrayBuffer>> {
  const { form, bytes } = toBytes(value);
  const header = new Uint8Array(HEADER);
  header.set([SEALED, form]);
  new DataView(header.buffer).setUint32(2, id);
  const iv = newIv();
  const encrypted = await crypto.subtle.encrypt(gcm(header, iv, place), key, bytes);
  const sealed = new Uint8Array(IV_END + encrypted.byteLength);
  sealed.set(header);
  sealed.set(iv, HEADER);
  sealed.set(new Uint8Array(encrypted), IV_END);
  return sealed;
}

/** The value. Errors: any, for what was not sealed with this key for this place. */
export async function open({ key }: DataKey, sealed: Uint8Array<ArrayBuffer>, place: PayloadPlace): Promise<unknown> {
  const header = sealed.subarray(0, HEADER);
  const iv = sealed.subarray(HEADER, IV_END);
  const bytes = await crypto.subtle.decrypt(gcm(header, iv, place), key, sealed.subarray(IV_END));
  return fromBytes(sealed[1]!, bytes);
}
