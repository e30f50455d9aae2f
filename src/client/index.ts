/** The tab's side: connect to the host, run, follow and stop its agents. */
export {
  connectRuntime,
  type ConnectRuntimeOptions,
  type RuntimeConnection,
  type ThreadsApi,
} from "./connect-runtime.js";
export type { HostFactories } from "./start-host.js";
export { LocalAgent, type LocalAgentConfig } from "./local-agent.js";
export type { ThreadRun } from "./thread-run.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
export type { RunStatus, SettledStatus } from "../run/types.js";
export type {
  Durability,
  HostKind,
  RunnerErrorData,
  RuntimeStatus,
  Survives,
  ThreadChange,
  ThreadListQuery,
  ThreadSummary,
} from "../wire/shapes.js";
