import { connectRuntime } from "ag-ui-local-runtime/client";

/** Called once per page, and never on a server. */
export const connect = () =>
  connectRuntime({
    hosts: {
      shared: (name) =>
        new SharedWorker(new URL("./agents.worker.ts", import.meta.url), {
          type: "module",
          name,
          extendedLifetime: true,
        }),
      dedicated: () => new Worker(new URL("./agents.worker.ts", import.meta.url), { type: "module" }),
    },
  });
