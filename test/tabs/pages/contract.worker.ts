import { serveRuntime } from "ag-ui-local-runtime/worker";
import { contractRuntimeOptions } from "../../unit/runtime/contract/contract-agents.js";
import { ownName } from "./worker-name.js";

serveRuntime({ ...contractRuntimeOptions(), stopGraceMs: 50, dbName: ownName().split("#")[0]! });
