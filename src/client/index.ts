/**
 * The tab's side: connects to the host; runs, follows and stops its agents.
 *
 * @module ag-ui-local-runtime/client
 */
export type { EncryptionApi } from "./encryption-api.js";
export {
  connectRuntime,
  type ClientAgent,
  type LocalAgentOnly,
  type RuntimeConnection,
  type ThreadsApi,
} from "./connect-runtime.js";
export { installRuntimeFetch, type FetchTarget, type InstallRuntimeFetchOptions } from "./install-runtime-fetch.js";
export type { OfferedModel, PageModel } from "./page-model.js";
export type { RuntimeFetchOptions } from "./runtime-fetch.js";
export { answerServiceWorker } from "./service-worker-relay.js";
export type { CallHeaders, ConnectRuntimeOptions } from "./host-link.js";
export type { RelayedHost, RelayedRequest } from "../wire/relayed-request.js";
export type { HostFactories } from "./start-host.js";
export { LocalAgent, type LocalAgentConfig, type LocalRunParameters } from "./local-agent.js";
export type { RunFailure, ThreadRun } from "./thread-run.js";
export type { AskReason, GiveUpReason, RecoveryNote, RunRecovery } from "../run/recovery.js";
export { threadActions, threadListActions, type ThreadActions, type ThreadListActions } from "./store/actions.js";
export { RuntimeStores } from "./store/runtime-stores.js";
export type { ReadableStore } from "./store/store.js";
export {
  emptyThreadList,
  ThreadListStore,
  type ThreadListOptions,
  type ThreadListSnapshot,
} from "./store/thread-list-store.js";
export {
  emptyThread,
  type RunOptions,
  type SendOptions,
  type ThreadSnapshot,
  type ThreadStoreOptions,
} from "./store/thread-snapshot.js";
export { ThreadStore } from "./store/thread-store.js";
export { FrontendTools, type FrontendTool, type ShownToolCall, type ToolCallContext } from "./tools/frontend-tools.js";
export type { FrontendToolRunnerOptions } from "./tools/frontend-tool-runner.js";
export { runFrontendTools } from "./tools/run-frontend-tools.js";
export type { ToolCallsApi } from "./tools/tool-calls-api.js";
export type { WaitingApi } from "./waiting/waiting-api.js";
export type { Attempt } from "../run/hosted.js";
export { RemoteRunner, type RemoteRunRequest } from "./remote-runner.js";
export type { ConnectedEvents, Replay, ThreadConnectRequest, ThreadRunRequest } from "../run/contract.js";
export type { PlacedEvent } from "../run/pack.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
export type { ThreadPlace } from "../run/thread-order.js";
export type { Cursor, RunStatus, SettledStatus, WaitingError } from "../run/types.js";
export type {
  Durability,
  Exclusion,
  HostKind,
  MessagePage,
  MessagePageQuery,
  NamedRun,
  OnBusy,
  RunEventsRequest,
  RunListQuery,
  RunnerErrorData,
  RunSummary,
  RuntimeStatus,
  Survives,
  ThreadChange,
  ThreadListQuery,
  ThreadSummary,
  ThreadToolCalls,
  ToolCallAnswer,
  ToolCallClaim,
  WaitingToolCall,
} from "../wire/shapes.js";
export type { WaitingReason, WaitingRun, WhenOffline } from "../wire/waiting-shapes.js";
