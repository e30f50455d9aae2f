import { serveRuntime } from "ag-ui-local-runtime/worker";
import * as agents from "./agents.js";
import type { IdleWord } from "./stamps.js";

// What a host's worker loads, and nothing done with it.
Object.assign(globalThis, { loaded: [serveRuntime, agents] });

addEventListener("connect", (connecting) => {
  const [port] = (connecting as MessageEvent).ports;
  port?.postMessage("here" satisfies IdleWord);
});
