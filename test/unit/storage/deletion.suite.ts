import { expect, test } from "vitest";
import type { RunStore } from "../../../src/storage/run-store.js";
import { claimed, contents, foreignEnd, idsOf, NOTHING, request, rowsOfRun, runOn, withRuns } from "./kit.js";

/** The law of deleting whole threads, part of the law of every RunStore. */
export function describeDeletion(create: () => RunStore): void {
  test("a deleted thread leaves a tombstone and nothing that can be read (L1)", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r1", "r2"]);
    const kept = await withRuns(store, "kept", ["r1"]);
    expect(await store.deleteThread("t")).toBe(true);

    const head = await store.head("t");
    expect(head).toEqual({
      threadId: "t",
      epoch: expect.any(Number),
      runCount: 2,
      activeRunIndex: -1,
      first: 2,
      deleted: true,
    });
    expect(head!.epoch).toBeGreaterThan(kept.epoch);
    expect(kept.epoch).toBeGreaterThan(before.epoch);
    expect(await store.thread("t")).toBeUndefined();
    expect((await store.threads({ limit: 10, archived: false })).map(({ threadId }) => threadId)).toEqual(["kept"]);
    expect(await store.runs("t")).toEqual([]);
    expect(await store.runsBefore({ threadId: "t", limit: 10 })).toEqual([]);
    expect(await store.runById("t", "r1")).toBeUndefined();
    expect((await store.runsOfId("r1", 10)).map(({ threadId }) => threadId)).toEqual(["kept"]);
    for (const runIndex of [0, 1]) expect(await rowsOfRun(store, "t", runIndex)).toEqual(NOTHING);
    expect(await store.messageRows("t", 1, undefined)).toEqual([]);
    expect(await contents(store, "kept", 0)).toEqual(["from r1"]);
  });

  test("a thread with a live run is not deleted, nor one that is not there (L5)", async () => {
    const store = create();
    await claimed(store, "t", "r");
    const before = await store.head("t");
    expect(await store.deleteThread("t")).toBe(false);
    expect(await store.head("t")).toEqual(before);
    expect(await store.run("t", 0)).toMatchObject({ status: "running" });
    expect(await store.deleteThread("none")).toBe(false);
    expect(await store.head("none")).toBeUndefined();
    await store.settleForeign("t", "r", "broken", 4_000, foreignEnd);
    expect(await store.deleteThread("t")).toBe(true);
    expect(await store.deleteThread("t")).toBe(false);
  });

  test("a run in a deleted thread begins a new one, with indexes that were never used (L1)", async () => {
    const store = create();
    await withRuns(store, "t", ["r1", "r2"]);
    await runOn(store, "t", "branch", 0);
    await store.deleteThread("t");
    const claim = await claimed(store, "t", "r1", { title: "anew", startedAt: 9_000 });
    expect(claim.runIndex).toBe(3);
    expect(await store.head("t")).toEqual({
      threadId: "t",
      epoch: claim.epoch,
      runCount: 4,
      activeRunIndex: 3,
      first: 3,
      live: { runIndex: 3, runId: "r1" },
      holder: "host-1",
    });
    expect(await store.runs("t")).toMatchObject([{ runIndex: 3, runId: "r1", prevRunIndex: null }]);
    expect((await store.run("t", 3))?.parentRunId).toBeUndefined();
    expect(await store.thread("t")).toMatchObject({ title: "anew", createdAt: 9_000, runCount: 1 });
    expect((await store.thread("t"))?.lastStatus).toBeUndefined();
    expect(await store.runById("t", "r1")).toMatchObject({ runIndex: 3 });
    // The same claim again, after an end that was not heard.
    expect(await store.claim(request("t", "r1", { startedAt: 9_000 }))).toEqual({ is: "claimed", claim, bytes: 0 });
  });

  test("the new runs of a deleted thread are read without the old ones, and branch only where they do (L2)", async () => {
    const store = create();
    await withRuns(store, "t", ["r1", "r2"]);
    await store.deleteThread("t");
    await withRuns(store, "t", ["r1", "r3"]);
    const head = (await store.head("t"))!;
    expect(head.branched).toBeUndefined();
    expect(await contents(store, "t", head.activeRunIndex)).toEqual(["from r1", "from r3"]);
    expect((await store.runs("t")).map(({ runIndex }) => runIndex)).toEqual([2, 3]);
    expect((await store.runsBefore({ threadId: "t", limit: 10 })).map(({ runIndex }) => runIndex)).toEqual([3, 2]);
    expect(await store.stateAfter("t", 2)).toEqual({ state: { after: "r1" }, interrupts: [] });
    await runOn(store, "t", "r4", 2);
    expect((await store.head("t"))?.branched).toBe(true);
  });

  test("a claim on what stood before the deletion is told that the thread went on (L5, L6)", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r1"]);
    await store.deleteThread("t");
    expect(await store.claim(request("t", "r2", { base: before, prevRunIndex: 0 }))).toEqual({ is: "moved" });
    expect(await store.claim(request("t", "r2", { prevRunIndex: 0 }))).toEqual({ is: "moved" });
    expect(await store.claim(request("t", "r2", { base: (await store.head("t"))! }))).toMatchObject({ is: "claimed" });
  });

  test("a thread is deleted again and again (L1)", async () => {
    const store = create();
    for (let time = 0; time < 3; time++) {
      await withRuns(store, "t", ["r1", "r2"]);
      expect(await store.deleteThread("t")).toBe(true);
    }
    expect(await store.head("t")).toMatchObject({ runCount: 6, first: 6, deleted: true });
    await store.sweep();
    expect(await store.runs("t")).toEqual([]);
  });

  test("a thread that was pinned or used since it was listed for eviction stays", async () => {
    const store = create();
    for (const id of ["idle", "pinned", "used"]) await withRuns(store, id, ["r1"]);
    const listed = await store.threadsBeyond(0);
    await store.updateThread("pinned", { pinned: true });
    await runOn(store, "used", "r2", 0);
    const gone: string[] = [];
    for (const thread of listed) {
      if (await store.deleteThread(thread.threadId, undefined, thread)) gone.push(thread.threadId);
    }
    expect(gone).toEqual(["idle"]);
  });

  test("idle, unpinned threads beyond the newest are told, the oldest first", async () => {
    const store = create();
    for (let n = 0; n < 5; n++) {
      await claimed(store, `t${n}`, "r", { startedAt: 100 + n });
      if (n !== 1) await store.settleForeign(`t${n}`, "r", "broken", 200 + n, foreignEnd);
    }
    // t1 is live, and its last sign of life is the oldest.
    expect(idsOf(await store.threadsBeyond(0))).toEqual(["t0", "t2", "t3", "t4"]);
    expect(idsOf(await store.threadsBeyond(2))).toEqual(["t0", "t2", "t3"]);
    expect(idsOf(await store.threadsBeyond(4))).toEqual(["t0"]);
    expect(idsOf(await store.threadsBeyond(10))).toEqual([]);
    await store.deleteThread("t0");
    expect(idsOf(await store.threadsBeyond(2))).toEqual(["t2", "t3"]);
  });
}
