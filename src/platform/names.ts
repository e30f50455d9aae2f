/**
 * Every name that two contexts must spell alike. The version in it changes when contexts of the old and the new
 * spelling must not meet; history: v1, the first.
 */
const PREFIX = "ag-ui-local-runtime:v1";

/** The database, and the default of the `dbName` option. */
export const DEFAULT_DB_NAME = "ag-ui-local-runtime";

/** The property of the global object with the in-memory stores of a process, by their names. */
export const memoryHomesKey = Symbol.for(`${PREFIX}:memory-stores`);
/** The default of the in-memory runner's `dbName`. */
export const DEFAULT_MEMORY_NAME = "memory";

/** The BroadcastChannel of all hosts on one database. */
export const hostChannelName = (dbName: string): string => `${PREFIX}:${dbName}:hosts`;

/** The BroadcastChannel on which contexts say that they live, where there are no Web Locks. */
export const livesChannelName = `${PREFIX}:beats`;

/** The database of leases that earlier builds kept where there are no Web Locks; deleted when it is met. */
export const formerLeaseDbName = (dbName: string): string => `${dbName}.leases`;

/** The database of checkpoints, beside the log's. */
export const checkpointDbName = (dbName: string): string => `${dbName}.checkpoints`;
/** The database of what LangGraph.js saves. */
export const langGraphDbName = (dbName: string): string => `${dbName}.langgraph`;

/** The Web Lock that the holder of a thread holds while it runs the thread's run. */
export const threadLockName = (dbName: string, threadId: string): string => `${PREFIX}:${dbName}:thread:${threadId}`;

/** The Web Lock that a host holds for life. */
export const hostLifeLockName = (dbName: string, hostId: string): string => `${PREFIX}:${dbName}:host:${hostId}`;

/** The Web Lock that a tab holds for the life of its connection. */
export const tabLifeLockName = (tabId: string): string => `${PREFIX}:tab:${tabId}`;

/** The Web Lock that a service worker holds for life, from its first relayed request on. */
export const serviceWorkerLifeLockName = (id: string): string => `${PREFIX}:service-worker:${id}`;

/** The type of the message with which a service worker asks a page to hand a request over to its host. */
export const RELAY_MESSAGE = `${PREFIX}:relay`;
