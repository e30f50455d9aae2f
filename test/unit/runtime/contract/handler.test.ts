import "fake-indexeddb/auto";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { describeContract } from "./contract.suite.js";
import { contractRuntime, handlerWay } from "./in-process.js";

describeContract(
  "a handler on IndexedDB",
  async () => handlerWay(contractRuntime({ dbName: `contract-${process.pid}` }), { basePath: "/api/copilotkit" }),
  { whole: true },
);

describeContract("a handler in memory", async () => {
  const runner = new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 });
  return handlerWay(contractRuntime({ runner }));
});

describeContract(
  "a handler with one endpoint",
  async () =>
    handlerWay(contractRuntime({ dbName: `contract-single-${process.pid}` }), {
      basePath: "/api/copilotkit",
      mode: "single-route",
    }),
  { single: true },
);
