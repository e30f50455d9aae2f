/** The worker of scripted.html in a browser that has no Web Locks. */
import "./without-locks.js";
import "./scripted.worker.js";
