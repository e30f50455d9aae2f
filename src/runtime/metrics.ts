import type { SettledStatus } from "../run/types.js";

/** A run that a runtime started. */
export interface MeasuredRun {
  readonly threadId: string;
  readonly runId: string;
  readonly agentId: string;
  /** Not in the log: a suggestion, or a request of an MCP server's user interface. */
  readonly unrecorded?: true;
}

/** A request of an MCP server's user interface to that server, through the runtime. */
export interface AskedMcpServer extends MeasuredRun {
  readonly method: string;
  /** Of `tools/call`. */
  readonly tool?: string;
  /** False: `mcpApps.servers` does not allow it, and no server was asked. */
  readonly isAllowed: boolean;
}

/** A run that is over. */
export interface EndedRun extends MeasuredRun {
  /** `lost`: another host took it over, or its end could not be written. Absent: a third-party runner ran it. */
  readonly status?: SettledStatus | "lost";
  /** From the start of the agent to the settled end, in ms. */
  readonly durationMs: number;
  /** Events in its log. */
  readonly events: number;
}

/** What went wrong, and where. */
export interface RuntimeFailure {
  readonly path: string;
  readonly error: unknown;
}

/** Called as things happen. What a hook throws is ignored. */
export interface RuntimeMetrics {
  runStarted?(run: MeasuredRun): void;
  runEnded?(run: EndedRun): void;
  /** How many threads this runtime is running now, after each change. */
  liveThreads?(count: number): void;
  mcpRequest?(request: AskedMcpServer): void;
  /** A request failed: refusals of a middleware, faults of an agent's set-up, what a middleware threw. Never a stop. */
  error?(failure: RuntimeFailure): void;
}

/** Calls a hook if it is set. */
export function tell<Hook extends keyof RuntimeMetrics>(
  metrics: RuntimeMetrics | undefined,
  hook: Hook,
  value: Parameters<NonNullable<RuntimeMetrics[Hook]>>[0],
): void {
  try {
    metrics?.[hook]?.(value as never); // its own parameter
  } catch {
    // A failing hook must not fail the run.
  }
}
