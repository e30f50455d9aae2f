import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { expose } from "comlink";
import { runsApi } from "../runs/api.js";
import { ours } from "../runs/ours.js";

let databases = 0;
const api = runsApi(
  { indexeddb: () => ours(new IndexedDBAgentRunner({ dbName: `bench-runs-${++databases}` })) },
  () => new IndexedDBAgentRunner({ dbName: "bench-threads" }),
);

addEventListener("connect", (connecting) => {
  const [port] = (connecting as MessageEvent).ports;
  if (port === undefined) return;
  expose(api, port);
  port.postMessage("ready");
});
