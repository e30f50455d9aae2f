import { invalidInput, RunnerError, notEncrypted } from "../../run/errors.js";
import type { KeyForm } from "../../run/types.js";
import { KEYS_PLACE } from "../codec.js";

/*
 * Keys by Web Crypto. A database's content is encrypted with data keys of its own (AES-GCM, 256 bits, random); they are
 * stored wrapped by the key that the user gives, so that it can be changed without encrypting everything anew.
 */

/** Rounds of PBKDF2 with SHA-256, as OWASP's Password Storage Cheat Sheet recommends. */
const ROUNDS = 600_000;
const GCM = "AES-GCM";
const PBKDF2 = "PBKDF2";
const IV_BYTES = 12;

type Bytes = Uint8Array<ArrayBuffer>;

/** A key on its way to a worker: bytes are those of a passphrase. */
export type SentKey = CryptoKey | Bytes;

/**
 * The key could not be had this time. No record is at fault: nothing may be taken for unreadable.
 *
 * @param cause stays in this context: its message may hold an address or a token
 * @param isLate it may still come
 */
export function keyFailed(cause: unknown, isLate = false): RunnerError {
  const what = isLate
    ? "its key has not come yet: it is used when it comes"
    : "getting its key failed: it is asked for again at the next use";
  return new RunnerError("locked", {}, { message: `The database is encrypted, and ${what}`, cause });
}

/** A key, encrypted. */
export interface WrappedKey {
  readonly iv: Bytes;
  readonly wrapped: Bytes;
}

/** The keys of a database as they are stored in it. */
export interface KeyRecord {
  readonly format: 1;
  /** For a passphrase: what it is derived with. */
  readonly salt: Bytes;
  readonly rounds: number;
  /** The data key of new records. */
  readonly current: number;
  /** Ids ascend from {@link newFirstId}; from 1 in databases of older builds. */
  readonly keys: readonly (WrappedKey & { readonly id: number })[];
  /** Makes digests; never changes, so that equal texts have equal ones. */
  readonly digest: WrappedKey;
  /** The data key that was current when everything was last encrypted anew; 0: never. Older ones stay: a host may use them. */
  readonly caughtUp: number;
  /** How often somebody has locked it for all: a key that was kept since before that does not unlock it by itself. */
  readonly locks: number;
  /** Everything in the database is encrypted: what is not was put there by somebody else. */
  readonly isWhole: boolean;
}

export type KeyName = number | "digest";

export const randomBytes = (length: number): Bytes => crypto.getRandomValues(new Uint8Array(length));
export const newIv = (): Bytes => randomBytes(IV_BYTES);

const encoder = new TextEncoder();
export const bytesOf = (data: unknown): Bytes => encoder.encode(JSON.stringify(data));

/** A keyed digest, as 32 hexadecimal digits. */
export async function digestBy(key: CryptoKey, data: unknown): Promise<string> {
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytesOf(data)));
  return [...mac.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @throws RunnerError `invalid-input` where the context is not secure (plain http) */
function subtle(): SubtleCrypto {
  // Absent in an insecure context, whatever the types say.
  const found = (globalThis.crypto as Crypto | undefined)?.subtle as SubtleCrypto | undefined;
  if (found === undefined) {
    throw invalidInput("encryption", "Encryption needs a secure context: serve the page by https, or from localhost");
  }
  return found;
}

/** A new random key to unlock databases with. It cannot be extracted: keep it in an IndexedDB of your own, as it is. */
export const createEncryptionKey = (): Promise<CryptoKey> =>
  subtle().generateKey({ name: GCM, length: 256 }, false, ["wrapKey", "unwrapKey"]);

const passphraseBytes = (passphrase: string): Bytes => encoder.encode(passphrase.normalize("NFKC"));

/**
 * The given key in the form that is kept in memory and handed on: a passphrase only as what keys are derived from.
 *
 * @param given also the bytes of a passphrase
 * Errors: RunnerError `invalid-input`.
 */
export async function toKey(given: SentKey | string): Promise<CryptoKey> {
  const bytes = typeof given === "string" ? passphraseBytes(given) : given;
  if (bytes instanceof Uint8Array) {
    if (bytes.length === 0) throw invalidInput("key", "A passphrase must not be empty");
    return subtle().importKey("raw", bytes, PBKDF2, false, ["deriveKey"]);
  }
  const { algorithm, usages } = (bytes as Partial<CryptoKey> | null) ?? {};
  const fits =
    algorithm?.name === PBKDF2
      ? usages?.includes("deriveKey")
      : algorithm?.name === GCM && usages?.includes("wrapKey") === true && usages.includes("unwrapKey");
  if (fits === true) return bytes;
  throw invalidInput(
    "key",
    "The key must be a passphrase, or an AES-GCM CryptoKey that may wrap and unwrap keys (createEncryptionKey makes one)",
  );
}

/**
 * The given key as it crosses to a host.
 *
 * Errors: RunnerError `invalid-input`.
 */
export async function toSent(given: CryptoKey | string, form: KeyForm): Promise<SentKey> {
  if (form === "nothing") throw notEncrypted();
  const key = await toKey(given);
  if (form === "keys") return key;
  if (typeof given === "string") return passphraseBytes(given);
  throw invalidInput(
    "key",
    "This browser can hand no CryptoKey to a SharedWorker: give a passphrase, or start the host in a dedicated worker (hosts: { dedicated })",
  );
}

/** Whether a `CryptoKey` can be handed to this worker: WebKit can neither send one to a SharedWorker nor store it there. */
export async function canSendKeys(): Promise<boolean> {
  try {
    structuredClone(await subtle().importKey("raw", randomBytes(16), GCM, false, ["encrypt"]));
    return true;
  } catch {
    return false;
  }
}

/** The key that wraps the data keys of the database of this record. */
export async function wrappingKey(
  key: CryptoKey,
  { salt, rounds }: Pick<KeyRecord, "salt" | "rounds">,
): Promise<CryptoKey> {
  if (key.algorithm.name !== PBKDF2) return key;
  const how = { name: PBKDF2, hash: "SHA-256", salt, iterations: rounds };
  return subtle().deriveKey(how, key, { name: GCM, length: 256 }, false, ["wrapKey", "unwrapKey"]);
}

/** What of the record is not a key. */
type Rest = Pick<KeyRecord, "current" | "caughtUp"> & { readonly keys: readonly { readonly id: number }[] };

/** What a wrapped key is bound to: it unwraps nowhere else. The one for digests, which is always unwrapped, to the rest. */
const boundTo = (name: KeyName, { current, caughtUp, keys }: Rest): Bytes =>
  bytesOf([
    "ag-ui-local-runtime key",
    name,
    ...(name === "digest" ? [current, caughtUp, keys.map(({ id }) => id)] : []),
  ]);

const kindOf = (name: KeyName) =>
  name === "digest"
    ? { algorithm: { name: "HMAC", hash: "SHA-256", length: 256 }, usages: ["sign"] as const }
    : { algorithm: { name: GCM, length: 256 }, usages: ["encrypt", "decrypt"] as const };

async function wrap(by: CryptoKey, key: CryptoKey, name: KeyName, rest: Rest): Promise<WrappedKey> {
  const iv = newIv();
  const additionalData = boundTo(name, rest);
  return { iv, wrapped: new Uint8Array(await subtle().wrapKey("raw", key, by, { name: GCM, iv, additionalData })) };
}

/** @param extractable only to wrap it anew */
async function unwrap(by: CryptoKey, from: WrappedKey, name: KeyName, rest: Rest, extractable = false) {
  const { algorithm, usages } = kindOf(name);
  const additionalData = boundTo(name, rest);
  const how = { name: GCM, iv: from.iv, additionalData };
  try {
    return await subtle().unwrapKey("raw", from.wrapped, by, how, algorithm, extractable, [...usages]);
  } catch (cause) {
    throw new RunnerError("wrong-key", {}, { cause });
  }
}

async function newKey(by: CryptoKey, name: KeyName, rest: Rest): Promise<WrappedKey> {
  const { algorithm, usages } = kindOf(name);
  const made = await subtle().generateKey(algorithm, true, [...usages]);
  // Of these algorithms there are no pairs.
  return wrap(by, made as CryptoKey, name, rest);
}

/** The id of a database's first data key: by its id, what was encrypted for another database is told from what is its own. */
export const newFirstId = (): number => 1 + (new DataView(randomBytes(4).buffer).getUint32(0) >>> 2);

/**
 * @param isWhole nothing is stored yet
 * @param first the id of the first data key
 */
export async function newRecord(key: CryptoKey, isWhole: boolean, first = 1): Promise<KeyRecord> {
  const derivation = { salt: randomBytes(16), rounds: ROUNDS };
  const by = await wrappingKey(key, derivation);
  const rest = { current: first, caughtUp: isWhole ? first : 0, keys: [{ id: first }] };
  const [made, digest] = await Promise.all([newKey(by, first, rest), newKey(by, "digest", rest)]);
  return { format: 1, ...derivation, ...rest, keys: [{ id: first, ...made }], digest, locks: 0, isWhole };
}

/** One of the database's keys. Errors: RunnerError `wrong-key`. */
export function keyOf(by: CryptoKey, record: KeyRecord, name: KeyName): Promise<CryptoKey> {
  const wrapped = name === "digest" ? record.digest : record.keys.find(({ id }) => id === name);
  if (wrapped === undefined) throw new RunnerError("corrupt-record", { store: KEYS_PLACE });
  return unwrap(by, wrapped, name, record);
}

export interface KeyChange {
  /** The key that unlocks the database from now on. Default: the same. */
  readonly key?: CryptoKey;
  /** New records get a new data key. */
  readonly rotates?: boolean;
  /** Everything was encrypted with this data key, or a newer one. */
  readonly caughtUp?: number;
}

/** The record after a change. Errors: RunnerError `wrong-key`. */
export async function changedRecord(key: CryptoKey, record: KeyRecord, change: KeyChange): Promise<KeyRecord> {
  const from = await wrappingKey(key, record);
  const { caughtUp = record.caughtUp } = change;
  const derivation = change.key === undefined ? record : { salt: randomBytes(16), rounds: ROUNDS };
  const by = change.key === undefined ? from : await wrappingKey(change.key, derivation);
  const ids = record.keys.map(({ id }) => id);
  const added = change.rotates === true ? [Math.max(...ids) + 1] : [];
  const rest = {
    current: added[0] ?? record.current,
    caughtUp,
    keys: [...ids, ...added].map((id) => ({ id })),
  };
  const again = async (old: WrappedKey, name: KeyName) =>
    wrap(by, await unwrap(from, old, name, record, true), name, rest);
  const keys = await Promise.all([
    ...record.keys.map(async (old) => ({ id: old.id, ...(await again(old, old.id)) })),
    ...added.map(async (id) => ({ id, ...(await newKey(by, id, rest)) })),
  ]);
  const { salt, rounds } = derivation;
  const digest = await again(record.digest, "digest");
  return { format: 1, salt, rounds, ...rest, keys, digest, locks: record.locks, isWhole: caughtUp > 0 };
}

const isBytes = (value: unknown): boolean => value instanceof Uint8Array;
const isWrapped = (value: unknown): boolean => {
  const { iv, wrapped } = (value ?? {}) as Partial<WrappedKey>;
  return isBytes(iv) && isBytes(wrapped);
};

/** @throws RunnerError `corrupt-record`; `outdated` for the record of a newer version */
export function checkKeyRecord(stored: unknown): KeyRecord | undefined {
  if (stored === undefined) return undefined;
  const record = (stored ?? {}) as Partial<KeyRecord>;
  if (typeof record.format === "number" && record.format > 1) throw new RunnerError("outdated");
  const { keys, rounds, isWhole } = record;
  const isValid =
    record.format === 1 &&
    isBytes(record.salt) &&
    // A forged record must not keep the host busy for hours.
    Number.isSafeInteger(rounds) &&
    rounds! >= ROUNDS / 10 &&
    rounds! <= ROUNDS * 10 &&
    Array.isArray(keys) &&
    keys.every((key) => isWrapped(key) && Number.isSafeInteger(key.id)) &&
    keys.some(({ id }) => id === record.current) &&
    isWrapped(record.digest) &&
    Number.isSafeInteger(record.caughtUp) &&
    Number.isSafeInteger(record.locks) &&
    isWhole === record.caughtUp! > 0;
  if (!isValid) throw new RunnerError("corrupt-record", { store: KEYS_PLACE });
  // Each field was checked.
  return record as KeyRecord;
}
