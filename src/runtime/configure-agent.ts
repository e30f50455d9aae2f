import type { AbstractAgent, Middleware, RunAgentInput } from "@ag-ui/client";
import { Lazy } from "../platform/lazy.js";
import { called } from "./agents.js";
import { mcpRequestOf, serversFor, type McpRequest } from "./mcp-requests.js";
import { forwardedHeaders, type ForwardHeadersOptions } from "./forward-headers.js";

/** Other options go to the package; see `A2UIMiddlewareConfig` of `@ag-ui/a2ui-middleware`. */
export interface A2UIOptions {
  /** How to load it, at the first run that uses it: `() => import("@ag-ui/a2ui-middleware")`. */
  readonly use: () => Promise<{ readonly A2UIMiddleware: new (config: Record<string, unknown>) => Middleware }>;
  /** Default true. */
  readonly enabled?: boolean;
  /** Only these agents. Default: all. */
  readonly agents?: readonly string[];
  /** Default: on if the front end reports a catalog (`forwardedProps.a2uiCatalogAvailable`). */
  readonly injectA2UITool?: boolean | string;
  readonly [option: string]: unknown;
}

/** A server as `@ag-ui/mcp-apps-middleware` takes it. */
export interface McpAppsServer {
  readonly type: "http" | "sse";
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly serverId?: string;
  /** Only this agent. Default: all. */
  readonly agentId?: string;
  /**
   * The tools that the server's user interface may call through the runtime, with the headers above
   * (`forwardedProps.__proxiedMCPRequest`). Default: none. Does not restrict agents' calls.
   */
  readonly allowedTools?: readonly string[];
}

/** MCP servers whose tools and user interfaces agents are given. */
export interface McpAppsOptions {
  /** How to load it, at the first run that uses it: `() => import("@ag-ui/mcp-apps-middleware")`. */
  readonly use: () => Promise<{
    readonly MCPAppsMiddleware: new (config: {
      mcpServers: Omit<McpAppsServer, "agentId" | "allowedTools">[];
    }) => Middleware;
  }>;
  readonly servers: readonly McpAppsServer[];
}

export interface AgentSettings {
  readonly a2ui?: A2UIOptions;
  readonly mcpApps?: McpAppsOptions;
  readonly forwardHeaders?: ForwardHeadersOptions;
}

/** A cloned agent and its run. */
export interface AgentOfRun {
  readonly agentId: string;
  readonly agent: AbstractAgent;
  readonly input: RunAgentInput;
  readonly request: () => Request;
}

/** Applies the runtime's settings to cloned agents. */
export class AgentConfigurator {
  private readonly forwarded: ReturnType<typeof forwardedHeaders>;
  private readonly a2ui = new Lazy(() => called("a2ui.use", this.settings.a2ui!.use));
  private readonly mcpApps = new Lazy(() => called("mcpApps.use", this.settings.mcpApps!.use));

  /** @param settings that `checkAgentSettings` has accepted */
  constructor(private readonly settings: AgentSettings) {
    this.forwarded = forwardedHeaders(settings.forwardHeaders);
  }

  /** Makes an agent that calls a server forward the request's headers. */
  addHeaders(run: Pick<AgentOfRun, "agent" | "request">): void {
    const { agent } = run;
    if ("headers" in agent) agent.headers = this.headersOf(run);
  }

  /** Upstream headers: the agent's own, plus the request headers that may be forwarded. */
  headersOf({ agent, request }: Pick<AgentOfRun, "agent" | "request">): Record<string, string> {
    // HttpAgent and similar agents have headers.
    const { headers = {} } = agent as AbstractAgent & { readonly headers?: Readonly<Record<string, string>> };
    return this.forwarded(headers, request().headers);
  }

  /** Errors: what loading a middleware threw. */
  async configure(run: AgentOfRun): Promise<void> {
    const { agent } = run;
    this.addHeaders(run);
    const middlewares = [await this.a2uiOf(run), await this.mcpAppsOf(run)];
    for (const middleware of middlewares) if (middleware !== undefined) agent.use(middleware);
  }

  private async a2uiOf({ agentId, input }: AgentOfRun): Promise<Middleware | undefined> {
    const { a2ui } = this.settings;
    if (a2ui === undefined || a2ui.enabled === false) return undefined;
    const { use: _use, enabled: _enabled, agents, injectA2UITool, ...config } = a2ui;
    if (agents !== undefined && !agents.includes(agentId)) return undefined;
    const { A2UIMiddleware } = await this.a2ui.get();
    const props = input.forwardedProps as { readonly a2uiCatalogAvailable?: unknown } | undefined; // unchecked input
    const inject = injectA2UITool ?? (props?.a2uiCatalogAvailable === true ? true : undefined);
    return new A2UIMiddleware({ ...config, ...(inject !== undefined && { injectA2UITool: inject }) });
  }

  /** The servers that may receive this request; empty: it is refused. */
  mcpServersFor(agentId: string, request: McpRequest): readonly McpAppsServer[] {
    return serversFor(request, this.serversOf(agentId));
  }

  private serversOf(agentId: string): readonly McpAppsServer[] {
    return (this.settings.mcpApps?.servers ?? []).filter((server) => (server.agentId ?? agentId) === agentId);
  }

  private async mcpAppsOf({ agentId, input }: AgentOfRun): Promise<Middleware | undefined> {
    const request = mcpRequestOf(input);
    const servers = request === undefined ? this.serversOf(agentId) : this.mcpServersFor(agentId, request);
    if (servers.length === 0) return undefined;
    const { MCPAppsMiddleware } = await this.mcpApps.get();
    const mcpServers = servers.map(({ agentId: _agentId, allowedTools: _allowedTools, ...server }) => server);
    return new MCPAppsMiddleware({ mcpServers });
  }
}
