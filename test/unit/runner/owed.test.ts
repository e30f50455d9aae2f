import { EventType, type AbstractAgent } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import { Recovery } from "../../../src/runner/claim/recovery.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { RunnerParts } from "../../../src/runner/parts.js";
import type { ThreadHead } from "../../../src/storage/run-store.js";
import { agentOf, collect, counter, gated, inputOf, makeRunner } from "./kit.js";

const LIVE = { runId: "r", runIndex: 0 };

/** The parts that a runner keeps to itself. */
const partsOf = (runner: LocalAgentRunner): RunnerParts =>
  (runner as unknown as { engine: { parts: RunnerParts } }).engine.parts;

test("a deleted thread that is made again with the same run id is not taken for over (L7)", async () => {
  const closed = new AbortController();
  // Else a failure would go on for ever.
  onTestFinished(() => closed.abort());
  let storageFails = true;
  const head: ThreadHead = {
    threadId: "t",
    epoch: 9,
    runCount: 2,
    activeRunIndex: 1,
    first: 1,
    live: { runId: "r", runIndex: 1 },
  };
  const settleForeign = vi.fn();
  // Only what recovery reads.
  const parts = {
    dbName: "owed",
    hostId: "here",
    locks: locksOf(inProcessLockManager()),
    clock: { ...systemClock, after: (_ms: number, signal?: AbortSignal) => systemClock.after(1, signal) },
    store: {
      head: async () => {
        if (storageFails) throw new Error("the storage fails");
        return head;
      },
      settleForeign,
    },
  } as unknown as RunnerParts;
  const settled = vi.fn();
  const recovery = new Recovery(parts, settled, closed.signal);
  await recovery.breakOff({ threadId: "t", runId: "r", runIndex: 0 }, "broken", new Error("lost"));
  expect(recovery.owes("t", { runId: "r", runIndex: 0 })).toMatchObject({ error: new Error("lost") });
  expect(recovery.owes("t", { runId: "r", runIndex: 1 })).toBeUndefined();
  storageFails = false;
  await vi.waitFor(() => expect(settled).toHaveBeenCalledWith("t"));
  expect(recovery.owes("t", { runId: "r", runIndex: 0 })).toBeUndefined();
  expect(settleForeign).not.toHaveBeenCalled();
});

test("a run of another host is not taken for one of the same id whose claim may have been written (L7)", async () => {
  const runner = makeRunner();
  await runner.opened;
  const { store } = partsOf(runner);
  const head = { threadId: "t", epoch: 1, runCount: 1, activeRunIndex: 0, holder: "other", live: LIVE };
  vi.spyOn(store, "head").mockRejectedValueOnce(new Error("the storage fails")).mockResolvedValue(head);
  const settleForeign = vi.spyOn(store, "settleForeign");
  const recovery = new Recovery(partsOf(runner), () => undefined, runner.closedSignal);
  await recovery.breakOff({ threadId: "t", runId: "r" }, "broken", new Error("lost"));
  await vi.waitFor(() => expect(recovery.owes("t", LIVE)).toBeUndefined());
  expect(settleForeign).not.toHaveBeenCalled();
});

test("a run that is sent again is not taken for the one whose claim may have been written (L7)", async () => {
  const runner = makeRunner();
  await runner.opened;
  // The claim fails, and so does the reading that would tell whether it was written.
  const { store } = partsOf(runner);
  const fails = (): Promise<never> => Promise.reject(new Error("the storage fails"));
  const head = vi.spyOn(store, "head");
  vi.spyOn(store, "claim").mockImplementationOnce(() => {
    head.mockImplementation(fails);
    return fails();
  });
  const start = (agent: AbstractAgent) => runner.run({ threadId: "t", agent, input: inputOf("t", "r") });
  await expect(collect(start(agentOf(counter(1))))).rejects.toThrow("the storage fails");
  head.mockRestore();
  const { gate, letOn } = gated();
  const run = collect(start(agentOf(counter(1, () => gate))));
  await vi.waitFor(async () => expect(await runner.getRun("r")).toBeDefined());
  expect(await runner.listThreads()).toMatchObject([{ live: { runId: "r" } }]);
  letOn();
  expect((await run).at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
});
