/**
 * The runner and its contract, for whoever hosts it by hand: in a worker, in a page, in Node.
 *
 * @module ag-ui-local-runtime
 */
export { IndexedDBAgentRunner, type IndexedDBAgentRunnerOptions } from "./runner/indexeddb-agent-runner.js";
export {
  InMemoryAgentRunner,
  resetInMemoryStore,
  type InMemoryAgentRunnerOptions,
} from "./runner/in-memory-agent-runner.js";
export { LocalAgentRunner } from "./runner/local-agent-runner.js";
export type { LocalAgentRunnerOptions } from "./runner/options.js";
export type { ConcurrentRunPolicy } from "./runner/parts.js";
export type { RunEventsQuery, RunName } from "./runner/read/reads.js";
export type { Eviction, MemoryLimits, RunnerLimits } from "./runner/keep/limits.js";
export type { EventLimits } from "./runner/agent/event-limits.js";
export { compact } from "./run/compact-events.js";
export type { ThreadContent } from "./run/fold.js";
export type { PlacedEvent } from "./run/pack.js";
export type {
  AgentRunner,
  AgentRunnerConnectRequest,
  AgentRunnerIsRunningRequest,
  AgentRunnerRunRequest,
  AgentRunnerStopRequest,
  ConnectedEvents,
  Replay,
  ThreadConnectRequest,
  ThreadRecord,
  ThreadRunRequest,
} from "./run/contract.js";
export type { Channel, OpenChannel } from "./platform/channel.js";
export type { Clock } from "./platform/clock.js";
export type { MakeId } from "./platform/ids.js";
export type { HeldLock, Lives, Locks, ThreadLocks } from "./platform/locks.js";
export type { Logger } from "./platform/log.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "./run/errors.js";
export type { ThreadPlace } from "./run/thread-order.js";
export type { Cursor, RunStatus, SettledStatus, ThreadUpdate } from "./run/types.js";
export type { RunListQuery, RunSummary, ThreadChange, ThreadListQuery, ThreadSummary } from "./wire/shapes.js";
