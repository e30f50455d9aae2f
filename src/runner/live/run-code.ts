/*
 * What a host needs to run an agent and readers of a thread do not: loaded at the first run, with the AG-UI client.
 */
export { acquire } from "../claim/acquire.js";
export { fenceRun } from "../claim/fence.js";
export { Execution } from "./execution.js";
