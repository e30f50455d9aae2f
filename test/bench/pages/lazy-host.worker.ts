import { serveRuntime } from "ag-ui-local-runtime/worker";
import type { HostConfig } from "./stamps.js";

const { dbName } = JSON.parse((globalThis as unknown as { name: string }).name) as HostConfig;

// As the guide to bundlers says: nothing of the AG-UI client is loaded before a run, or before a tab has its thread.
serveRuntime({ dbName, agents: { telling: async () => (await import("./agents.js")).tellingAgent } });
