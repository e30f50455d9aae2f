import { AbstractAgent, EventType, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { of, throwError, type Observable } from "rxjs";
import type { McpRequest } from "./mcp-requests.js";

/** Refuses as `@ag-ui/mcp-apps-middleware` does: in the result of the run. */
export class RefusingAgent extends AbstractAgent {
  readonly #error: string;

  constructor({ method, tool }: McpRequest) {
    super();
    const what = tool === undefined ? `MCP method not allowed: ${method}` : `MCP tool not allowed: ${tool}`;
    this.#error = `Error: ${what} (see mcpApps.servers[].allowedTools)`;
  }

  run({ threadId, runId }: RunAgentInput): Observable<BaseEvent> {
    const result = { error: this.#error };
    return of<BaseEvent[]>(
      { type: EventType.RUN_STARTED, threadId, runId } as BaseEvent, // has the fields of its type
      { type: EventType.RUN_FINISHED, threadId, runId, result } as BaseEvent,
    );
  }
}

/** Stands for an agent that only servers have: its runs are never executed here. */
export class ServerAgent extends AbstractAgent {
  run(): Observable<BaseEvent> {
    return throwError(
      () => new Error(`The agent "${this.agentId}" runs on servers: what is not recorded cannot be asked of it`),
    );
  }
}
