import { RunnerError, type AgentRuntimeOptions } from "ag-ui-local-runtime/runtime";

/** A line of the log: plain data, without anything that a person or an agent has written. */
export type LogLine = Readonly<Record<string, string | number>>;

/**
 * One line for each request when it is over, one for each run when it is settled, one for each failure:
 *
 *     new AgentRuntime({ agents, ...logging((line) => console.info(JSON.stringify(line))) })
 *
 * Its limits: paths name agents, threads and runs, so ids must not be personal. Of errors only the kind is told. What a
 * middleware answers by a Response is no failure and no request that was let through: it has no line.
 */
export function logging(
  write: (line: LogLine) => void,
): Required<Pick<AgentRuntimeOptions, "afterRequestMiddleware" | "metrics">> {
  return {
    afterRequestMiddleware: ({ path, response: { status }, threadId, runId }) =>
      write({
        is: "request",
        path,
        status,
        ...(threadId !== undefined && { threadId }),
        ...(runId !== undefined && { runId }),
      }),
    metrics: {
      runEnded: ({ threadId, runId, agentId, status = "unknown", durationMs, events }) =>
        write({ is: "run", threadId, runId, agentId, status, durationMs: Math.round(durationMs), events }),
      error: ({ path, error }) => write({ is: "error", path, kind: kindOf(error) }),
    },
  };
}

const kindOf = (error: unknown): string =>
  RunnerError.is(error) ? error.code : error instanceof Error ? error.name : typeof error;
