import type { RunAgentInput } from "@ag-ui/client";

/** A request of an MCP server's user interface to that server, through the runtime. */
export interface McpRequest {
  readonly method: string;
  /** Of `tools/call`: the tool. */
  readonly tool?: string;
  /** Of `resources/read`. */
  readonly uri?: string;
}

/** Resources that are user interfaces: https://github.com/modelcontextprotocol/ext-apps */
const UI_SCHEME = "ui://";

/** @returns undefined for an input meant for the agent itself */
export function mcpRequestOf({ forwardedProps }: RunAgentInput): McpRequest | undefined {
  const proxied = fieldsOf(forwardedProps)["__proxiedMCPRequest"];
  // The middleware treats falsy as absent.
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
 * The servers that may receive the request: for a tool, those whose configuration lists it; for a user interface
 * resource or a `ping`, all. Everything else is refused: the servers are called with headers that the caller does not
 * have.
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

/** A request of CopilotKit's suggestion engine: its thread is made up and must not be kept. */
export function isSuggestion({ forwardedProps }: RunAgentInput): boolean {
  const props = forwardedProps as { readonly toolChoice?: { readonly function?: { readonly name?: unknown } } } | null;
  return props?.toolChoice?.function?.name === "copilotkitSuggest";
}

/** It runs beside its thread, and is in no log. */
export const isUnrecorded = (input: RunAgentInput): boolean => mcpRequestOf(input) !== undefined || isSuggestion(input);

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
