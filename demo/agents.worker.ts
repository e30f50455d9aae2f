import { serveRuntime } from "ag-ui-local-runtime/worker";
import { readerAgent } from "./reader/agent.js";

// The same file is the SharedWorker and, where there is none, the tab's own Worker.
serveRuntime({
  agents: { reader: readerAgent },
  dbName: "ag-ui-local-runtime-demo",
});
