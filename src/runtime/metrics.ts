import type { SettledStatus } from "../run/types.js";

/** A run that a runtime started. */
export interface MeasuredRun {
  readonly threadId: string;
  readonly runId: string;
  readonly agentId: string;
  /** It stands in no log: a suggestion, or what the user interface of an MCP server asks. */
  readonly unrecorded?: true;
}

/** What the user interface of an MCP server asked of that server, through the runtime. */
export interface AskedMcpServer extends MeasuredRun {
  readonly method: string;
  /** Of `tools/call`. */
  readonly tool?: string;
  /** False: `mcpApps.servers` does not allow it, and no server was asked. */
  readonly isAllowed: boolean;
}

/** A run that is over. */
export interface EndedRun extends MeasuredRun {
  /** `lost`: another host took it over, or its end could not be written. Absent: a runner of another make ran it. */
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

/** Called as things happen; nothing is measured for what is not given. What a hook throws is ignored. */
export interface RuntimeMetrics {
  runStarted?(run: MeasuredRun): void;
  runEnded?(run: EndedRun): void;
  /** How many threads this runtime is running now, after each change. */
  liveThreads?(count: number): void;
  mcpRequest?(request: AskedMcpServer): void;
  /** A request failed: refusals of a middleware, faults of an agent's set-up, what a middleware threw. Never a stop. */
  error?(failure: RuntimeFailure): void;
}

/** Calls a hook, where it is there. */
export function tell<T>(hook: ((value: T) => void) | undefined, value: T): void {
  try {
    hook?.(value);
  } catch {
    // Its owner's fault must not be that of the run.
  }
}
