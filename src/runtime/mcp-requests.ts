import { AbstractAgent, EventType, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { of, type Observable } from "rxjs";

/** What the user interface of an MCP server asks of that server, through the runtime. */
export interface McpRequest {
  readonly method: string;
  /** Of `tools/call`: the tool. */
  readonly tool?: string;
  /** Of `resources/read`. */
  readonly uri?: string;
}

/** Resources that are user interfaces: https://github.com/modelcontextprotocol/ext-apps */
const UI_SCHEME = "ui://";

/** @returns undefined for an input that asks the agent itself */
export function mcpRequestOf({ forwardedProps }: RunAgentInput): McpRequest | undefined {
  const proxied = fieldsOf(forwardedProps)["__proxiedMCPRequest"];
  // What the middleware takes for none.
  if (!proxied) return undefined;
  const { method, params } = fieldsOf(proxied);
  const { name, uri } = fieldsOf(params);
  return {
    method: typeof method === "string" ? method : "",
    ...(typeof name === "string" && { tool: name }),
    ...(typeof uri === "string" && { uri }),
  };
}

/**
 * Of an agent's servers those that may be asked this: for a tool those whose configuration lists it, for a user interface
 * and a `ping` all. Nothing else goes through: the servers are called with headers that the caller does not have.
 */
export function serversFor<S extends { readonly allowedTools?: readonly string[] }>(
  { method, tool, uri }: McpRequest,
  servers: readonly S[],
): S[] {
  return servers.filter(({ allowedTools = [] }) => {
    if (method === "tools/call") return tool !== undefined && allowedTools.includes(tool);
    return method === "ping" || (method === "resources/read" && uri?.startsWith(UI_SCHEME) === true);
  });
}

/** Answers what is not allowed as `@ag-ui/mcp-apps-middleware` does: by the result of the run. */
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
      { type: EventType.RUN_STARTED, threadId, runId } as BaseEvent, // of the fields that its type has
      { type: EventType.RUN_FINISHED, threadId, runId, result } as BaseEvent,
    );
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
