import { expect, onTestFinished, test, vi } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { Repacking } from "../../../src/runner/keep/repacking.js";
import { indexedDBRunStore } from "../../../src/storage/indexeddb/indexeddb-run-store.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import { emptyMemoryData, memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { DrivenClock } from "../lock/driven-clock.js";
import { agentOf, collect, counted, counter, fastClock, freshDb, inputOf, makeRunner, rebuild, replay } from "./kit.js";

const IDLE_MS = 2_000;

function repacking(repack: RunStore["repack"]) {
  const clock = new DrivenClock();
  const closed = new AbortController();
  onTestFinished(() => closed.abort());
  const host = { idle: true };
  const store = { ...memoryRunStore(emptyMemoryData()), repack };
  const its = new Repacking({ store, clock }, () => host.idle, closed.signal);
  return { its, clock, closed, host };
}

test("runs of many small records are repacked, one at a time, once the host is idle", async () => {
  const asked: number[] = [];
  let end: () => void = () => undefined;
  const { its, clock, host } = repacking((_threadId, runIndex) => {
    asked.push(runIndex);
    return new Promise((resolve) => (end = resolve));
  });
  const pass = async (): Promise<void> => {
    clock.pass(IDLE_MS);
    await nextTask();
  };
  its.ended({ threadId: "t", runIndex: 0 }, 3, 3);
  its.ended({ threadId: "t", runIndex: 1 }, 100, 100_000);
  its.ended({ threadId: "t", runIndex: 2 }, 100, 200);
  its.ended({ threadId: "t", runIndex: 3 }, 100, 200);
  await nextTask();
  expect(asked).toEqual([]);
  host.idle = false;
  await pass();
  expect(asked).toEqual([]);
  host.idle = true;
  await pass();
  await pass();
  expect(asked).toEqual([2]);
  end();
  await nextTask();
  await pass();
  expect(asked).toEqual([2, 3]);
});

test("a run that starts goes first, and what it ended is done again; what fails is left", async () => {
  const asked: number[] = [];
  const { its, clock } = repacking(async (_threadId, runIndex, signal) => {
    asked.push(runIndex);
    if (runIndex === 1) throw new Error("The disk is full");
    if (asked.length === 1) await new Promise((resolve) => signal?.addEventListener("abort", resolve, { once: true }));
  });
  for (const runIndex of [0, 1, 2]) its.ended({ threadId: "t", runIndex }, 100, 200);
  const pass = async (): Promise<void> => {
    clock.pass(IDLE_MS);
    await nextTask();
  };
  await nextTask();
  await pass();
  expect(asked).toEqual([0]);
  its.yieldToRun();
  await nextTask();
  for (let n = 0; n < 3; n++) await pass();
  expect(asked).toEqual([0, 0, 1, 2]);
});

test("a closed runner repacks nothing more", async () => {
  const asked: number[] = [];
  const { its, clock, closed } = repacking(async (_threadId, runIndex) => void asked.push(runIndex));
  its.ended({ threadId: "t", runIndex: 0 }, 100, 200);
  closed.abort();
  clock.pass(IDLE_MS);
  await nextTask();
  expect(asked).toEqual([]);
  expect(clock.waiting).toBe(0);
});

test("a run that came in small pieces ends in few records, and replays the same (L2, L16)", async () => {
  const dbName = freshDb();
  const runner = makeRunner({ dbName, clock: fastClock(50) });
  await collect(
    runner.run({ threadId: "t", agent: agentOf(counter(200, () => nextTask())), input: inputOf("t", "r") }),
  );
  const log = indexedDBRunStore({ dbName });
  onTestFinished(() => log.close());
  await vi.waitFor(async () => expect((await log.chunks("t", 0, -1, Infinity)).length).toBeLessThan(3));
  expect((await rebuild(await replay(runner, "t"))).messages.at(-1)).toMatchObject({ content: counted(200) });
});
