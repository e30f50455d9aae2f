/**
 * The worker file's side: makes a context the host, makes agents.
 *
 * @module ag-ui-local-runtime/worker
 */
export { serveRuntime, type RuntimeHost, type ServeRuntimeOptions } from "./serve-runtime.js";
export { defineAgent, type AgentContext, type AgentFunction, type DefinedAgentConfig } from "./define-agent.js";
export type { Attempt, ContinuingAgent, HostedAttempt, HostedRun } from "../run/hosted.js";
export type { AgentSource } from "../runtime/agents.js";
export type { Logger } from "../platform/log.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
