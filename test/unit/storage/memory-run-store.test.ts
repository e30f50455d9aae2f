import { expect, test } from "vitest";
import { emptyMemoryData, memoryRunStore } from "../../../src/storage/memory/memory-run-store.js";
import { chunkOf, claimed, delta, foreignEnd, idsOf, runOn, settlement, withRuns } from "./kit.js";
import { describeRunStore } from "./run-store.suite.js";

describeRunStore("memory run store", () => memoryRunStore(emptyMemoryData()));

test("stores over the same data see the same log, and fence each other (L6)", async () => {
  const data = emptyMemoryData();
  const [one, other] = [memoryRunStore(data), memoryRunStore(data)];
  const claim = await claimed(one, "t", "r");
  await one.append(claim, chunkOf(claim, 0, [delta("a")]));
  expect(await other.chunks("t", 0, -1, 10)).toEqual(await one.chunks("t", 0, -1, 10));
  await other.settle(claim, settlement(claim, 1));
  await expect(one.append(claim, chunkOf(claim, 1, [delta("late")]))).rejects.toMatchObject({ code: "fenced" });
  await one.close();
  expect((await other.runs("t")).map(({ status }) => status)).toEqual(["finished"]);
});

test("the data is plain: a copy of it is the same log", async () => {
  const data = emptyMemoryData();
  await withRuns(memoryRunStore(data), "t", ["r1", "r2"]);
  const copy = memoryRunStore(structuredClone(data));
  expect(await copy.messageRows("t", 1, undefined)).toHaveLength(2);
  await runOn(copy, "t", "r3", 1);
  expect(await memoryRunStore(data).runs("t")).toHaveLength(2);
});

test("a chunk is kept and handed out as it is, never copied (L17)", async () => {
  const store = memoryRunStore(emptyMemoryData());
  const claim = await claimed(store, "t", "r");
  const chunk = chunkOf(claim, 0, [delta("a")]);
  await store.append(claim, chunk);
  expect((await store.chunks("t", 0, -1, 10))[0]).toBe(chunk);
});

test("nothing of a deleted thread stays in memory but its tombstone", async () => {
  const data = emptyMemoryData();
  const store = memoryRunStore(data);
  await withRuns(store, "t", ["r1", "r2"]);
  await store.deleteThread("t");
  expect(data.threadsOfRun.size).toBe(0);
  expect(data.threads.get("t")).toMatchObject({ row: undefined, runs: new Map(), indexOf: new Map() });
});

test("so many threads may be deleted, what is remembered of them is bounded", async () => {
  const data = emptyMemoryData();
  const store = memoryRunStore(data);
  await withRuns(store, "kept", ["r"]);
  for (let n = 0; n < 1_100; n++) {
    await claimed(store, `t${n % 1_050}`, "r");
    await store.settleForeign(`t${n % 1_050}`, "r", "broken", n, foreignEnd);
    await store.deleteThread(`t${n % 1_050}`);
  }
  expect(data.threads.size).toBe(1_001);
  expect(await store.head("t99")).toBeUndefined();
  expect(await store.head("t100")).toMatchObject({ deleted: true });
  expect(await store.head("t49")).toMatchObject({ deleted: true });
});

test("pinned threads count as kept and never go; archived ones go like others", async () => {
  const data = emptyMemoryData();
  const store = memoryRunStore(data);
  for (let n = 0; n < 5; n++) {
    await withRuns(store, `t${n}`, ["r"]);
    const thread = data.threads.get(`t${n}`)!;
    thread.row = { ...thread.row!, updatedAt: n, pinned: n === 0 || n === 4, archived: n === 1 || n === 3 };
  }
  expect(idsOf(await store.threadsBeyond(0))).toEqual(["t1", "t2", "t3"]);
  expect(idsOf(await store.threadsBeyond(2))).toEqual(["t1", "t2", "t3"]);
  expect(idsOf(await store.threadsBeyond(3))).toEqual(["t1", "t2"]);
});
