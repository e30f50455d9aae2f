/** The worker of all presets in a browser that has no Web Locks. */
import "./without-locks.js";
import "./presets.worker.js";
