import type { DBSchema, StoreNames, StoreValue } from "idb";
import { RunnerError } from "../../run/errors.js";
import { readable } from "../../run/readable.js";
import { sameValue } from "../../run/same-value.js";
import { sizeOf } from "../../run/size.js";
import { isNotOfRecord, type PayloadCodec, type PayloadPlace } from "../codec.js";
import type { KeyRing } from "../encryption/key-ring.js";
import { isRecord } from "./checks.js";
import { quietly, type DatabaseConnection } from "./database-connection.js";

/*
 * Encrypts what was stored before the database had a key, or before its data key was changed: each record only if it is
 * still as it was read. It can be cut off at any point: the next call starts over, and passes what is done.
 */

/** Records read, and replaced in one transaction, at once: at first, at most, and fewer where they are larger than this. */
const FIRST_PIECE = 4;
const PIECE = 32;
const PIECE_SIZE = 4_000_000;

/** Somebody may change records of a piece meanwhile: it is read again, so often at most. */
const TRIES = 4;

/** A payload in a record. */
export interface PayloadIn {
  readonly place: PayloadPlace;
  readonly stored: unknown;
  /** The record with another one in its place. */
  readonly with: (record: object, stored: unknown) => object;
}

/** The payload that a record has in one of its own fields, if it has one. */
export const fieldOf = (record: object, field: string, place: PayloadPlace): readonly PayloadIn[] =>
  Object.hasOwn(record, field)
    ? [
        {
          place,
          stored: (record as Readonly<Record<string, unknown>>)[field],
          with: (other, stored) => ({ ...other, [field]: stored }),
        },
      ]
    : [];

/** How the records of a store are encrypted. */
export interface RecordsOf<Value> {
  readonly payloadsIn: (record: Value) => readonly PayloadIn[];
  /** By default that of the keys. */
  readonly codec?: PayloadCodec;
  /** Fields that change too. They may change the places of payloads, which are then all encrypted anew. */
  readonly changesOf?: (record: Value) => Promise<Partial<Value> | undefined>;
}

/**
 * How it ended. `plain-left`: something has no encrypted form. `later`: something was changed again and again, or is still to
 * be left alone.
 */
export type Encrypted = "all" | "plain-left" | "later" | "stopped";

/**
 * Encrypts all stores of a database, if something in it may be behind.
 *
 * @returns whether something is left that a later call may encrypt
 */
export async function encryptStores(ring: KeyRing, stores: readonly (() => Promise<Encrypted>)[]): Promise<boolean> {
  const keys = await ring.behind();
  if (keys === undefined) return false;
  const ends = new Set<Encrypted>();
  for (const encrypt of stores) {
    ends.add(await encrypt());
    if (ends.has("stopped")) return false;
  }
  return ends.has("later") || (!ends.has("plain-left") && !(await ring.caughtUp(keys)));
}

interface Database<Schema extends DBSchema> {
  readonly connection: DatabaseConnection<Schema>;
  readonly ring: KeyRing;
  /** Stops it after the current piece. */
  readonly signal: AbortSignal | undefined;
}

/** Errors: RunnerError `locked` or `wrong-key`, or a storage code. */
export async function encryptRecords<Schema extends DBSchema, Name extends StoreNames<Schema>>(
  { connection, ring, signal }: Database<Schema>,
  store: Name,
  records: RecordsOf<StoreValue<Schema, Name>>,
): Promise<Encrypted> {
  let left: Encrypted = "all";
  let tries = 0;
  let most = FIRST_PIECE;
  for (let after: IDBValidKey | undefined; ;) {
    if (signal?.aborted === true) return "stopped";
    const range = after === undefined ? undefined : IDBKeyRange.lowerBound(after, true);
    const [keys, values] = await connection.read([store], (tx) =>
      Promise.all([tx.objectStore(store).getAllKeys(range, most), tx.objectStore(store).getAll(range, most)]),
    );
    const piece = await Promise.all(values.map((value) => encrypted(ring, value, records)));
    if (piece.includes("plain-left") && left === "all") left = "plain-left";
    if (piece.some((next) => typeof next === "function")) {
      const haveChanged = await connection.write([store], "relaxed", async (tx) => {
        const to = tx.objectStore(store);
        const changed = piece.map(async (next, at) => {
          if (typeof next !== "function") return false;
          const now = await to.get(keys[at]!);
          const put = now === undefined ? undefined : next(now);
          // The same record, with other payloads.
          if (put !== undefined) quietly(to.put(put as StoreValue<Schema, Name>));
          return now !== undefined && put === undefined;
        });
        return Promise.all(changed);
      });
      if (haveChanged.includes(true)) {
        if (++tries < TRIES) continue;
        left = "later";
      }
    }
    tries = 0;
    if (keys.length < most) return left;
    after = keys.at(-1) as IDBValidKey;
    most = sizeOf(values, PIECE_SIZE) > PIECE_SIZE ? Math.ceil(most / 4) : Math.min(PIECE, 2 * most);
  }
}

/**
 * @returns gives the encrypted record, if it is given the same one; undefined where there is nothing to do. What cannot be
 *   read stays as it is
 */
async function encrypted<Value>(
  ring: KeyRing,
  record: Value,
  { payloadsIn, codec = ring.codec, changesOf }: RecordsOf<Value>,
): Promise<((now: Value) => object | undefined) | "plain-left" | undefined> {
  if (!isRecord(record)) return undefined;
  const changes = await changesOf?.(record);
  const before = payloadsIn(record);
  const places = payloadsIn({ ...record, ...changes });
  const made: { readonly of: PayloadIn; readonly stored: unknown }[] = [];
  for (const [at, of] of before.entries()) {
    if (changes === undefined && (await ring.isCurrent(of.stored))) continue;
    let value: unknown;
    try {
      // Where all is encrypted, nothing plain is encrypted anew: it is not what was stored here.
      value = await codec.decode(of.stored, of.place);
    } catch (error) {
      if (isNotOfRecord(error)) throw error;
      // Nobody can. What is beside it may be plain.
      continue;
    }
    const stored = await encode(codec, value, places[at]!.place);
    if (stored === undefined) return "plain-left";
    made.push({ of, stored });
  }
  if (made.length === 0 && changes === undefined) return undefined;
  return (now) => {
    if (!isRecord(now)) return undefined;
    const there = payloadsIn(now);
    const isSame =
      there.length === before.length &&
      before.every(({ place, stored }, at) => sameValue([place, stored], [there[at]!.place, there[at]!.stored]));
    if (!isSame) return undefined;
    return made.reduce<object>((next, { of, stored }) => of.with(next, stored), { ...now, ...changes });
  };
}

/** Also of values that only older builds stored: what readers are handed. @returns undefined if it has no encrypted form */
async function encode(codec: PayloadCodec, value: unknown, place: PayloadPlace): Promise<unknown> {
  for (const form of [() => value, () => readable(value, true)]) {
    try {
      return await codec.encode(form(), place);
    } catch (error) {
      if (RunnerError.is(error) && error.code !== "invalid-input") throw error;
    }
  }
  return undefined;
}
