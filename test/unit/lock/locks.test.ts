import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { nextTask } from "../../../src/platform/clock.js";
import { indexedDBLeaseStore } from "../../../src/storage/indexeddb/leases.js";
import { freshDb, mortalLocks } from "../runner/kit.js";
import { LeaseWorld } from "./kit.js";
import { describeLocks } from "./locks.suite.js";

describeLocks("Web Locks, in one process", () => {
  const manager = inProcessLockManager();
  return { context: () => mortalLocks(manager), second: nextTask };
});

describeLocks("leases in memory", () => new LeaseWorld());

describeLocks("leases on fake-indexeddb", () => {
  const dbName = freshDb();
  return new LeaseWorld(() => indexedDBLeaseStore({ dbName }));
});
