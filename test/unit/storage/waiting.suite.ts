import { expect, test } from "vitest";
import type { RunStore } from "../../../src/storage/run-store.js";
import type { AskedWaiting, RecoveryWaiting } from "../../../src/storage/waiting.js";
import { claimed, foreignEnd, idsOf, request, settlement, withRuns } from "./kit.js";

export const waiting = (runId: string, more: Partial<AskedWaiting> = {}): AskedWaiting => ({
  threadId: "t",
  runId,
  agentId: "reader",
  since: 1_000,
  kind: "run",
  request: { says: runId },
  ...more,
});

export const recovery = (of: string, runId = `${of}-again`): RecoveryWaiting => ({
  threadId: "t",
  runId,
  agentId: "reader",
  since: 5_000,
  notBefore: 6_000,
  attempt: { of, number: 2 },
  kind: "recovery",
  of,
  ofIndex: 0,
});

const idsIn = async (store: RunStore, threadId = "t"): Promise<string[]> =>
  (await store.waitingRuns(threadId)).map(({ runId }) => runId);

const addAll = async (store: RunStore, runIds: readonly string[], threadId = "t"): Promise<void> => {
  for (const runId of runIds) {
    expect(await store.addWaiting(waiting(runId, { threadId }), 10)).toEqual({ is: "added" });
  }
};

/** The law of waiting runs, part of the law of every RunStore. */
export function describeWaiting(create: () => RunStore): void {
  test("waiting runs come back whole, in the order in which they were added, by thread (L8)", async () => {
    const store = create();
    await addAll(store, ["r1", "r2"]);
    await addAll(store, ["r1"], "other");
    expect(await store.waitingRuns("t")).toMatchObject([waiting("r1"), waiting("r2")]);
    expect(await store.waitingRuns("t", 1)).toMatchObject([waiting("r1")]);
    expect((await store.waitingThreads()).toSorted()).toEqual(["other", "t"]);
    expect(await store.waitingRuns("nowhere")).toEqual([]);
    expect(await store.isWaiting("t", "r2")).toBe(true);
    expect(await store.isWaiting("other", "r2")).toBe(false);
    // No run, no thread: nothing else is in the log.
    expect(await store.head("t")).toBeUndefined();
  });

  test("what is handed out is the caller's own", async () => {
    const store = create();
    await addAll(store, ["r1"]);
    Object.assign((await store.waitingRuns("t"))[0]!, { runId: "spoilt" });
    expect(await idsIn(store)).toEqual(["r1"]);
  });

  test("a run that waits or is in the log is not added again (L8)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    await addAll(store, ["r1"]);
    expect(await store.addWaiting(waiting("r1", { request: "other" }), 10)).toEqual({ is: "waits" });
    expect(await store.addWaiting(waiting("r0"), 10)).toEqual({ is: "exists" });
    expect(await store.waitingRuns("t")).toMatchObject([{ request: { says: "r1" } }]);
    // The id of a run that was deleted is free.
    await store.deleteThread("t");
    expect(await store.addWaiting(waiting("r0"), 10)).toEqual({ is: "added" });
  });

  test("an answer may wait under the id of the run that asked, until it is in the log itself (L8)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    // Runs of the kit have their id for a fingerprint.
    expect(await store.addWaiting(waiting("r0"), 10, "r0")).toEqual({ is: "exists" });
    expect(await store.addWaiting(waiting("r0"), 10, "answer")).toEqual({ is: "added" });
    expect(await store.addWaiting(waiting("r0"), 10, "answer")).toEqual({ is: "waits" });
    const base = (await store.head("t"))!;
    const its = { base, prevRunIndex: 0, fingerprint: "answer", answerId: "a", waiting: true };
    const claim = await claimed(store, "t", "r0", its);
    await store.settle(claim, settlement(claim, 0));
    expect(await idsIn(store)).toEqual([]);
    expect(await store.addWaiting(waiting("r0"), 10, "answer")).toEqual({ is: "exists" });
    expect(await store.addWaiting(waiting("r0"), 10, "r0")).toEqual({ is: "exists" });
  });

  test("no more wait than may (L19)", async () => {
    const store = create();
    await addAll(store, ["r1", "r2"]);
    expect(await store.addWaiting(waiting("r3"), 2)).toEqual({ is: "full" });
    expect(await store.addWaiting(waiting("r2"), 2)).toEqual({ is: "waits" });
    expect(await store.addWaiting(waiting("r3", { threadId: "other" }), 2)).toEqual({ is: "added" });
    expect(await idsIn(store)).toEqual(["r1", "r2"]);
  });

  test("a moved run stands before the one that was named, or at the end", async () => {
    const store = create();
    await addAll(store, ["r1", "r2", "r3"]);
    expect(await store.moveWaiting("t", "r3", "r2")).toBe(true);
    expect(await idsIn(store)).toEqual(["r1", "r3", "r2"]);
    expect(await store.moveWaiting("t", "r2", "r1")).toBe(true);
    expect(await idsIn(store)).toEqual(["r2", "r1", "r3"]);
    expect(await store.moveWaiting("t", "r2", null)).toBe(true);
    expect(await idsIn(store)).toEqual(["r1", "r3", "r2"]);
    // Where it stands already.
    for (const [runId, before] of [
      ["r1", "r3"],
      ["r1", "r1"],
      ["r2", null],
    ] as const) {
      expect(await store.moveWaiting("t", runId, before)).toBe(true);
    }
    expect(await idsIn(store)).toEqual(["r1", "r3", "r2"]);
    for (const [runId, before] of [
      ["r1", "nowhere"],
      ["nowhere", "r1"],
      ["nowhere", null],
    ] as const) {
      expect(await store.moveWaiting("t", runId, before)).toBe(false);
    }
    await addAll(store, ["r4"]);
    expect(await idsIn(store)).toEqual(["r1", "r3", "r2", "r4"]);
    expect(await store.waitingRuns("t")).toMatchObject(["r1", "r3", "r2", "r4"].map((runId) => waiting(runId)));
  });

  test("however often runs are moved between the same two, the order is total and nothing is lost", async () => {
    const store = create();
    await addAll(store, ["r1", "r2", "r3", "r4"]);
    let expected = ["r1", "r2", "r3", "r4"];
    for (let n = 0; n < 150; n++) {
      const runId = expected.at(-1)!;
      expected = ["r1", ...expected.slice(1, -1)];
      expected.splice(expected.length - 1, 0, runId);
      expect(await store.moveWaiting("t", runId, expected.at(-1)!)).toBe(true);
      expect(await idsIn(store)).toEqual(expected);
    }
    expect(await store.waitingRuns("t")).toMatchObject(expected.map((runId) => waiting(runId)));
  });

  test("a removed run is gone, and only it", async () => {
    const store = create();
    await addAll(store, ["r1", "r2"]);
    expect(await store.removeWaiting("t", "r1")).toBe(true);
    expect(await store.removeWaiting("t", "r1")).toBe(false);
    expect(await idsIn(store)).toEqual(["r2"]);
    await store.removeWaiting("t", "r2");
    expect(await store.waitingThreads()).toEqual([]);
    await addAll(store, ["r1", "r2"]);
    await addAll(store, ["r1"], "other");
    await store.clearWaiting("t");
    expect(await store.waitingThreads()).toEqual(["other"]);
  });

  test("an update sets and removes what it names", async () => {
    const store = create();
    await addAll(store, ["r1"]);
    const error = { code: "unknown-agent", message: "No agent" } as const;
    expect(await store.updateWaiting("t", "r1", { notBefore: 7_000 })).toBe(true);
    expect(await store.updateWaiting("t", "r1", { error })).toBe(true);
    const [both] = await store.waitingRuns("t");
    expect(both).toMatchObject({ ...waiting("r1"), notBefore: 7_000, error });
    expect(await store.updateWaiting("t", "r1", { error: null, notBefore: null })).toBe(true);
    const [none] = await store.waitingRuns("t");
    expect(none).toMatchObject(waiting("r1"));
    expect(none).not.toHaveProperty("error");
    expect(none).not.toHaveProperty("notBefore");
    expect(await store.updateWaiting("t", "nowhere", { error })).toBe(false);
  });

  test("the claim that starts a waiting run takes it from those that wait, once and in order", async () => {
    const store = create();
    await addAll(store, ["r1", "r2"]);
    expect(await store.claim(request("t", "r2", { waiting: true }))).toEqual({ is: "behind" });
    expect(await store.claim(request("t", "nowhere", { waiting: true }))).toEqual({ is: "gone" });
    expect(await store.head("t")).toBeUndefined();
    const claim = await claimed(store, "t", "r1", { waiting: true });
    expect(await idsIn(store)).toEqual(["r2"]);
    // Asked again after an ambiguous end, and by another host.
    expect(await store.claim(request("t", "r1", { waiting: true }))).toMatchObject({ is: "claimed", claim });
    expect(await store.claim(request("t", "r1", { waiting: true, holder: "host-2" }))).toMatchObject({ is: "exists" });
    expect(await store.claim(request("t", "r2", { waiting: true }))).toEqual({ is: "moved" });
    expect(await idsIn(store)).toEqual(["r2"]);
    await store.settle(claim, settlement(claim, 0));
    await claimed(store, "t", "r2", { waiting: true, base: (await store.head("t"))!, prevRunIndex: 0 });
    expect(await idsIn(store)).toEqual([]);
  });

  test("a run that goes behind those that wait is not claimed while any do", async () => {
    const store = create();
    await addAll(store, ["r1"]);
    expect(await store.claim(request("t", "r2", { afterWaiting: true }))).toEqual({ is: "behind" });
    expect(await store.head("t")).toBeUndefined();
    expect(await idsIn(store)).toEqual(["r1"]);
    await store.removeWaiting("t", "r1");
    await claimed(store, "t", "r2", { afterWaiting: true });
  });

  test("a waiting run whose id another claim has used is executed no second time", async () => {
    const store = create();
    await addAll(store, ["r1", "r2"]);
    await withRuns(store, "t", ["r2"]);
    const base = (await store.head("t"))!;
    const again = request("t", "r2", { waiting: true, base, prevRunIndex: 0, holder: "host-2" });
    expect(await store.claim(again)).toMatchObject({ is: "exists" });
    expect(await idsIn(store)).toEqual(["r1"]);
  });

  test("a run that goes on with a broken one waits with the end of that one, before all others (L9)", async () => {
    const store = create();
    await addAll(store, ["r1"]);
    await claimed(store, "t", "r0");
    const asked: unknown[] = [];
    await store.settleForeign("t", "r0", "broken", 5_000, foreignEnd, (run, nextSeq) => {
      asked.push([run.runId, run.status, nextSeq]);
      return recovery("r0");
    });
    expect(asked).toEqual([["r0", "running", 0]]);
    expect(await store.waitingRuns("t")).toMatchObject([recovery("r0"), waiting("r1")]);
    const claim = await claimed(store, "t", "r0-again", {
      waiting: true,
      base: (await store.head("t"))!,
      prevRunIndex: 0,
    });
    await store.settle(claim, settlement(claim, 0, { status: "broken", recovery: recovery("r0-again") }));
    expect(await idsIn(store)).toEqual(["r0-again-again", "r1"]);
    // A retry of the settlement adds nothing.
    await store.settle(claim, settlement(claim, 0, { status: "broken", recovery: recovery("r0-again") }));
    expect(await idsIn(store)).toEqual(["r0-again-again", "r1"]);
  });

  test("a broken run that nothing goes on with leaves nothing that waits", async () => {
    const store = create();
    await claimed(store, "t", "r0");
    await store.settleForeign("t", "r0", "broken", 5_000, foreignEnd, () => undefined);
    expect(await store.waitingThreads()).toEqual([]);
  });

  test("deleting a thread deletes what waits in it, also where nothing ever ran", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    const [listed] = await store.threadsBeyond(0);
    await addAll(store, ["r1", "r2"]);
    await addAll(store, ["r1"], "never-ran");
    await addAll(store, ["r1"], "kept");
    expect(await store.deleteThread("t", undefined, listed)).toBe(false);
    expect(await idsIn(store)).toEqual(["r1", "r2"]);
    expect(await store.deleteThread("t")).toBe(true);
    expect(await store.deleteThread("never-ran")).toBe(true);
    expect(await store.deleteThread("never-ran")).toBe(false);
    expect(await store.waitingThreads()).toEqual(["kept"]);
    // A run that was added after the deletion.
    await addAll(store, ["r3"]);
    expect(await store.deleteThread("t")).toBe(true);
    expect(await store.waitingThreads()).toEqual(["kept"]);
  });

  test("a thread in which runs wait is none of those that a limit lets go", async () => {
    const store = create();
    for (const threadId of ["t0", "t1", "t2"]) await withRuns(store, threadId, ["r0"]);
    await addAll(store, ["r1"], "t0");
    expect(idsOf(await store.threadsBeyond(1))).toEqual(["t1", "t2"]);
    await store.removeWaiting("t0", "r1");
    expect(idsOf(await store.threadsBeyond(1))).toEqual(["t0", "t1"]);
  });
}
