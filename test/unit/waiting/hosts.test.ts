import "fake-indexeddb/auto";
import { EventType, type BaseEvent } from "@ag-ui/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { threadLockName } from "../../../src/platform/names.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { times } from "../property.js";
import { agentOf, freshDb, makeRunner, mortalLocks, quiet } from "../runner/kit.js";
import { until } from "./kit.js";

const HOSTS = 3;

/** Who asks for the next run, how long it takes (ms), and whether a host dies behind it. */
const step = fc.record({
  host: fc.nat(HOSTS - 1),
  takes: fc.nat(6),
  dies: fc.option(fc.nat(HOSTS - 1), { freq: 6, nil: undefined }),
});

async function play(steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]): Promise<void> {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const executed: string[] = [];
  const refused: string[] = [];
  const agent = agentOf(async function* ({ runId }) {
    executed.push(runId);
    yield { type: EventType.CUSTOM, name: "n", value: 1 } as BaseEvent;
    await new Promise((resolve) => setTimeout(resolve, steps[Number(runId)]!.takes));
  });
  const hosts = Array.from({ length: HOSTS }, () => {
    const { locks, die } = mortalLocks(manager);
    const runner = makeRunner({ dbName, locks });
    const host = serveRuntime({ agents: { a: agent }, runner, logger: quiet });
    return { host, die, runner, runtime: connectRuntime({ hosts: { page: async () => host.connect() } }) };
  });
  // One that stays. Its tab follows the thread: whoever reads a live run notices that its host is gone.
  const [keeper] = hosts.slice(-1);
  const unfollow = keeper!.runtime.agent("a", { threadId: "t" }).follow();
  const alive = new Set(hosts);
  const asked: string[] = [];
  for (const [n, { host: at, dies }] of steps.entries()) {
    const runId = String(n);
    const { runtime } = [...alive][at % alive.size]!;
    const local = runtime.agent("a", { threadId: "t" });
    local.addMessage({ id: `${runId}-u`, role: "user", content: runId });
    asked.push(runId);
    // How it ends is for its tab, which may be gone.
    local.runAgent({ runId, onBusy: "queue" }).catch((error) => refused.push(`${runId}: ${String(error)}`));
    // Once it is in the log, the order is known.
    await until(async () => {
      const waits = (await keeper!.runtime.waiting.list("t")).map((run) => run.runId);
      const told = async () => JSON.stringify([refused, await keeper!.runner.listRuns("t")]);
      expect([...waits, ...executed], waits.includes(runId) ? "" : await told()).toContain(runId);
    });
    const dying = dies === undefined ? undefined : hosts[dies];
    if (dying !== undefined && dying !== keeper && alive.delete(dying)) {
      void dying.runtime.close();
      dying.runner.letGo();
      await dying.die();
    }
  }
  await until(async () => {
    expect(await keeper!.runtime.waiting.list("t")).toEqual([]);
    const runs = await keeper!.runner.listRuns("t");
    expect(runs.map(({ runId }) => runId).toReversed()).toEqual(asked);
    expect(runs.map(({ status }) => status).filter((status) => status !== "finished" && status !== "broken")).toEqual(
      [],
    );
  });
  expect(executed).toEqual(asked);
  unfollow();
  await Promise.all(
    hosts.map(async ({ runtime, host }) => [await runtime.close(), await host.close().catch(() => undefined)]),
  );
}

test("however many hosts there are, and die, each waiting run is executed once, in order (L1, L5, L9)", async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 8 }), play), {
    ...times(8),
    endOnFailure: true,
  });
}, 240_000);

test("a run that may begin, and whose thread another host still holds, waits instead of being refused", async () => {
  const dbName = freshDb();
  const manager = inProcessLockManager();
  const [{ locks }, other] = [mortalLocks(manager), mortalLocks(manager)];
  const executed: string[] = [];
  const agent = agentOf(async function* ({ runId }) {
    executed.push(runId);
    yield { type: EventType.CUSTOM, name: "n", value: 1 } as BaseEvent;
  });
  const host = serveRuntime({ agents: { a: agent }, runner: makeRunner({ dbName, locks }), logger: quiet });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  const held = await other.locks.tryHold(threadLockName(dbName, "t"));
  const local = runtime.agent("a", { threadId: "t" });
  local.addMessage({ id: "u", role: "user", content: "?" });
  const ended = local.runAgent({ runId: "r", onBusy: "queue" });
  await until(async () => expect((await runtime.waiting.list("t")).map(({ runId }) => runId)).toEqual(["r"]));
  expect(executed).toEqual([]);
  await held!.release();
  await ended;
  expect(executed).toEqual(["r"]);
  await Promise.all([runtime.close(), host.close()]);
});
