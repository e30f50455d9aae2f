import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { locksOf } from "../../../src/platform/locks.js";
import { Recovery } from "../../../src/runner/claim/recovery.js";
import type { RunnerParts } from "../../../src/runner/parts.js";
import type { ThreadHead } from "../../../src/storage/run-store.js";

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
