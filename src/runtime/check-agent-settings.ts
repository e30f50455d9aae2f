import { invalidInput } from "../run/errors.js";
import {
  checkKind,
  checkNames,
  FLAG,
  ID,
  LIST,
  TEXT,
  TEXTS,
  type Check,
  type Elsewhere,
  type Names,
} from "../run/options.js";
import type { A2UIOptions, AgentSettings, McpAppsOptions, McpAppsServer } from "./configure-agent.js";
import type { ForwardHeadersOptions } from "./forward-headers.js";

/*
 * Checked when a runtime is made; what applies them to agents is loaded with the first run.
 */

const FORWARD_HEADERS: Names<ForwardHeadersOptions> = {
  useDefaultDenylist: FLAG,
  deny: TEXTS,
  denyPrefixes: TEXTS,
  allow: TEXTS,
};
const TOOL: Check = [(given) => FLAG[0](given) || ID[0](given), "true, false or the tool's name"];
const A2UI: Names<A2UIOptions> = { use: true, enabled: FLAG, agents: TEXTS, injectA2UITool: TOOL };
const MCP_APPS: Names<McpAppsOptions> = { use: true, servers: LIST };
const MCP_SERVER: Names<McpAppsServer> = {
  type: TEXT,
  url: ID,
  headers: true,
  serverId: TEXT,
  agentId: ID,
  allowedTools: TEXTS,
};

/** In CopilotKit's types too, which refuses them as well. */
const TOOL_POLICY =
  "the middleware knows no lists of tools: put a server in front of it that has only the tools that may be called";
const SERVER_ELSEWHERE: Elsewhere = { includeTools: TOOL_POLICY, excludeTools: TOOL_POLICY };

/** @throws RunnerError `invalid-input` */
export function checkAgentSettings({ a2ui, mcpApps, forwardHeaders }: AgentSettings): void {
  const of = "AgentRuntime";
  checkNames(forwardHeaders, FORWARD_HEADERS, { of, within: "forwardHeaders" });
  checkUse("a2ui", a2ui);
  checkNames(a2ui, A2UI, { of, within: "a2ui", isOpen: true });
  checkUse("mcpApps", mcpApps);
  checkNames(mcpApps, MCP_APPS, { of, within: "mcpApps" });
  if (mcpApps !== undefined) checkKind("mcpApps.servers", mcpApps.servers, LIST);
  mcpApps?.servers.forEach((server, at) => {
    const within = `mcpApps.servers[${at}]`;
    checkNames(server, MCP_SERVER, { of, within, elsewhere: SERVER_ELSEWHERE });
  });
}

function checkUse(option: string, given: { readonly use: unknown } | null | undefined): void {
  if (given === undefined || typeof given?.use === "function") return;
  const field = `${option}.use`;
  throw invalidInput(
    field,
    `${field} must be a function that loads the field's package: see the documentation of ${option}`,
  );
}
