import { createEncryptionKey } from "../../../src/storage/encryption/keys.js";

/** A key without a passphrase, which nothing is derived from: tests that are not about that need not wait for it. */
export const fastKey = await createEncryptionKey();

/** The option of a store: each has an Encryption of its own. */
export const encryption = { key: fastKey };
