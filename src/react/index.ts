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
export type {
  RunOptions,
  SendOptions,
  ThreadActions,
  ThreadListActions,
  ThreadListOptions,
  ThreadListSnapshot,
  ThreadSnapshot,
} from "../client/index.js";
