/** The longest wait that a server may ask for, in ms: a person waits no longer. */
export const MAX_RETRY_AFTER_MS = 24 * 3_600_000;

/**
 * How long a server asks to be left alone, in ms from `now`; at most a day.
 *
 * @param value of a `Retry-After` header: seconds or a date (RFC 9110, section 10.2.3)
 * @param now ms since the Unix epoch
 * @returns undefined where there is no such header, or nothing that can be read
 */
export function retryAfterMs(value: unknown, now: number): number | undefined {
  if (typeof value !== "string") return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
