/** The worker of the tests without storage in a browser that has no Web Locks either. */
import "./without-locks.js";
import "./no-storage.worker.js";
