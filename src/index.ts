/** The runner and its contract, for whoever hosts it by hand: in a worker, in a page, in Node. */
export { IndexedDBAgentRunner, type IndexedDBAgentRunnerOptions } from "./runner/indexeddb-agent-runner.js";
export type {
  AgentRunner,
  AgentRunnerConnectRequest,
  AgentRunnerIsRunningRequest,
  AgentRunnerRunRequest,
  AgentRunnerStopRequest,
} from "./run/contract.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "./run/errors.js";
export type { Cursor, RunStatus, SettledStatus } from "./run/types.js";
export type { ThreadChange, ThreadListQuery, ThreadSummary } from "./wire/shapes.js";
