import "./without-storage.js";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { scriptedAgents } from "./scripted-agents.js";
import { obeyLab } from "./scripted-control.js";

// The worker's name is "<database>#<anything>", with "memory" in it where threads may be kept in memory.
const dbName = self.name.split("#")[0]!;

obeyLab();
serveRuntime({ agents: scriptedAgents(dbName), dbName, memoryFallback: self.name.includes("memory") });
