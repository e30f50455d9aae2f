import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { expect, onTestFinished, test } from "vitest";
import { ContractBench } from "../unit/runtime/contract/contract-bench.js";
import { describeContract } from "../unit/runtime/contract/contract.suite.js";
import { contractRuntime, handlerWay } from "../unit/runtime/contract/in-process.js";
import type { WayIn } from "../unit/runtime/contract/way-in.js";

const onDisk = () => {
  const dbName = `contract-${crypto.randomUUID()}`;
  return { dbName, runtime: contractRuntime({ dbName }) };
};

/** The way in, and its database with it when it is closed. */
function kept(way: WayIn, dbName: string): WayIn {
  return {
    ...way,
    close: async () => {
      await way.close();
      indexedDB.deleteDatabase(dbName);
    },
  };
}

describeContract("a handler, in the browser", async () => {
  const { runtime, dbName } = onDisk();
  return kept(handlerWay(runtime, { basePath: "/api/copilotkit" }), dbName);
});

describeContract(
  "a handler with one endpoint, in the browser",
  async () => {
    const { runtime, dbName } = onDisk();
    return kept(handlerWay(runtime, { mode: "single-route" }), dbName);
  },
  { single: true },
);

describeContract("a handler of a page's host, in the browser", async () => {
  const { runtime, dbName } = onDisk();
  const host = serveRuntime(runtime);
  const way = handlerWay(runtime);
  return kept({ ...way, close: () => host.close() }, dbName);
});

test("a tab of a host sees the runs that came in over HTTP, and stops them", async () => {
  const { runtime, dbName } = onDisk();
  const host = serveRuntime(runtime);
  const tab = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await tab.close();
    await host.close();
    indexedDB.deleteDatabase(dbName);
  });
  const bench = new ContractBench(handlerWay(runtime));
  const { reader } = await bench.hold({ threadId: "t", runId: "r", props: { open: ["text"] } });
  const agent = tab.agent("holder", { threadId: "t" });
  const connected = agent.connectAgent();
  await expect.poll(() => agent.messages.at(-1)?.content).toBe("half a ");
  agent.abortRun();
  await connected;
  expect((await reader.all()).at(-1)?.event.type).toBe("RUN_FINISHED");
});
