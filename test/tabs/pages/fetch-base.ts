/** Where the pages of fetch.html have the runtime. */
export const BASE = "/api/agents";
