/**
 * The service worker's side: relays requests of pages to the runtime's host.
 *
 * @module ag-ui-local-runtime/service-worker
 */
export { relayRuntime, type RelayRuntimeOptions } from "./relay-runtime.js";
