/**
 * Every name that contexts share. Its version changes if old and new builds must not communicate; history: v1, the first.
 */
const PREFIX = "ag-ui-local-runtime:v1";

/** The database, and the default of the `dbName` option. */
export const DEFAULT_DB_NAME = "ag-ui-local-runtime";

/** What follows the user in the name of a worker that stands in for the usual one. No user has it. */
export const STAND_IN = "\n";

/** The user whom a worker's name names. */
export const userOf = (name: string): string => name.split(STAND_IN, 1)[0]!;

/** The database of one user; without a user, that of all. */
export const userDbName = (user: string | undefined, dbName: string): string =>
  // Names that derive from this one go on with a dot: a user "a.checkpoints" must not have the checkpoints of "a".
  user === undefined ? dbName : `${dbName}@${encodeURIComponent(userOf(user)).replaceAll(".", "%2E")}`;

/** The global property with a process's in-memory stores by name. */
export const memoryHomesKey = Symbol.for(`${PREFIX}:memory-stores`);
/** The default of the in-memory runner's `dbName`. */
export const DEFAULT_MEMORY_NAME = "memory";

/** The global property with the language models that tabs offer to a process. */
export const tabModelsKey = Symbol.for(`${PREFIX}:tab-models`);

/** The BroadcastChannel of all hosts on one database. */
export const hostChannelName = (dbName: string): string => `${PREFIX}:${dbName}:hosts`;

/** The BroadcastChannel on which hosts of a database are told that somebody has locked it. */
export const lockedChannelName = (dbName: string): string => `${PREFIX}:${dbName}:locked`;

/** The BroadcastChannel of life locks without Web Locks. */
export const livesChannelName = `${PREFIX}:beats`;

/** The database of leases of earlier builds without Web Locks; deleted if it exists. */
export const formerLeaseDbName = (dbName: string): string => `${dbName}.leases`;

/** The database of checkpoints, beside the log's. */
export const checkpointDbName = (dbName: string): string => `${dbName}.checkpoints`;
/** The database of what a device knows of the space that it shares with others. */
export const syncDbName = (dbName: string): string => `${dbName}.sync`;
/** The database of LangGraph.js checkpoints. */
export const langGraphDbName = (dbName: string): string => `${dbName}.langgraph`;

/** The Web Lock that a thread's holder holds during a run. */
export const threadLockName = (dbName: string, threadId: string): string => `${PREFIX}:${dbName}:thread:${threadId}`;

/** The Web Lock of the host that keeps the database in step with those of other devices. */
export const syncLockName = (dbName: string): string => `${PREFIX}:${dbName}:sync`;

/** The Web Lock that a host holds for life. */
export const hostLifeLockName = (dbName: string, hostId: string): string => `${PREFIX}:${dbName}:host:${hostId}`;

/** The Web Lock that a tab holds for the life of its connection. */
export const tabLifeLockName = (tabId: string): string => `${PREFIX}:tab:${tabId}`;

/** The Web Lock that a service worker holds for life, from its first relayed request on. */
export const serviceWorkerLifeLockName = (id: string): string => `${PREFIX}:service-worker:${id}`;

/** The type of the message with which a service worker asks a page to forward a request to its host. */
export const RELAY_MESSAGE = `${PREFIX}:relay`;
