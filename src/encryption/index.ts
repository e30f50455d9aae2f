/**
 * Encryption at rest: the log of runs, checkpoints and graph states are stored encrypted.
 *
 * @module ag-ui-local-runtime/encryption
 */
export { Encryption, type EncryptionKey, type EncryptionOptions } from "../storage/encryption/encryption.js";
export type { LockState } from "../run/types.js";
export { createEncryptionKey } from "../storage/encryption/keys.js";
export type { EncryptionOption } from "../storage/encryption-option.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
