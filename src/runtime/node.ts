/**
 * Node: serves a handler of Requests with `node:http`, Connect or Express, and starts hosts that run agents for the devices
 * of a space.
 *
 * @module ag-ui-local-runtime/node
 */
export { createNodeHandler, type NodeHandler, type NodeHandlerOptions } from "./node-handler.js";
export type { Host, HostOptions } from "./host-options.js";
export { startHost } from "./start-host.js";
