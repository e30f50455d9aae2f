/**
 * The runtime: what stands around the runner, and its HTTP face.
 *
 * @module ag-ui-local-runtime/runtime
 */
export { AgentRuntime } from "./agent-runtime.js";
export { createRuntimeHandler, type HandlerMode, type RuntimeHandlerOptions } from "./http/handler.js";
export type { AgentPolicies, AgentPolicy } from "./agent-policies.js";
export type { Placement } from "../runner/request.js";
export type { RecoverableEnd, RecoveryChoice, RecoveryPolicy } from "../run/recovery.js";
export type { Network } from "../platform/network.js";
export type { AgentDescription, Agents, AgentsConfig, AgentSource } from "./agents.js";
export type { A2UIOptions, McpAppsOptions, McpAppsServer } from "./configure-agent.js";
export type { DebugOptions } from "./debug.js";
export type { ForwardHeadersOptions } from "./forward-headers.js";
export type { CorsOptions } from "./http/cors.js";
export type { RouteName } from "./http/routes.js";
export type { AllowedHosts } from "./http/hosts.js";
export type { TranscriptionService } from "./http/transcribe.js";
export type { AskedMcpServer, EndedRun, MeasuredRun, RuntimeFailure, RuntimeMetrics } from "./metrics.js";
export type {
  AfterRequestContext,
  AfterRequestMiddleware,
  BeforeRequestContext,
  BeforeRequestMiddleware,
  FilterContext,
  FilterEvent,
} from "./middleware.js";
export type { AgentRuntimeOptions, OnDisconnect, UnrecordedRunsOptions } from "./options.js";
export type { RequestRoute, ResolvedRequest } from "./request.js";
export type { PlainMessage } from "./plain-messages.js";
export type { Runtime, RuntimeHealth } from "./runtime.js";
export type { Logger } from "../platform/log.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
