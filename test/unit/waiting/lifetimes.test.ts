import { expect, test, vi } from "vitest";
import { safeLogger } from "../../../src/platform/log.js";
import { RunnerError } from "../../../src/run/errors.js";
import { Callers } from "../../../src/runtime/callers.js";
import { WaitingRuns, type WaitingParts } from "../../../src/runtime/waiting/waiting-runs.js";
import { inputOf, makeMemoryRunner, quiet } from "../runner/kit.js";
import { network } from "./kit.js";

const CALL = { threadId: "t", agentId: "a" };

/** The waiting runs of a runner in memory, which is busy; `execute` is told of those that start. */
async function waitingOf(callers = new Callers()) {
  const runner = makeMemoryRunner();
  const outbox = await runner.outbox.get();
  const execute = vi.fn<WaitingParts["execute"]>(() => new Promise(() => undefined));
  const recovery = { decide: async () => undefined, cancel: async () => false, refused: async () => false };
  const begin = () => Promise.reject(new RunnerError("thread-busy"));
  const parts = {
    runner,
    network: network(),
    callers,
    execute,
    begin,
    recovery,
    policies: undefined,
    logger: safeLogger(quiet),
  };
  return { runner, outbox, execute, runs: new WaitingRuns({ ...parts, haveServers: false, isServer: false }, outbox) };
}

test("what a closed runner has read is let go by what outlives it, the callers", async () => {
  const callers = new Callers();
  const { runner } = await waitingOf(callers);
  expect(callers.changed$.observed).toBe(true);
  await runner.close();
  expect(callers.changed$.observed).toBe(false);
});

test.each([
  ["cannot be written", () => Promise.reject(new RunnerError("quota-exceeded"))],
  ["is in the log already", async () => "exists" as const],
])("the headers of a call go with it where its run %s", async (_, add) => {
  const { outbox, execute, runs } = await waitingOf();
  const added = vi.spyOn(outbox, "add").mockImplementationOnce(add);
  const run = { ...CALL, input: inputOf("t", "r") };
  const asked = runs.enqueue({ run, onBusy: "queue", whenOffline: "fail" }, { authorization: "a secret" });
  await asked.catch(() => undefined);
  expect(added).toHaveBeenCalledOnce();
  // Somebody else's run of this id.
  await outbox.add({ ...CALL, runId: "r", since: 0, kind: "run", request: run }, run.input);
  runs.look("t");
  await vi.waitFor(() => expect(execute).toHaveBeenCalled());
  expect(execute.mock.calls[0]).toMatchObject([{ runId: "r" }, undefined]);
});
