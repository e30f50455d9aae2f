import { Lazy } from "../platform/lazy.js";
import { loaded } from "../run/loaded.js";
import type { LockState } from "../run/types.js";
import type { Check } from "../run/options.js";
import { plainCodec, type PayloadCodec } from "./codec.js";
import type { Encryption, EncryptionOptions } from "./encryption/encryption.js";
import type { KeyRing, KeyStore } from "./encryption/key-ring.js";

/** An encryption, or what to make one of: its code is loaded where it is used. */
export type EncryptionOption = Encryption | EncryptionOptions | Lazy<Encryption>;

export const ENCRYPTION: Check = [
  (given) => typeof given === "object" && given !== null,
  "an Encryption, or the options of one",
];

/** The encryption of an option, the same one for all that share it. */
export function encryptionOf(given: EncryptionOption): Lazy<Encryption> {
  if (given instanceof Lazy) return given;
  if ("ring" in given) return new Lazy(() => given);
  return new Lazy(async () => new (await loaded(import("./encryption/encryption.js"))).Encryption(given));
}

/** What a database's content is stored by. */
export interface StoredBy {
  readonly codec: PayloadCodec;
  /** The database's keys; undefined where nothing is encrypted. */
  readonly ring: Lazy<KeyRing> | undefined;
  /** See `RunStore.lockState`. */
  readonly lockState: () => Promise<LockState | undefined>;
  /** The database is closed. */
  readonly close: () => void;
}

export function storedBy(given: EncryptionOption | undefined, keys: KeyStore): StoredBy {
  if (given === undefined) {
    const isEncrypted = async (): Promise<boolean> => (await keys.load()) !== undefined;
    const lockState = async () => ((await isEncrypted()) ? "locked" : undefined);
    return { codec: plainCodec(isEncrypted), ring: undefined, lockState, close: () => undefined };
  }
  const encryption = encryptionOf(given);
  const ring = new Lazy(async () => (await encryption.get()).ring(keys));
  const codec: PayloadCodec = {
    encode: async (...of) => (await ring.get()).codec.encode(...of),
    decode: async (...of) => (await ring.get()).codec.decode(...of),
    digest: async (text) => (await ring.get()).codec.digest(text),
  };
  const close = (): void => {
    if (ring.made !== undefined) encryption.made?.leave(ring.made);
  };
  return { codec, ring, lockState: async () => (await ring.get()).state(), close };
}
