import type { AbstractAgent } from "@ag-ui/client";

/** Agents that execute a run now. An agent executes one at a time: callers that share it pass clones. */
export const runningAgents = new WeakSet<AbstractAgent>();
