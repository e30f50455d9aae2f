import { expect, test } from "vitest";
import type { CutBase, RunStore, ThreadHead } from "../../../src/storage/run-store.js";
import {
  chunkOf,
  claimed,
  contents,
  delta,
  foreignEnd,
  leaving,
  NOTHING,
  request,
  rowsOfRun,
  runOn,
  settlement,
  withRuns,
} from "./kit.js";

/** A base as a caller makes it from what he reads: what is shown at run `runIndex`, here in one message. */
const baseAt = (runIndex: number, content = `all up to ${runIndex}`): CutBase => ({
  runIndex,
  messages: [{ id: `base-${runIndex}`, role: "assistant", content }],
  state: { base: runIndex },
  interrupts: [],
});

const indexesOf = async (store: RunStore, threadId: string): Promise<number[]> =>
  (await store.runs(threadId)).map(({ runIndex }) => runIndex);

/** The law of cutting off a thread's oldest runs, part of the law of every RunStore. */
export function describeCut(create: () => RunStore): void {
  test("a cut leaves the base as messages, state and closing; its events and all older runs go (L1)", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r0", "r1", "r2", "r3"]);
    await withRuns(store, "other", ["r0"]);
    expect(await store.cut("t", before.epoch, baseAt(2))).toBe(3);

    const head = (await store.head("t"))!;
    expect(head).toEqual({ ...before, epoch: expect.any(Number), first: 2, cut: true });
    expect(await store.runs("t")).toMatchObject([
      { runIndex: 2, runId: "r2", prevRunIndex: null, status: "finished" },
      { runIndex: 3, runId: "r3", prevRunIndex: 2 },
    ]);
    expect(await store.chunks("t", 2, -1, 100)).toEqual([]);
    expect(await store.closing("t", 2)).toMatchObject({ terminal: { runId: "r2" } });
    expect(await store.stateAfter("t", 2)).toEqual({ state: { base: 2 }, interrupts: [] });
    expect(await store.messageRows("t", 3, undefined)).toEqual([
      { runIndex: 2, resets: true, row: { message: baseAt(2).messages[0] } },
      { runIndex: 3, resets: false, row: { message: { id: "r3-a", role: "assistant", content: "from r3" } } },
    ]);
    expect(await store.chunks("t", 3, -1, 100)).toHaveLength(2);
    for (const runIndex of [0, 1]) expect(await rowsOfRun(store, "t", runIndex)).toEqual(NOTHING);
    expect(await store.runById("t", "r1")).toBeUndefined();
    expect((await store.runsOfId("r0", 10)).map(({ threadId }) => threadId)).toEqual(["other"]);
    expect((await store.runsBefore({ threadId: "t", limit: 10 })).map(({ runIndex }) => runIndex)).toEqual([3, 2]);
    expect(await store.thread("t")).toMatchObject({ lastStatus: "finished" });
  });

  test("a thread goes on after a cut, and is cut again (L1)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1", "r2"]);
    await store.cut("t", (await store.head("t"))!.epoch, baseAt(1));
    await runOn(store, "t", "r3", 2);
    const head = (await store.head("t"))!;
    expect(head).toMatchObject({ runCount: 4, activeRunIndex: 3, first: 1, cut: true });
    expect(head.branched).toBeUndefined();
    expect(await contents(store, "t", 3)).toEqual(["all up to 1", "from r2", "from r3"]);
    // Run 1 lost its events before.
    expect(await store.cut("t", head.epoch, baseAt(3))).toBe(2);
    expect(await store.head("t")).toMatchObject({ runCount: 4, activeRunIndex: 3, first: 3, cut: true });
    expect(await indexesOf(store, "t")).toEqual([3]);
    expect(await contents(store, "t", 3)).toEqual(["all up to 3"]);
  });

  test("a cut at the same base changes nothing, whichever epoch it is asked at (L8)", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r0", "r1"]);
    await store.cut("t", before.epoch, baseAt(1));
    const head = (await store.head("t"))!;
    for (const epoch of [before.epoch, head.epoch]) {
      expect(await store.cut("t", epoch, baseAt(1, "another"))).toBe(0);
      expect(await store.head("t")).toEqual(head);
      expect(await contents(store, "t", 1)).toEqual(["all up to 1"]);
    }
  });

  test("the first run of a thread may be the base: only its events go", async () => {
    const store = create();
    const { epoch } = await withRuns(store, "t", ["r0", "r1"]);
    expect(await store.cut("t", epoch, baseAt(0))).toBe(1);
    expect(await indexesOf(store, "t")).toEqual([0, 1]);
    expect(await store.chunks("t", 0, -1, 100)).toEqual([]);
  });

  test("the base's messages stand in the place of all that its run left", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r0");
    const messages = [0, 1, 2].map((n) => ({ message: { id: `m${n}`, role: "assistant" as const, content: `${n}` } }));
    await store.settle(claim, settlement(claim, 0, { derived: { ...leaving("a", "", {}), messages } }));
    await store.cut("t", claim.epoch, baseAt(0));
    expect(await contents(store, "t", 0)).toEqual(["all up to 0"]);
  });

  test("the base is copied: who changes it afterwards changes nothing in the log (L1)", async () => {
    const store = create();
    const { epoch } = await withRuns(store, "t", ["r0"]);
    const base = { ...baseAt(0), state: { list: [1] } };
    await store.cut("t", epoch, base);
    base.state.list.push(2);
    Object.assign(base.messages[0]!, { content: "changed" });
    expect(await contents(store, "t", 0)).toEqual(["all up to 0"]);
    expect((await store.stateAfter("t", 0))?.state).toEqual({ list: [1] });
  });

  test("a base without messages says so", async () => {
    const store = create();
    const { epoch } = await withRuns(store, "t", ["r0", "r1"]);
    await store.cut("t", epoch, { ...baseAt(1), messages: [] });
    expect(await store.messageRows("t", 1, undefined)).toEqual([{ runIndex: 1, resets: true, row: undefined }]);
  });

  test("nothing is cut under a live run, or where the thread went on since (L5, L6)", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r0", "r1"]);
    const claim = await claimed(store, "t", "r2", { base: before, prevRunIndex: 1 });
    expect(await store.cut("t", before.epoch, baseAt(1))).toBeUndefined();
    expect(await store.cut("t", claim.epoch, baseAt(1))).toBeUndefined();
    await store.settle(claim, settlement(claim, 0));
    expect(await store.cut("t", before.epoch, baseAt(1))).toBeUndefined();
    expect(await indexesOf(store, "t")).toEqual([0, 1, 2]);
    expect(await store.chunks("t", 1, -1, 100)).toHaveLength(2);
    expect(await store.cut("t", claim.epoch, baseAt(1))).toBe(2);
  });

  test("no run is a base that is not there, not derived, cut off already or beside the path", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1", "beside"]);
    await runOn(store, "t", "r3", 1);
    const claim = await claimed(store, "t", "r4", { base: (await store.head("t"))!, prevRunIndex: 3 });
    await store.append(claim, chunkOf(claim, 0, [delta("a")]));
    await store.settleForeign("t", "r4", "broken", 4_000, foreignEnd);
    const tryAt = async (runIndex: number): Promise<number | undefined> =>
      store.cut("t", (await store.head("t"))!.epoch, baseAt(runIndex));
    for (const runIndex of [2, 4, 5]) expect(await tryAt(runIndex)).toBeUndefined();
    expect(await tryAt(1)).toBe(2);
    expect(await tryAt(0)).toBeUndefined();
    expect(await store.cut("none", 1, baseAt(0))).toBeUndefined();
    await store.derive("t", 4, settlement(claim, 0).closing, settlement(claim, 0).derived);
    await store.deleteThread("t");
    expect(await tryAt(4)).toBeUndefined();
  });

  test("branches that left the path before the base go with it, those that came after stay (L2)", async () => {
    const store = create();
    const at = async (runId: string, prevRunIndex: number | null): Promise<void> =>
      void (await runOn(store, "t", runId, prevRunIndex));
    await at("r0", null);
    await at("r1", 0);
    await at("early", 0); // 2
    await at("base", 1); // 3
    await at("late", 1); // 4, leaves before the base
    await at("later", 4); // 5, comes from it
    await at("one", 3); // 6
    await at("two", 3); // 7, leaves after the base
    await at("anew", null); // 8, has nothing in common with the path
    await at("end", 6); // 9
    const { epoch } = (await store.head("t"))!;
    // r0, r1, early, the base; then late, later and anew.
    expect(await store.cut("t", epoch, baseAt(3))).toBe(7);
    expect(await indexesOf(store, "t")).toEqual([3, 6, 7, 9]);
    for (const runIndex of [4, 5, 8]) expect(await rowsOfRun(store, "t", runIndex)).toEqual(NOTHING);
    expect(await store.runById("t", "late")).toBeUndefined();
    expect(await contents(store, "t", 9, new Set([3, 6, 9]))).toEqual(["all up to 3", "from one", "from end"]);
    expect(await contents(store, "t", 7, new Set([3, 7]))).toEqual(["all up to 3", "from two"]);
    expect(await store.chunks("t", 7, -1, 100)).toHaveLength(2);
    expect(await store.stateAfter("t", 7)).toEqual({ state: { after: "two" }, interrupts: [] });
    // Base and early branch are no runs with events any more, one is.
    await store.cut("t", (await store.head("t"))!.epoch, baseAt(6));
    expect(await indexesOf(store, "t")).toEqual([6, 9]);
  });

  test("runs that were still to be derived are forgotten where they go, and only there (L9)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    const broken = async (runId: string, prevRunIndex: number): Promise<void> => {
      await claimed(store, "t", runId, { base: (await store.head("t"))!, prevRunIndex });
      await store.settleForeign("t", runId, "broken", 4_000, foreignEnd);
    };
    await broken("b1", 0);
    await runOn(store, "t", "r2", 0);
    await broken("b3", 2);
    expect((await store.head("t"))?.underived).toEqual([1, 3]);
    await store.cut("t", (await store.head("t"))!.epoch, baseAt(2));
    expect((await store.head("t"))?.underived).toEqual([3]);
  });

  test("a claim on what stood before a cut is told that the thread went on (L5)", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r0", "r1", "r2"]);
    await store.cut("t", before.epoch, baseAt(1));
    expect(await store.claim(request("t", "r3", { base: before, prevRunIndex: 0 }))).toEqual({ is: "moved" });
    const head: ThreadHead = (await store.head("t"))!;
    expect(await store.claim(request("t", "r3", { base: head, prevRunIndex: 0 }))).toEqual({ is: "moved" });
    // Its run id counts no more, so it is free.
    expect(await store.claim(request("t", "r0", { base: head, prevRunIndex: 2 }))).toMatchObject({ is: "claimed" });
    expect(await store.runById("t", "r0")).toMatchObject({ runIndex: 3 });
  });

  test("a thread that was cut is deleted whole, and one that was deleted is cut again (L1)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1", "r2"]);
    await store.cut("t", (await store.head("t"))!.epoch, baseAt(1));
    await store.deleteThread("t");
    expect(await store.head("t")).not.toHaveProperty("cut");
    for (const runIndex of [0, 1, 2]) expect(await rowsOfRun(store, "t", runIndex)).toEqual(NOTHING);
    await withRuns(store, "t", ["r0", "r1", "r2"]);
    expect(await store.chunks("t", 3, -1, 100)).toHaveLength(2);
    expect(await store.cut("t", (await store.head("t"))!.epoch, baseAt(4))).toBe(2);
    expect(await contents(store, "t", 5)).toEqual(["all up to 4", "from r2"]);
  });
}
