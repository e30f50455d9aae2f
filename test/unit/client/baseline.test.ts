import { EventType } from "@ag-ui/client";
import { expect, onTestFinished, test } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, collect, freshDb, inputOf, rebuild, user } from "../runner/kit.js";

/** Counts on what it is given. */
const counts = agentOf(async function* ({ state }) {
  const { count = 0 } = (state ?? {}) as { count?: number };
  yield { type: EventType.STATE_DELTA, delta: [{ op: "add", path: "/count", value: count + 1 }] };
});

function tabs() {
  const host = serveRuntime({ dbName: freshDb(), stopGraceMs: 50, agents: { counts } });
  onTestFinished(() => host.close());
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(() => runtime.close());
  return { runtime, agent: () => runtime.agent("counts", { threadId: "t" }) };
}

/** Runs, and counts the snapshots of the state that come with it. */
async function snapshotsOf(agent: LocalAgent, id: string): Promise<number> {
  let snapshots = 0;
  agent.addMessage(user(id));
  await agent.runAgent({ runId: id }, { onStateSnapshotEvent: () => void snapshots++ });
  return snapshots;
}

test("a tab that has not read the thread is given the state that its run starts from, once (L2)", async () => {
  const { agent, runtime } = tabs();
  const first = agent();
  expect([await snapshotsOf(first, "1"), first.state]).toEqual([0, { count: 1 }]);
  expect([await snapshotsOf(first, "2"), first.state]).toEqual([0, { count: 2 }]);

  const unattached = agent();
  expect([await snapshotsOf(unattached, "3"), unattached.state]).toEqual([1, { count: 3 }]);

  // It was not told of the run between.
  expect([await snapshotsOf(first, "4"), first.state]).toEqual([1, { count: 4 }]);
  await first.connectAgent();
  expect([await snapshotsOf(first, "5"), first.state]).toEqual([0, { count: 5 }]);

  const run$ = runtime.runner().run({ threadId: "t", agent: { agentId: "counts" }, input: inputOf("t", "6") });
  const events = await collect(run$);
  expect((await rebuild(events)).state).toEqual({ count: 6 });
  // Who comes late reads it from the log.
  expect(await collect(run$)).toEqual(events);
});

test("a state that the caller sets counts, whatever the thread has", async () => {
  const { agent } = tabs();
  await snapshotsOf(agent(), "1");
  const other = agent();
  other.state = { count: 7 };
  await snapshotsOf(other, "2");
  expect(other.state).toEqual({ count: 8 });
});
