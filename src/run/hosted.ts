import type { AbstractAgent } from "@ag-ui/client";

/** A run that goes on with one that broke. */
export interface Attempt {
  /** `runId` of the run that broke. */
  readonly of: string;
  /** 2 for the first run after the one that broke, then 3 and so on. */
  readonly number: number;
}

/** What the host tells an agent of an attempt. */
export interface HostedAttempt extends Attempt {
  /** Id of the last message, where it is an answer that the broken run has begun, and not one of an earlier run. */
  readonly said?: string;
}

/** What the host tells an agent of the run that it executes. */
export interface HostedRun {
  /** Set where the run goes on with one that broke. */
  readonly attempt?: HostedAttempt;
  /**
   * Resolves once everything that the agent has emitted so far is in the log: await it before a side effect that must not
   * happen twice. Errors: the RunnerError for which it cannot be written; then the run is over.
   */
  committed(): Promise<void>;
}

/**
 * An agent that goes on from what a broken run left in the log. Its messages then end with what was committed: text that
 * was cut off is the last message (`attempt.said`: go on under its id), tool calls without a result stand without one (run them again
 * under their `toolCallId`), and results that were recorded are there (do not ask for them again).
 */
export interface ContinuingAgent {
  readonly continues: true;
  /** Names of the tools that may run twice for one call; `toolCallId` is their idempotency key. Default: none. */
  readonly repeatableTools?: readonly string[];
  /** Set by the host on the copy that it runs, before it runs it. */
  hosted?: HostedRun;
}

type MaybeContinuing = AbstractAgent & Partial<{ -readonly [K in keyof ContinuingAgent]: unknown }>;

/** Whether the agent goes on from what a broken run left; else it is asked again. */
export const isContinuing = (agent: AbstractAgent): boolean => (agent as MaybeContinuing).continues === true;

/** Names of the agent's tools that may run twice for one call. */
export function repeatableToolsOf(agent: AbstractAgent): readonly string[] {
  const { repeatableTools } = agent as MaybeContinuing;
  return Array.isArray(repeatableTools) ? repeatableTools.filter((name) => typeof name === "string") : [];
}

/** Tells the agent of its run, where it has a place for it: others are not touched. */
export function tellHosted(agent: AbstractAgent, hosted: HostedRun): void {
  if (isContinuing(agent) || "hosted" in agent) (agent as MaybeContinuing).hosted = hosted;
}
