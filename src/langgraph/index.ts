/**
 * LangGraph.js: graphs with durable state.
 *
 * @module ag-ui-local-runtime/langgraph
 */
export { IndexedDBSaver, type IndexedDBSaverOptions } from "./indexeddb-saver.js";
export type { Clock } from "../platform/clock.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
