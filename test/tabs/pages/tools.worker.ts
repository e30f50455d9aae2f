import { serveRuntime } from "ag-ui-local-runtime/worker";
import { caller } from "./caller-agent.js";
import { obeyLab } from "./scripted-control.js";
import { ownName } from "./worker-name.js";

obeyLab();
serveRuntime({ dbName: ownName().split("#")[0]!, agents: { caller } });
