/** Where the pages of fetch.html have the runtime. */
export const BASE = "/api/agents";
/** Where their server has the service worker. */
export const SERVICE_WORKER = "/fetch-sw.js";
