import "./without-locks.js";

/** The page hosts.html in a browser that has no Web Locks. */
await import("./hosts.js");
