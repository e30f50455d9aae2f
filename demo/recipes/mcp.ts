// Tools of MCP servers, in the worker. Two ways:
//
// `mcpTools`: for a model (`aiAgent`). It calls them, sees the results and goes on.
//   aiAgent({ model, tools: mcpTools({ shop: { url: "https://shop.example.com/mcp", unasked: ["search"] } }) });
//
// `mcpApps`: for tools that come with a user interface, and for agents of any kind. The call ends the agent's run, the runtime
// makes it, and pages show the interface (an activity of type "mcp-apps") beside the result.
//   serveRuntime({ agents, mcpApps: mcpApps({ weather: "https://weather.example.com/mcp" }) });
//
// Their limits: the servers speak HTTP (stdio needs a process) and allow the page's origin by CORS, with the headers
// `content-type`, `accept`, `mcp-protocol-version`, `mcp-session-id` and your own, and expose `mcp-session-id`. A server that hangs
// holds a run up until it is stopped. For `mcpApps`, bundlers need `demo/shims/node.ts` (guide "A2UI and MCP Apps").
import { createMCPClient } from "@ai-sdk/mcp";
import type { AiRun, AiSdkTool, AiTools } from "ag-ui-local-runtime/ai";
import type { McpAppsOptions } from "ag-ui-local-runtime/runtime";

export interface McpToolServer {
  readonly url: string;
  /** Sent with each request: `({ headers }) => ({ authorization: headers["x-shop-token"] ?? "" })` takes it from the page's call. */
  readonly headers?: (run: AiRun) => Record<string, string>;
  /** Tools that the model calls without asking a person first. Default: none of them. */
  readonly unasked?: readonly string[];
}

/** How long a server may take to end a session, in ms. */
const LEAVE_MS = 5_000;

/**
 * The tools of several servers, as `shop_search` and so on. A run connects at its start and leaves at its end; a server that is
 * down is left out of it.
 */
export const mcpTools =
  (servers: Readonly<Record<string, McpToolServer>>) =>
  async (run: AiRun): Promise<AiTools> => {
    const lists = await Promise.all(
      Object.entries(servers).map(async ([id, server]) => {
        try {
          return await toolsOf(id, server, run);
        } catch (error) {
          run.signal.throwIfAborted();
          console.warn(`The tools of the MCP server ${id} are left out`, error);
          return [];
        }
      }),
    );
    return Object.fromEntries(lists.flat());
  };

async function toolsOf(id: string, server: McpToolServer, run: AiRun): Promise<[string, AiSdkTool][]> {
  const { url, headers, unasked = [] } = server;
  const client = await createMCPClient({
    transport: {
      type: "http",
      url,
      ...(headers && { headers: headers(run) }),
      fetch: (at, init) => {
        // The session on the server is ended when the run is over, which may be a stop.
        const until = init?.method === "DELETE" ? AbortSignal.timeout(LEAVE_MS) : run.signal;
        return fetch(at, { ...init, signal: AbortSignal.any([until, init?.signal ?? until]) });
      },
    },
  });
  run.onEnd(() => client.close());
  return Object.entries(await client.tools()).map(([name, tool]) => [
    `${id}_${name}`,
    { ...tool, needsApproval: !unasked.includes(name) },
  ]);
}

/**
 * @param urls of the servers, by a name that stays: what is shown refers to it
 * @param allowedTools what the user interfaces may call themselves, by server. Default: nothing
 */
export const mcpApps = (
  urls: Readonly<Record<string, string>>,
  allowedTools: Readonly<Record<string, readonly string[]>> = {},
): McpAppsOptions => ({
  use: () => import("@ag-ui/mcp-apps-middleware"),
  servers: Object.entries(urls).map(([serverId, url]) => ({
    type: "http",
    url,
    serverId,
    allowedTools: allowedTools[serverId] ?? [],
  })),
});
