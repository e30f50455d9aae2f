import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { NEVER } from "rxjs";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { openBroadcastChannel, type OpenChannel } from "../../../src/platform/channel.js";
import { scriptedAgents } from "./scripted-agents.js";
import { obeyLab } from "./scripted-control.js";
import { armedPoints } from "./scripted-points.js";
import { ownName } from "./worker-name.js";

// The worker's name is "<database>" or "<database>#<anything>": several workers on one database. What is in it decides
// what is special about this one.
const name = ownName();
const dbName = name.split("#")[0] || "scripted";
const agents = scriptedAgents(dbName);

/** It speaks and hears nothing. */
const openDeafChannel: OpenChannel = (channel) => ({ ...openBroadcastChannel(channel), messages$: NEVER });

obeyLab();
if (name.includes("ends-at-point")) {
  const onConcurrentRun = name.includes("queues") ? "queue" : "throw";
  // Short, so that the steal is soon.
  const options = { dbName, onConcurrentRun, stopGraceMs: 200, atFailurePoint: armedPoints() } as const;
  const openChannel = name.includes("deaf") ? openDeafChannel : openBroadcastChannel;
  serveRuntime({ agents, runner: new IndexedDBAgentRunner({ ...options, openChannel }) });
} else serveRuntime({ agents, dbName });
