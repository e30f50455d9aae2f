import { messageOf, RunnerError, type RunnerErrorCode } from "../../run/errors.js";
import { retryAfterMs } from "../../run/retry-after.js";
import type { WaitingError } from "../../run/types.js";

/** Backoff between attempts to start a run: first and longest wait, in ms. */
const RETRY_MS = 250;
const RETRY_MAX_MS = 60_000;
/** After so many attempts an error of nobody's own kind counts as lasting. */
const UNKNOWN_TRIES = 5;

/** Properties of this build: another host may have the agent. They are in no log. */
const OF_THIS_HOST: ReadonlySet<RunnerErrorCode> = new Set<RunnerErrorCode>([
  "unknown-agent",
  "invalid-agent",
  "agent-not-cloneable",
]);

/** Errors that another attempt may not meet: another host came first, the storage or the code could not be reached. */
const PASSING: ReadonlySet<RunnerErrorCode> = new Set<RunnerErrorCode>([
  "thread-busy",
  "cancelled",
  "interrupts-open",
  "call-over",
  "offline",
  "fenced",
  "closed",
  "timeout",
  "host-lost",
  "locked",
  "wrong-key",
  "outdated",
  "storage-unavailable",
  "storage-blocked",
  "storage-lost",
  "storage-deleted",
  "quota-exceeded",
]);

/** What becomes of a waiting run that could not be started. */
export type AfterFailure =
  | { readonly is: "retry"; readonly afterMs: number }
  /** It stays first until somebody does something about it. `lasting`: whichever host tries; this is kept in the log. */
  | { readonly is: "failed"; readonly error: WaitingError; readonly lasting: boolean };

/**
 * @param tries how often it was tried in this host, this time included
 * @param now ms since the Unix epoch
 * @param haveServers a server that has the agent may come
 */
export function afterFailure(error: unknown, tries: number, now: number, haveServers = false): AfterFailure {
  const backoffMs = Math.min(RETRY_MS * 2 ** (tries - 1), RETRY_MAX_MS);
  const later: AfterFailure = { is: "retry", afterMs: backoffMs };
  const code = RunnerError.is(error) ? error.code : "host-failed";
  if (isAnswerOfNow(error))
    return { is: "retry", afterMs: Math.max(backoffMs, retryAfterMs(error.details["retryAfter"], now) ?? 0) };
  const passes = PASSING.has(code) && !isLateAnswer(error);
  if (passes || (haveServers && code === "unknown-agent")) return later;
  // What loads an agent fails without a network, too.
  if (code === "host-failed" && tries < UNKNOWN_TRIES) return later;
  return { is: "failed", error: { code, message: messageOf(error) }, lasting: !OF_THIS_HOST.has(code) };
}

/** Somebody else has answered what it answers: no other attempt counts. */
export const isLateAnswer = (error: unknown): boolean =>
  RunnerError.is(error, "interrupts-open") && error.details["settled"] !== undefined;

/** Passing errors of a run that waits, which whoever waits for it is to be told of. */
const TOLD: ReadonlySet<RunnerErrorCode> = new Set<RunnerErrorCode>(["cancelled", "interrupts-open", "call-over"]);

/** Whether another attempt, or another server, may not meet it. */
export const isPassing = (error: unknown): boolean =>
  isAnswerOfNow(error) || (RunnerError.is(error) && PASSING.has(error.code) && !TOLD.has(error.code));

/** A middleware's answer that says that another one may follow: too many requests, or a failure of its own. */
export function isAnswerOfNow(error: unknown): error is RunnerError {
  if (!RunnerError.is(error, "refused")) return false;
  const { status } = error.details;
  return typeof status === "number" && (status === 429 || status >= 500);
}
