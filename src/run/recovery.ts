import type { SettledStatus } from "./types.js";
import { isRetryable } from "./run-error-codes.js";

/** A kind of end that a run can be recovered from: see {@link RecoveryPolicy.on}. */
export type RecoverableEnd = "broken" | "incomplete" | "retryable";

/**
 * How the broken runs of an agent go on by themselves. A run does so only if nothing is done twice that must not be: see
 * `repeatableTools`.
 */
export interface RecoveryPolicy {
  /** How often a run is attempted in all, the first time included. Default 3. */
  readonly maxAttempts?: number;
  /**
   * A live run that emits nothing for so long (ms) is ended as broken, and its agent is asked to stop. Default: never. Set it
   * above the longest silence of the agent, a tool that works included.
   */
  readonly noProgressMs?: number;
  /** The pause before the second attempt, in ms; it doubles for each further one. Default 1,000. */
  readonly backoffMs?: number;
  /** The longest pause between two attempts, in ms. Default 30,000. */
  readonly maxBackoffMs?: number;
  /**
   * Names of tools that may run twice for one call, beside those that the agent names itself (`ContinuingAgent`). Default:
   * none: a run in which another tool was started and has no result is left to a person.
   */
  readonly repeatableTools?: readonly string[];
  /**
   * Which ends are recovered. `broken`: the host died, or `noProgressMs` passed. `incomplete`: the agent's stream was cut off
   * (INCOMPLETE_STREAM). `retryable`: the agent failed with a code that says that the same request may succeed later.
   * Default: all.
   */
  readonly on?: readonly RecoverableEnd[];
}

/**
 * What becomes of an agent's broken runs. `ask` (the default): nothing, the reader is shown "Run again". `auto`: they are
 * recovered by the defaults of {@link RecoveryPolicy}.
 */
export type RecoveryChoice = "ask" | "auto" | RecoveryPolicy;

/** How a run ended, as far as recovery decides by it. */
export interface RunEnding {
  readonly status: SettledStatus;
  /** Of its RUN_ERROR. */
  readonly code?: string | undefined;
}

/** Why a run does not go on by itself. */
export type AskReason =
  /** A tool that must not run twice was started, and its result is not known. */
  | "tools-started"
  /** Its record cannot be read or does not answer what the thread asks, or its agent is not there. */
  | "unreadable";
/** Why a broken run is not attempted again. */
export type GiveUpReason =
  /** It was attempted as often as it may be. */
  | "attempts"
  /** Somebody cancelled the attempt that waited. */
  | "cancelled"
  /** The thread went on first: somebody sent a message, or another run began. */
  | "went-on";

/** What became of a broken run. In the log, where it does not go on by itself. */
export type RecoveryNote =
  | { readonly is: "ask"; readonly why: AskReason; readonly tools?: readonly string[] }
  | { readonly is: "gave-up"; readonly why: GiveUpReason; readonly attempts: number };

/** What becomes of a run that broke, as far as that is known. */
export type RunRecovery =
  /**
   * Another run will go on with it, the attempt `attempt` of its chain. `at`: not earlier than that, in ms since the Unix
   * epoch; absent until it is decided.
   */
  { readonly is: "waiting"; readonly runId: string; readonly attempt: number; readonly at?: number } | RecoveryNote;

/** The policy of a choice; undefined: nobody recovers. */
export const policyOf = (choice: RecoveryChoice | undefined): RecoveryPolicy | undefined =>
  choice === undefined || choice === "ask" ? undefined : choice === "auto" ? {} : choice;

/** Whether a run that ended so may be recovered by the policy. Stopped and superseded runs never are. */
export function isRecoverable({ status, code }: RunEnding, { on }: RecoveryPolicy): boolean {
  const end = status === "broken" ? "broken" : status === "errored" ? failureOf(code) : undefined;
  return end !== undefined && (on === undefined || on.includes(end));
}

function failureOf(code: string | undefined): RecoverableEnd | undefined {
  if (code === "INCOMPLETE_STREAM") return "incomplete";
  return isRetryable(code) ? "retryable" : undefined;
}

/**
 * The id of the run that goes on with a broken one. Whoever finds the broken run finds the same, so that doing it twice
 * adds nothing.
 */
export function attemptRunId(runId: string, number: number): string {
  const suffix = `~${number - 1}`;
  const base = number > 2 && runId.endsWith(suffix) ? runId.slice(0, -suffix.length) : runId;
  return `${base}~${number}`;
}
