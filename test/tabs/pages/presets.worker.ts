import { IndexedDBAgentRunner, InMemoryAgentRunner, type AgentRunner } from "ag-ui-local-runtime";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { NEVER } from "rxjs";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import { scriptedAgents } from "./scripted-agents.js";
import { obeyLab } from "./scripted-control.js";
import { ownName } from "./worker-name.js";

// The worker's name is "<database>#<preset>".
const [dbName = "presets", preset = ""] = ownName().split("#");

/** Somebody's own, with means of its own. */
class OwnRunner extends InMemoryAgentRunner {
  readonly means = new Map<string, unknown>();
}

/** Of another make: it has what the contract asks for, and no more. */
const foreign: AgentRunner = {
  run: () => NEVER,
  connect: () => NEVER,
  isRunning: () => Promise.resolve(false),
  stop: () => Promise.resolve(false),
};

const runners: Record<string, () => AgentRunner> = {
  indexeddb: () => new IndexedDBAgentRunner({ dbName }),
  // Nobody else sees these locks.
  "indexeddb-own-locks": () => new IndexedDBAgentRunner({ dbName, locks: locksOf(inProcessLockManager()) }),
  "in-memory": () => new InMemoryAgentRunner(),
  "in-memory-named": () => new InMemoryAgentRunner({ dbName }),
  "in-memory-no-locks": () => new InMemoryAgentRunner({ dbName }),
  "in-memory-isolated": () => new InMemoryAgentRunner({ store: "isolated" }),
  subclass: () => new OwnRunner({ dbName }),
  foreign: () => foreign,
};

obeyLab();
const runner = runners[preset]?.();
serveRuntime({ agents: scriptedAgents(dbName), ...(runner === undefined ? { dbName } : { runner }) });
