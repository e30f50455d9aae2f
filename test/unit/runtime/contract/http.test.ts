import "fake-indexeddb/auto";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { describeContract } from "./contract.suite.js";
import { httpWay } from "./http-ways.js";
import { contractRuntime } from "./in-process.js";

const inMemory = () => contractRuntime({ runner: new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 }) });

describeContract("a handler in http, on IndexedDB", () =>
  httpWay(contractRuntime({ dbName: `contract-http-${process.pid}` })),
);

describeContract("a handler with one endpoint in http", () => httpWay(inMemory(), { mode: "single-route" }), {
  single: true,
});
