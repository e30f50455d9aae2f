/** This is a page or a worker of a browser. (Node has had more and more of their globals, but neither of these.) */
export const isBrowser = (): boolean => "document" in globalThis || "WorkerGlobalScope" in globalThis;
