/** Where the pages of fetch.html have the runtime. */
export const BASE = "/api/agents";
/** Where their server has the service worker. */
export const SERVICE_WORKER = "/fetch-sw.js";
/** The same for browsers whose service workers are no modules. */
export const CLASSIC_SERVICE_WORKER = "/classic-fetch-sw.js";
