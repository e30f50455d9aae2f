import { RunnerError } from "../../run/errors.js";

const nameOf = (error: unknown): string => (error as { name?: string } | null)?.name ?? "";

/** The error of a transaction that timed out. */
export const hung = (ms: number): DOMException =>
  new DOMException(
    `The browser did not end a transaction within ${ms} ms. If that lasts, close all tabs of this site and open it again`,
    "TimeoutError",
  );

export const isHung = (error: unknown): boolean => nameOf(error) === "TimeoutError";

/**
 * The connection was lost, and a new one may work. An AbortError is the browser's: it closes connections by force when
 * somebody clears the storage. Our own aborts have another reason.
 */
export const isLost = (error: unknown): boolean =>
  ["InvalidStateError", "UnknownError", "AbortError", "TimeoutError"].includes(nameOf(error)) ||
  /connection/i.test(String(error));

/** Errors of a value that cannot be stored or read (Chromium reads null if it is nested too deeply). The database works. */
const NOT_STORABLE: ReadonlySet<string> = new Set([
  "DataCloneError",
  "RangeError",
  "InternalError",
  "TypeError",
  "DataError",
]);

/** The RunnerError of a storage failure. A quota error may have an empty message and null fields: only its name is sure. */
export function toStorageError(error: unknown, dbName: string): RunnerError {
  if (RunnerError.is(error)) return error;
  if (NOT_STORABLE.has(nameOf(error)))
    return new RunnerError("corrupt-record", { dbName, cause: nameOf(error) }, { cause: error });
  const details = { dbName, cause: `${nameOf(error)}: ${(error as { message?: string } | null)?.message ?? ""}` };
  const code = nameOf(error) === "QuotaExceededError" ? "quota-exceeded" : "storage-lost";
  return new RunnerError(code, details, { cause: error });
}

/** The RunnerError of a failed open. */
export function toOpenError(error: unknown, dbName: string): RunnerError {
  if (RunnerError.is(error)) return error;
  return nameOf(error) === "VersionError"
    ? new RunnerError("outdated", { dbName }, { cause: error })
    : new RunnerError("storage-unavailable", { dbName, cause: String(error) }, { cause: error });
}
