import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { answer } from "./agent/answer.js";

serveRuntime({ agents: { assistant: defineAgent(answer) }, dbName: "copilotkit" });
