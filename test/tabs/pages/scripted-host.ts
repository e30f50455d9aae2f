import { type RuntimeHost, serveRuntime } from "ag-ui-local-runtime/worker";
import { scriptedAgents } from "./scripted-agents.js";

let host: RuntimeHost | undefined;

/** The host in this page. @param name of a worker that would be it elsewhere: "<database>#<anything>" */
export function hostOf(name: string): RuntimeHost {
  const dbName = name.split("#")[0]!;
  host ??= serveRuntime({ agents: scriptedAgents(dbName), dbName });
  return host;
}
