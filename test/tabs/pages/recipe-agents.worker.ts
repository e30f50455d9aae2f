import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { aiAgent } from "ag-ui-local-runtime/ai";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { a2ui } from "../../../demo/recipes/a2ui.js";
import { mcpApps, mcpTools } from "../../../demo/recipes/mcp.js";
import { ownName } from "./worker-name.js";

/** "<database>#<address of the MCP server>" */
const [dbName = "", mcp = ""] = ownName().split("#");

const model = ({ headers }: { readonly headers: Readonly<Record<string, string>> }) =>
  createOpenAICompatible({ name: "scripted", baseURL: headers["x-model-url"] ?? "" })("scripted");

serveRuntime({
  dbName,
  agents: {
    shop: async () => (await import("./recipe-shop.js")).shopIn(dbName),
    tools: aiAgent({ model, tools: mcpTools({ sky: { url: mcp, unasked: ["weather"] } }) }),
    apps: aiAgent({ model }),
  },
  agentPolicies: { shop: { recovery: { backoffMs: 0 } } },
  a2ui: { ...a2ui, agents: ["apps"] },
  mcpApps: {
    ...mcpApps({ sky: mcp }),
    servers: mcpApps({ sky: mcp }).servers.map((it) => ({ ...it, agentId: "apps" })),
  },
});
