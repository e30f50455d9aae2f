import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { NEVER } from "rxjs";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { type Clock, systemClock } from "../../../src/platform/clock.js";
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

/** It hears nothing, and is slow to look into the log. */
const openDeafChannel: OpenChannel = (channel) => ({ ...openBroadcastChannel(channel), messages$: NEVER });
const slowClock: Clock = { ...systemClock, after: (ms, signal) => systemClock.after(100 * ms, signal) };

obeyLab();
if (name.includes("ends-at-point")) {
  const onConcurrentRun = name.includes("queues") ? "queue" : "throw";
  // Short, so that the steal is soon.
  const options = { dbName, onConcurrentRun, stopGraceMs: 200, atFailurePoint: armedPoints() } as const;
  const heard = name.includes("deaf") ? { openChannel: openDeafChannel, clock: slowClock } : {};
  serveRuntime({ agents, runner: new IndexedDBAgentRunner({ ...options, ...heard }) });
} else serveRuntime({ agents, dbName, agentPolicies: { noted: { needsNetwork: true } } });
