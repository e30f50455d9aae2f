/** LangGraph.js: graphs whose state lasts. */
export { IndexedDBSaver, type IndexedDBSaverOptions } from "./indexeddb-saver.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
