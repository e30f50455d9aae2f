import { RunnerError } from "../../run/errors.js";

const nameOf = (error: unknown): string => (error as { name?: string } | null)?.name ?? "";

/** What a transaction fails with that did not end in time. */
export const hung = (ms: number): DOMException =>
  new DOMException(
    `The browser did not end a transaction within ${ms} ms. If that lasts, close all tabs of this site and open it again`,
    "TimeoutError",
  );

export const isHung = (error: unknown): boolean => nameOf(error) === "TimeoutError";

/**
 * The connection fell: the handle is of no use any more, another may be. An AbortError is the browser's own, which closes
 * connections by force where somebody clears the storage: what we abort has a reason of its own.
 */
export const isLost = (error: unknown): boolean =>
  ["InvalidStateError", "UnknownError", "AbortError", "TimeoutError"].includes(nameOf(error)) ||
  /connection/i.test(String(error));

/**
 * What a value fails with that cannot be stored, or that is not what was stored (Chromium reads null where a value is too
 * deep for its stack): the database itself works.
 */
const NOT_STORABLE: ReadonlySet<string> = new Set([
  "DataCloneError",
  "RangeError",
  "InternalError",
  "TypeError",
  "DataError",
]);

/**
 * A storage failure as the RunnerError that tells what to do. Quota arrives as an abort, at times with an empty message
 * and null fields: only its name is sure.
 */
export function toStorageError(error: unknown, dbName: string): RunnerError {
  if (RunnerError.is(error)) return error;
  if (NOT_STORABLE.has(nameOf(error)))
    return new RunnerError("corrupt-record", { dbName, cause: nameOf(error) }, { cause: error });
  const details = { dbName, cause: `${nameOf(error)}: ${(error as { message?: string } | null)?.message ?? ""}` };
  const code = nameOf(error) === "QuotaExceededError" ? "quota-exceeded" : "storage-lost";
  return new RunnerError(code, details, { cause: error });
}

/** The same for an open that failed. */
export function toOpenError(error: unknown, dbName: string): RunnerError {
  if (RunnerError.is(error)) return error;
  return nameOf(error) === "VersionError"
    ? new RunnerError("outdated", { dbName }, { cause: error })
    : new RunnerError("storage-unavailable", { dbName, cause: String(error) }, { cause: error });
}
