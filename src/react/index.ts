/**
 * React hooks: threads, their runs and the list of threads, for React 18 and 19.
 *
 * @module ag-ui-local-runtime/react
 */
export { RuntimeProvider, useRuntime, useRuntimeStatus, type RuntimeProviderProps } from "./provider.js";
export {
  ThreadProvider,
  useThread,
  useThreadState,
  type Thread,
  type ThreadProviderProps,
  type UseThreadOptions,
} from "./thread.js";
export { useThreads, type ThreadList } from "./thread-list.js";
export { useFrontendTool, type FrontendToolDefinition } from "./frontend-tool.js";
export type {
  FrontendTool,
  RunOptions,
  SendOptions,
  ShownToolCall,
  ThreadActions,
  ThreadListActions,
  ThreadListOptions,
  ThreadListSnapshot,
  ThreadSnapshot,
  ToolCallContext,
} from "../client/index.js";
