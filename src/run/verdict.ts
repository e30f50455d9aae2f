import type { RecoveryNote, RecoveryPolicy } from "./recovery.js";
import { MAX_RETRY_AFTER_MS } from "./retry-after.js";

/*
 * Whether a broken run goes on by itself: loaded when one waits for that.
 */

export type Verdict =
  /** The run `number` in the chain starts at `at`, or later. */
  { readonly is: "go"; readonly at: number; readonly number: number } | RecoveryNote;

const DEFAULTS = { maxAttempts: 3, backoffMs: 1_000, maxBackoffMs: 30_000 } as const;

/** What a verdict is made of. */
export interface RecoveryCase {
  readonly policy: RecoveryPolicy;
  /** The broken run's own number in its chain: 1 for a run that goes on with no other. */
  readonly number: number;
  /** Names of the tools that were started and have no result; none of the front end. */
  readonly started: readonly string[];
  /** Names of the tools that may run twice: the policy's and the agent's. */
  readonly repeatable: ReadonlySet<string>;
  /** When the server allows the next request, in ms after the end. */
  readonly retryAfterMs?: number | undefined;
  readonly endedAt: number;
}

/** Whether a broken run goes on by itself, and when. The caller has asked {@link isRecoverable}. */
export function verdictOf(given: RecoveryCase): Verdict {
  const { policy, number, started, repeatable, retryAfterMs = 0, endedAt } = given;
  const { maxAttempts = DEFAULTS.maxAttempts } = policy;
  const once = started.filter((name) => !repeatable.has(name));
  if (once.length > 0) return { is: "ask", why: "tools-started", tools: [...new Set(once)] };
  if (number >= maxAttempts) return { is: "gave-up", why: "attempts", attempts: number };
  return { is: "go", at: endedAt + Math.max(retryAfterMs, pauseAfter(policy, number)), number: number + 1 };
}

/** The pause after attempt `number`, in ms. */
function pauseAfter(
  { backoffMs = DEFAULTS.backoffMs, maxBackoffMs = DEFAULTS.maxBackoffMs }: RecoveryPolicy,
  number: number,
) {
  return Math.min(maxBackoffMs, backoffMs * 2 ** (number - 1));
}

/** `metadata.retryAfterMs` of a RUN_ERROR, if the agent says when its server may be asked again. */
export function retryAfterOf(terminal: object): number | undefined {
  const { metadata } = terminal as { readonly metadata?: { readonly retryAfterMs?: unknown } | null };
  const after = metadata?.retryAfterMs;
  return typeof after === "number" && after >= 0 ? Math.min(after, MAX_RETRY_AFTER_MS) : undefined;
}
