import { expect, test } from "vitest";
import { RunLog } from "../../../src/runner/history/run-log.js";
import { epochBefore } from "../../../src/run/epochs.js";
import { emptyMemoryData, memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { baseAt, runOn, withRuns } from "../storage/kit.js";

/** A branched thread whose path was read; whatever changes it then is another host. */
async function branched() {
  let store = memoryRunStore(emptyMemoryData());
  const log = new RunLog({ ...store, head: (id) => store.head(id), runsBefore: (query) => store.runsBefore(query) });
  const path = async (): Promise<number[]> => {
    const head = (await store.head("t"))!;
    return [...(await log.pathTo(head, head.activeRunIndex))];
  };
  await withRuns(store, "t", ["r0", "r1", "r2"]);
  await runOn(store, "t", "r3", 1);
  expect(await path()).toEqual([3, 1, 0]);
  const begunAnew = () => (store = memoryRunStore(emptyMemoryData(epochBefore(0.5))));
  return { store, path, begunAnew };
}

test("a path that was read before goes on with the runs since then (L2)", async () => {
  const { store, path } = await branched();
  await runOn(store, "t", "r4", 3);
  await runOn(store, "t", "r5", 2);
  expect(await path()).toEqual([5, 2, 1, 0]);
  await store.activate?.("t", 4);
  expect(await path()).toEqual([4, 3, 1, 0]);
});

test("after a cut it begins at the cut (L2)", async () => {
  const { store, path } = await branched();
  await store.cut("t", (await store.head("t"))!.epoch, baseAt(1));
  expect(await path()).toEqual([3, 1]);
});

test("of a thread that has begun anew, nothing old is part of it (L2)", async () => {
  const { store, path } = await branched();
  await store.deleteThread("t");
  await withRuns(store, "t", ["r4"]);
  expect(await path()).toEqual([4]);
});

test("nor where the database has begun anew (L2)", async () => {
  const { path, begunAnew } = await branched();
  await withRuns(begunAnew(), "t", ["a", "b", "c", "d", "e"]);
  expect(await path()).toEqual([4, 3, 2, 1, 0]);
});
