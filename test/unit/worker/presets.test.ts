import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { connectRuntime, type RuntimeStatus } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { expect, onTestFinished, test, vi } from "vitest";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import type { AgentRunner } from "../../../src/run/contract.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { agentOf, counted, counter, freshDb } from "../runner/kit.js";

class OwnRunner extends InMemoryAgentRunner {}

const RUNNERS: Readonly<Record<string, () => AgentRunner>> = {
  indexeddb: () => new IndexedDBAgentRunner({ dbName: freshDb() }),
  "indexeddb with locks of its own": () =>
    new IndexedDBAgentRunner({ dbName: freshDb(), locks: locksOf(inProcessLockManager()) }),
  "in memory": () => new InMemoryAgentRunner({ dbName: freshDb() }),
  "in memory, isolated": () => new InMemoryAgentRunner({ store: "isolated" }),
  "of a subclass": () => new OwnRunner({ dbName: freshDb() }),
};

test.each(Object.entries(RUNNERS))(
  "a tab is served by a runner %s, and hears of the host's end",
  async (_name, make) => {
    const agents = { counter: agentOf(counter(3)) };
    let host = serveRuntime({ runner: make(), agents });
    const tab = connectRuntime({ hosts: { page: async () => host.connect() } });
    const seen: RuntimeStatus[] = [];
    tab.status$.subscribe((status) => seen.push(status));
    onTestFinished(async () => {
      await tab.close();
      await host.close();
    });
    const connected = () => seen.flatMap((status) => (status.is === "connected" ? status.bootId : []));
    const run = async (threadId: string) => {
      const agent = tab.agent("counter", { threadId });
      await agent.runAgent();
      return agent.messages.at(-1)?.content;
    };
    for (const threadId of ["a", "b"]) expect(await run(threadId)).toBe(counted(3));
    expect(new Set(connected()).size).toBe(1);
    expect(seen.at(-1)).toMatchObject({ is: "connected" });

    const before = host;
    host = serveRuntime({ runner: make(), agents });
    await before.close();
    await vi.waitFor(() => expect(new Set(connected()).size).toBe(2));
    expect(await run("c")).toBe(counted(3));
    expect(new Set(connected()).size).toBe(2);
  },
);
