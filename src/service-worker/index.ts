/** The service worker's side: hand requests of pages to the runtime's host. */
export { relayRuntime, type RelayRuntimeOptions } from "./relay-runtime.js";
