/**
 * A CopilotKit page on the worker: its agents, live in all tabs, and what its chat lacks without a server.
 *
 * @module ag-ui-local-runtime/copilotkit
 */
export { useCopilotKitAgents, type CopilotKitAgents } from "./agents.js";
export { editMessage, regenerate, type HasMessages, type MessageContent, type RunsAgents } from "./branches.js";
export type { CopilotKitTool, RunsTools, SharedToolsOptions, ToolExecution } from "./shared-tools.js";
export { useSharedTools, type SharedToolCalls } from "./use-shared-tools.js";
export { quietInspector } from "./quiet-inspector.js";
export { RunFailure, type RunFailureProps } from "./run-failure.js";
export type { ThreadLabel, ThreadListLabels } from "./thread-labels.js";
export { ThreadList, type ThreadListProps } from "./thread-list.js";
