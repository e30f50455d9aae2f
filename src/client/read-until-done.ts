import { retry, timer, type Observable } from "rxjs";
import { RunnerError } from "../run/errors.js";

/** Retry backoff of what a host did not do: first and longest wait, in ms. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** The wait after so many failures in a row, at least 1. */
export const backoff = (failures: number): number => Math.min(RETRY_MS * 2 ** (failures - 1), RETRY_MAX_MS);

/**
 * Calls `read` until it succeeds. Not once the connection is closed.
 *
 * @param failed called with each failure
 * @returns ends it
 */
export function readUntilDone(read: () => Promise<void>, failed: (error: Error) => void): () => void {
  let isWanted = true;
  let pending: ReturnType<typeof setTimeout> | undefined;
  const next = (failures: number): void =>
    void read().catch((error: unknown) => {
      if (!isWanted) return;
      failed(asError(error));
      if (!RunnerError.is(error, "closed")) pending = setTimeout(next, backoff(failures), failures + 1);
    });
  next(1);
  return () => {
    isWanted = false;
    clearTimeout(pending);
  };
}

/** Subscribes again after each error, slower each time. @param failed called with the first of several in a row */
export const againAfterErrors = <T>(watched$: Observable<T>, failed?: (error: unknown) => void): Observable<T> => {
  const delay = (error: unknown, count: number): Observable<unknown> => {
    if (count === 1) failed?.(error);
    return timer(backoff(count));
  };
  return watched$.pipe(retry({ delay, resetOnSuccess: true }));
};

export const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
