import { AgentRuntime } from "ag-ui-local-runtime/runtime";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { DB_NAME } from "./database.js";
import { endWhenAsked } from "./end-host.js";

const runtime: AgentRuntime = new AgentRuntime({
  agents: {
    // Each is loaded at its first run: a host shall start fast.
    reader: async () => (await import("./reader/agent.js")).readerAgent,
    research: async () => (await import("./graph/agent.js")).researchAgent,
    model: async () => (await import("./model/agent.js")).modelAgent(runtime),
    "model-remote": async () => (await import("./model/agent.js")).modelAgent(runtime),
  },
  agentPolicies: {
    // A run that breaks goes on by itself: its tools may run twice. A server that fails is shown at once.
    model: { recovery: { on: ["broken", "incomplete"] } },
    "model-remote": { recovery: { on: ["broken", "incomplete"] }, needsNetwork: true },
  },
  dbName: DB_NAME,
  // Better to be of use once than not at all; the header says that nothing is saved.
  memoryFallback: true,
});

// The same file is the SharedWorker and, where there is none, the tab's own Worker.
serveRuntime(runtime);

// For the button that shows what a crash costs. An app of yours has no use for it.
endWhenAsked();
