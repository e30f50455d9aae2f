import { expect, test } from "vitest";
import type { RunStore } from "../../../src/storage/run-store.js";
import { claimed, foreignEnd, idsOf, request, settlement, withRuns } from "./kit.js";

/** The ids of the threads in a list. */
const listed = async (store: RunStore, archived: boolean, agentId?: string): Promise<string[]> =>
  (await store.threads({ limit: 10, archived, ...(agentId !== undefined && { agentId }) })).map(
    ({ threadId }) => threadId,
  );

/** A settled thread that was last updated at `at`. */
async function settledAt(store: RunStore, threadId: string, at: number, agentId = "reader"): Promise<void> {
  const claim = await claimed(store, threadId, "r", { agentId });
  await store.settle(claim, settlement(claim, 0, { endedAt: at }));
}

/** The law of changing a thread's row, part of the law of every RunStore. */
export function describeThreadUpdates(create: () => RunStore): void {
  test("an update writes what it gives and leaves the rest, the time of the last run too", async () => {
    const store = create();
    await settledAt(store, "t", 3_000);
    const before = (await store.thread("t"))!;
    expect(before).toMatchObject({ title: "hi", archived: false, pinned: false, updatedAt: 3_000 });

    const named = { ...before, title: "named", named: true };
    expect(await store.updateThread("t", { title: "named" })).toEqual(named);
    expect(await store.updateThread("t", { archived: true, pinned: true })).toEqual({
      ...named,
      archived: true,
      pinned: true,
    });
    expect(await store.updateThread("t", { archived: false })).toEqual({ ...named, pinned: true });
    expect(await store.updateThread("t", {})).toEqual({ ...named, pinned: true });
    expect(await store.thread("t")).toEqual({ ...named, pinned: true });
  });

  test("what an update hands out is the caller's own", async () => {
    const store = create();
    await settledAt(store, "t", 3_000);
    Object.assign((await store.updateThread("t", { title: "named" }))!, { title: "spoilt" });
    expect((await store.thread("t"))?.title).toBe("named");
  });

  test("updates of different fields at once all hold", async () => {
    const store = create();
    await settledAt(store, "t", 3_000);
    await Promise.all([
      store.updateThread("t", { title: "named" }),
      store.updateThread("t", { archived: true }),
      store.updateThread("t", { pinned: true }),
    ]);
    expect(await store.thread("t")).toMatchObject({ title: "named", archived: true, pinned: true });
  });

  test("a title that somebody gave stays when the live run ends and others begin", async () => {
    const store = create();
    const live = await claimed(store, "t", "r0");
    await store.updateThread("t", { title: "named", pinned: true });
    await store.settle(live, settlement(live, 0));
    const next = await claimed(store, "t", "r1", { base: (await store.head("t"))!, prevRunIndex: 0, title: "later" });
    await store.settleForeign("t", next.runId, "broken", 4_000, foreignEnd);
    expect(await store.thread("t")).toMatchObject({
      title: "named",
      pinned: true,
      runCount: 2,
      lastStatus: "broken",
      updatedAt: 4_000,
    });
  });

  test("a thread that had no title keeps the one that somebody gave", async () => {
    const store = create();
    const first = await claimed(store, "t", "r0", { title: "" });
    await store.updateThread("t", { title: "named" });
    await store.settle(first, settlement(first, 0));
    await claimed(store, "t", "r1", { base: (await store.head("t"))!, prevRunIndex: 0, title: "later" });
    expect((await store.thread("t"))?.title).toBe("named");
  });

  test("an update at once with a claim and with an end undoes neither", async () => {
    const store = create();
    const [live] = await Promise.all([
      withRuns(store, "t", ["r0"]).then((base) => claimed(store, "t", "r1", { base, prevRunIndex: 0 })),
      withRuns(store, "other", ["r0"]),
    ]);
    await Promise.all([store.settle(live, settlement(live, 0)), store.updateThread("t", { title: "named" })]);
    const base = (await store.head("t"))!;
    expect(base.live).toBeUndefined();
    await Promise.all([
      store.updateThread("t", { pinned: true }),
      store.claim(request("t", "r2", { base, prevRunIndex: 1, startedAt: 5_000 })),
      store.updateThread("t", { archived: true }),
    ]);
    expect(await store.thread("t")).toMatchObject({
      title: "named",
      pinned: true,
      archived: true,
      runCount: 3,
      lastStatus: "finished",
      updatedAt: 5_000,
    });
  });

  test("an archived thread goes from the one list to the other and back, each time to its place by time", async () => {
    const store = create();
    for (const [n, threadId] of ["t0", "t1", "t2"].entries()) await settledAt(store, threadId, 3_000 + n);
    await store.updateThread("t1", { archived: true });
    expect([await listed(store, false), await listed(store, true)]).toEqual([["t2", "t0"], ["t1"]]);
    expect([await listed(store, false, "reader"), await listed(store, true, "reader")]).toEqual([["t2", "t0"], ["t1"]]);
    await store.updateThread("t0", { archived: true });
    expect(await listed(store, true)).toEqual(["t1", "t0"]);
    await store.updateThread("t1", { archived: false });
    expect([await listed(store, false), await listed(store, true)]).toEqual([["t2", "t1"], ["t0"]]);
  });

  test("a pinned thread is none of those that a limit lets go", async () => {
    const store = create();
    for (const [n, threadId] of ["t0", "t1", "t2"].entries()) await settledAt(store, threadId, 3_000 + n);
    await store.updateThread("t0", { pinned: true });
    expect(idsOf(await store.threadsBeyond(2))).toEqual(["t1"]);
    await store.updateThread("t0", { pinned: false });
    expect(idsOf(await store.threadsBeyond(2))).toEqual(["t0"]);
  });

  test("no update makes a thread, or brings a deleted one back (L1)", async () => {
    const store = create();
    expect(await store.updateThread("t", { title: "named" })).toBeUndefined();
    await settledAt(store, "t", 3_000);
    await store.updateThread("t", { title: "named", archived: true, pinned: true });
    await store.deleteThread("t");
    const tombstone = await store.head("t");
    expect(await store.updateThread("t", { title: "again" })).toBeUndefined();
    expect(await store.thread("t")).toBeUndefined();
    expect([await listed(store, false), await listed(store, true)]).toEqual([[], []]);
    expect(await store.head("t")).toEqual(tombstone);
    // A new thread of the same id has nothing of it.
    await claimed(store, "t", "r");
    expect(await store.thread("t")).toMatchObject({ title: "hi", archived: false, pinned: false });
  });
}
