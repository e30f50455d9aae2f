import { EventType } from "@ag-ui/client";
import { onTestFinished, expect, test, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import type { ThreadRun } from "../../../src/client/thread-run.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, collect, counter, freshDb, inputOf, makeRunner, quiet, silent, user } from "../runner/kit.js";

const agents = {
  failing: agentOf(async function* (input) {
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${input.runId}-a`, role: "assistant" };
    yield { type: EventType.RUN_ERROR, message: "no paper left", code: "PAPER" };
  }),
  throwing: agentOf(async function* () {
    yield* [];
    throw new TypeError("no such poem");
  }),
  counter: agentOf(counter(2)),
};

/** Tabs of two hosts that share a database. */
function hosts(): { readonly tab: () => RuntimeConnection; readonly elsewhere: () => RuntimeConnection } {
  const dbName = freshDb();
  const open = (): (() => RuntimeConnection) => {
    const host = serveRuntime({ agents, dbName, stopGraceMs: 50, logger: quiet });
    onTestFinished(() => host.close());
    return () => {
      const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
      onTestFinished(() => runtime.close());
      return runtime;
    };
  };
  return { tab: open(), elsewhere: open() };
}

function watched(agent: LocalAgent): { readonly agent: LocalAgent; readonly run: () => ThreadRun | undefined } {
  let run: ThreadRun | undefined;
  agent.run$.subscribe((now) => (run = now));
  return { agent, run: () => run };
}

const following = (runtime: RuntimeConnection) => {
  const tab = watched(runtime.agent("failing", { threadId: "t" }));
  tab.agent.follow();
  return tab;
};

test.each([
  ["its RUN_ERROR", "failing", { message: "no paper left", code: "PAPER" }],
  ["what it threw", "throwing", { message: "no such poem" }],
])("every tab is told why a run failed: %s", async (_what, agentId, error) => {
  const { tab, elsewhere } = hosts();
  const before = [following(tab()), following(elsewhere())];
  const own = watched(tab().agent(agentId, { threadId: "t" }));
  own.agent.addMessage(user("u"));
  await own.agent.runAgent({ runId: "r" });
  const later = [following(tab()), following(elsewhere())];
  const connected = watched(tab().agent("failing", { threadId: "t" }));
  await connected.agent.connectAgent();
  const failed = { is: "idle", last: { runId: "r", status: "errored", error } };
  for (const { run } of [...before, own, ...later, connected])
    await vi.waitFor(() => expect(run()).toMatchObject(failed));

  // Told again to who comes back, and to a copy, which both have seen its last event.
  const copy = watched(connected.agent.clone());
  expect(copy.run()).toMatchObject(failed);
  copy.agent.follow();
  connected.agent.follow();
  await Promise.all([copy.agent.connectAgent(), connected.agent.connectAgent()]);
  expect([copy.run(), connected.run()]).toMatchObject([failed, failed]);

  // The next run has nothing to do with it.
  const next = watched(tab().agent("counter", { threadId: "t" }));
  await next.agent.runAgent({ runId: "r2" });
  for (const { run } of [next, ...before, copy]) {
    await vi.waitFor(() => expect(run()).toEqual({ is: "idle", last: { runId: "r2", status: "finished" } }));
  }
});

test("a broken run tells what broke it", async () => {
  const dbName = freshDb();
  const runner = makeRunner({ dbName });
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r0") }));
  const running = runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "r") });
  await runner.settleAll("broken");
  await collect(running);
  const host = serveRuntime({ agents, runner });
  onTestFinished(() => host.close());
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(() => runtime.close());
  const tab = following(runtime);
  const error = { code: "RUN_BROKEN", message: expect.stringMatching(/host/) };
  await vi.waitFor(() => expect(tab.run()).toMatchObject({ last: { runId: "r", status: "broken", error } }));
});
