import { Lazy } from "../platform/lazy.js";
import { loaded } from "../run/loaded.js";
import type { Check } from "../run/options.js";
import type { Encryption, EncryptionOptions } from "./encryption/encryption.js";

/** An encryption, or what to make one of: its code is loaded where it is used. */
export type EncryptionOption = Encryption | EncryptionOptions;

export const ENCRYPTION: Check = [
  (given) => typeof given === "object" && given !== null,
  "an Encryption, or the options of one",
];

/** The encryption of an option, the same one for all that share it. */
export function encryptionOf(given: EncryptionOption): Lazy<Encryption> {
  if ("ring" in given) return new Lazy(() => given);
  return new Lazy(async () => new (await loaded(import("./encryption/encryption.js"))).Encryption(given));
}
