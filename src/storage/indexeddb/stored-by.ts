import type { DBSchema, StoreNames } from "idb";
import { Lazy } from "../../platform/lazy.js";
import { loaded } from "../../run/loaded.js";
import type { LockState } from "../../run/types.js";
import { plainCodec, type PayloadCodec } from "../codec.js";
import { encryptionOf, type EncryptionOption } from "../encryption-option.js";
import type { KeyRing, OnOpened } from "../encryption/key-ring.js";
import type { DatabaseConnection } from "./database-connection.js";
import { hasKeys, type KeysAt } from "./keyless.js";

/** A database whose payloads may be encrypted. */
export interface Sealable<Schema extends DBSchema> {
  readonly connection: DatabaseConnection<Schema>;
  readonly keysAt: KeysAt<Schema>;
  /** The stores that hold payloads, in the order in which they are encrypted anew. */
  readonly content: readonly StoreNames<Schema>[];
  /**
   * Encrypts what was stored before, whenever keys were unlocked: in the background. Resolves with whether something is left
   * that a later pass may encrypt.
   */
  readonly encryptRest?: (ring: KeyRing, signal: AbortSignal) => Promise<boolean>;
  /** Called whenever keys were unlocked, for an owner that does it itself; `isLater`: something has fallen behind. */
  readonly onKeys?: OnOpened | undefined;
}

/** What a database's content is stored by. */
export interface StoredBy {
  readonly codec: PayloadCodec;
  /** The database's keys; undefined where nothing is encrypted. */
  readonly ring: Lazy<KeyRing> | undefined;
  /** See `RunStore.lockState`. */
  lockState(): Promise<LockState | undefined>;
  /** The connection is lost: another database may have taken the place of this one, with other keys. */
  gone(): void;
  /** Stops what runs in the background, and forgets the keys. */
  close(): void;
}

export function storedBy<Schema extends DBSchema>(
  given: EncryptionOption | undefined,
  { connection, keysAt, content, encryptRest, onKeys }: Sealable<Schema>,
): StoredBy {
  const nothing = (): void => undefined;
  if (given === undefined) {
    const lockState = async () => ((await hasKeys(connection, keysAt)) ? "locked" : undefined);
    return { codec: plainCodec, ring: undefined, lockState, gone: nothing, close: nothing };
  }
  const encryption = encryptionOf(given);
  const closed = new AbortController();
  const passes =
    encryptRest &&
    new Lazy(async () => {
      const { Passes } = await loaded(import("../encryption/passes.js"));
      const pass = async (): Promise<boolean> => encryptRest(await ring.get(), closed.signal);
      return new Passes(pass, connection.clock, closed.signal);
    });
  const begin: OnOpened = (isLater) => {
    onKeys?.(isLater);
    passes?.get().then((them) => (isLater ? them.soon() : them.begin()), nothing);
  };
  let release = nothing;
  const ring = new Lazy(async () => {
    const { storedKeys } = await loaded(import("./key-store.js"));
    const of = await encryption.get();
    const made = of.ring(storedKeys(connection, keysAt, content), begin);
    release = () => of.release(made);
    // It would keep the other databases from being unlocked for good.
    if (closed.signal.aborted) release();
    return made;
  });
  // One that is at hand may be unlocked, or given another key, before this database is used.
  if ("joins" in given) given.joins(ring.get());
  const codec: PayloadCodec = {
    encode: async (...of) => (await ring.get()).codec.encode(...of),
    decode: async (...of) => (await ring.get()).codec.decode(...of),
    digest: async (text) => (await ring.get()).codec.digest(text),
    ready: async () => (await ring.get()).codec.ready(),
    // What there is to be refused was made by it.
    refuseForeign: (...of) => ring.made?.codec.refuseForeign(...of),
  };
  return {
    codec,
    ring,
    lockState: async () => (await ring.get()).state(),
    gone: () => ring.made?.forget(),
    close: () => {
      closed.abort();
      release();
    },
  };
}
