import type { BaseEvent, Message } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { AgentRunner, ConnectedEvents, ThreadConnectRequest } from "../run/contract.js";
import type { RunStatus } from "../run/types.js";
import type { Bench } from "./bench.js";
import { expectThat } from "./expect.js";

type Answer<T> = T | Promise<T>;

/** A run in {@link FullAgentRunner.listRuns}. */
export interface RecordedRunInfo {
  readonly runId: string;
  readonly runIndex: number;
  readonly status: RunStatus;
}

/** An event of a run with its sequence number and arrival time (ms since the Unix epoch). */
export interface RecordedEvent {
  readonly event: BaseEvent;
  readonly seq: number;
  readonly at: number;
}

/**
 * What a runner may have beyond the contract: more ways to connect, reads of the log, and resets. Cases of level
 * "full" use these names; for a runner that lacks one, skip the case with that reason.
 */
export interface FullAgentRunner extends AgentRunner {
  connect(request: ThreadConnectRequest): Observable<BaseEvent>;
  connectWithCursor(request: ThreadConnectRequest): Observable<ConnectedEvents>;
  listThreads(): Answer<readonly ({ readonly threadId: string } | { readonly id: string })[]>;
  /** Newest first. `before`: only runs with a smaller `runIndex`. */
  listRuns(
    threadId: string,
    query?: { readonly status?: RunStatus; readonly limit?: number; readonly before?: number },
  ): Answer<readonly RecordedRunInfo[]>;
  getRun(runId: string, query?: { readonly threadId?: string }): Answer<RecordedRunInfo | undefined>;
  /** In order of `seq`. `after`: only events with a larger `seq`. */
  getRunEvents(
    runId: string,
    query?: {
      readonly threadId?: string;
      readonly types?: readonly string[];
      readonly after?: number;
      readonly limit?: number;
    },
  ): Answer<readonly RecordedEvent[]>;
  getThreadMessages(threadId: string): Answer<readonly Message[]>;
  getThreadEvents(threadId: string): Answer<readonly BaseEvent[]>;
  getThreadState(threadId: string): Answer<unknown>;
  /** Forgets all threads. */
  clearThreads(): Answer<unknown>;
  /** Ends its live runs and releases everything. Refuses further runs. */
  destroy(): Answer<unknown>;
}

/** The runner, typed as one with this method. */
export function having<Method extends Exclude<keyof FullAgentRunner, keyof AgentRunner>>(
  { runner }: Bench,
  method: Method,
): Pick<FullAgentRunner, Method> {
  const has = typeof (runner as unknown as Partial<Record<Method, unknown>>)[method] === "function";
  expectThat(has, `a runner of level "full" must have ${method}(); skip this case with that reason if it has not`);
  // Checked in the line before.
  return runner as unknown as Pick<FullAgentRunner, Method>;
}
