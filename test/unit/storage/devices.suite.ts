import { EventType } from "@ag-ui/client";
import { expect, test } from "vitest";
import { closingEvents } from "../../../src/run/finalize.js";
import { ChunkBuilder } from "../../../src/run/pack.js";
import type { PlacedRun } from "../../../src/storage/devices.js";
import type { BuildForeignEnd, Claim, ClaimRequest, RunStore } from "../../../src/storage/run-store.js";
import {
  baseAt,
  chunkOf,
  claimed,
  contents,
  delta,
  foreignEnd,
  leaving,
  request,
  rowsOfRun,
  runOn,
  settlement,
  withRuns,
} from "./kit.js";
import { eventsOf } from "./stores.js";

export const DEVICE = { id: "phone-1", name: "Phone" };

/** A run of the other device, of the events `texts` and its end. It says "all of <runId>". */
export function placed(runId: string, more: Partial<PlacedRun> = {}, texts: readonly string[] = ["a", "b"]): PlacedRun {
  const terminal = { type: EventType.RUN_FINISHED, threadId: "t", runId };
  const builder = new ChunkBuilder({ threadId: "elsewhere", runIndex: 77, epoch: 7, firstSeq: 0 });
  for (const text of texts) builder.add(delta(text), 2_000);
  const first = builder.take();
  const last = new ChunkBuilder({ threadId: "elsewhere", runIndex: 77, epoch: 7, firstSeq: texts.length });
  last.add(terminal, 2_500);
  const { input, fingerprint, title } = request("t", runId);
  return {
    threadId: "t",
    runId,
    startedAt: 1_000,
    prevRunIndex: null,
    input,
    fingerprint,
    title,
    device: DEVICE,
    status: "finished",
    endedAt: 2_500,
    chunks: [...(first === undefined ? [] : [first]), last.take()!],
    closing: { runStarted: { type: EventType.RUN_STARTED }, customs: [], terminal },
    derived: leaving(`${runId}-a`, `all of ${runId}`, { after: runId }),
    bytes: 100,
    activates: true,
    ...more,
  };
}

/** Run 0 of this device, and run 1 of the other one, of which two events came before it broke here. */
export async function brokenHere(store: RunStore): Promise<Claim> {
  const head = await withRuns(store, "t", ["r0"]);
  const claim = await claimed(store, "t", "r1", { base: head, prevRunIndex: 0, device: DEVICE });
  await store.append(claim, chunkOf(claim, 0, [delta("a"), delta("b")]));
  await store.settleForeign("t", "r1", "broken", 4_000, foreignEnd);
  const closing = settlement(claim, 0).closing;
  await store.derive("t", 1, closing, leaving("r1-a", "part of r1", { after: "part" }));
  return claim;
}

/** An end as `stopped` that another host writes. */
const stopped: BuildForeignEnd = (run, nextSeq, open) => {
  const builder = new ChunkBuilder({ ...run, firstSeq: nextSeq });
  for (const event of closingEvents(open, { ...run, status: "stopped", ids: () => "made-up" }))
    builder.add(event, 4_000);
  return builder.take()!;
};

const headOf = async (store: RunStore) => (await store.head("t"))!;
const claimOn = async (
  store: RunStore,
  runId: string,
  prevRunIndex: number | null,
  over: Partial<ClaimRequest> = {},
): Promise<Claim> => claimed(store, "t", runId, { base: await headOf(store), prevRunIndex, ...over });

/** What the next run of the thread is told that the ended ones take. */
async function bytesOf(store: RunStore): Promise<number | undefined> {
  const base = await headOf(store);
  const next = await store.claim(request("t", "next", { base, prevRunIndex: base.activeRunIndex }));
  return next.is === "claimed" ? next.bytes : undefined;
}

/** All that can be read of the thread `t`. */
async function allOf(store: RunStore): Promise<unknown> {
  const head = await store.head("t");
  const runs = Array.from({ length: head?.runCount ?? 0 }, (_, runIndex) => rowsOfRun(store, "t", runIndex));
  return [head, await store.thread("t"), await Promise.all(runs)];
}

/** Does nothing to the thread. */
async function inVain(store: RunStore, work: () => Promise<unknown>): Promise<unknown> {
  const before = await allOf(store);
  const result = await work();
  expect(await allOf(store)).toEqual(before);
  return result;
}

/** The law of a DeviceStore, part of the law of every RunStore. */
export function describeDevices(create: () => RunStore): void {
  test("a claim for another device says so in the head and the row", async () => {
    const store = create();
    await claimed(store, "t", "r", { device: DEVICE });
    expect((await headOf(store)).live).toEqual({ runIndex: 0, runId: "r", device: DEVICE });
    expect(await store.run("t", 0)).toMatchObject({ device: DEVICE });
  });

  test("a run that is reopened is live again, without what its end had added (L2, L6)", async () => {
    const store = create();
    const before = await brokenHere(store);
    const old = await headOf(store);
    const claim = (await store.reopen("t", 1, "host-2"))!;
    expect(claim).toEqual({ threadId: "t", runIndex: 1, runId: "r1", epoch: claim.epoch, holder: "host-2" });
    expect(claim.epoch).toBeGreaterThan(old.epoch);
    const head = await headOf(store);
    expect(head).toMatchObject({ epoch: claim.epoch, holder: "host-2", activeRunIndex: 1, runCount: 2 });
    expect(head.live).toEqual({ runIndex: 1, runId: "r1", device: DEVICE });
    expect((await store.liveHeads()).map(({ threadId }) => threadId)).toEqual(["t"]);
    const row = (await store.run("t", 1))!;
    expect(row).toMatchObject({ status: "running", epoch: claim.epoch, revised: { epoch: claim.epoch, from: 2 } });
    for (const gone of ["endedAt", "eventCount", "closedFrom", "recovery"]) expect(row).not.toHaveProperty(gone);
    expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b"]);
    expect(await store.closing("t", 1)).toBeUndefined();
    expect(await store.stateAfter("t", 1)).toBeUndefined();
    expect(await contents(store, "t", 1)).toEqual(["from r0"]);
    expect(await store.input("t", 1)).toEqual(request("t", "r1").input);
    await expect(store.append(before, chunkOf(before, 2, [delta("late")]))).rejects.toMatchObject({ code: "fenced" });
  });

  test("it goes on where it was, and ends as its device says", async () => {
    const store = create();
    await brokenHere(store);
    const claim = (await store.reopen("t", 1, "host-2"))!;
    await store.append(claim, chunkOf(claim, 2, [delta("c")]));
    const derived = leaving("r1-a", "all of r1", { after: "r1" });
    await store.settle(claim, settlement(claim, 3, { derived }));
    expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b", "2 c", "3 RUN_FINISHED"]);
    expect(await store.run("t", 1)).toMatchObject({ status: "finished", eventCount: 4, revised: { from: 2 } });
    expect(await contents(store, "t", 1)).toEqual(["from r0", "all of r1"]);
    expect((await headOf(store)).underived).toBeUndefined();
  });

  test("one that was not derived yet is derived from its new end only", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r", { device: DEVICE });
    await store.settleForeign("t", "r", "broken", 4_000, foreignEnd);
    expect((await headOf(store)).underived).toEqual([0]);
    await store.reopen("t", 0, "host-2");
    expect((await headOf(store)).underived).toBeUndefined();
    expect(await eventsOf(store, 0)).toEqual([]);
    await store.derive("t", 0, settlement(claim, 0).closing, leaving("late", "late", {}));
    expect(await contents(store, "t", 0)).toEqual([]);
  });

  test("of a run that is reopened twice, what was revised first stays so (L2)", async () => {
    const store = create();
    await brokenHere(store);
    const claim = (await store.reopen("t", 1, "host-2"))!;
    await store.append(claim, chunkOf(claim, 2, [delta("c"), delta("d")]));
    await store.settleForeign("t", "r1", "broken", 5_000, foreignEnd);
    expect(await store.run("t", 1)).toMatchObject({ closedFrom: 4 });
    const again = (await store.reopen("t", 1, "host-3"))!;
    expect(await store.run("t", 1)).toMatchObject({ revised: { epoch: again.epoch, from: 2 } });
    expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b", "2 c", "3 d"]);
  });

  test("no other run is reopened: nothing is written", async () => {
    const store = create();
    expect(await store.reopen("t", 0, "h")).toBeUndefined();
    await withRuns(store, "t", ["r0"]);
    expect(await inVain(store, () => store.reopen("t", 0, "h"))).toBeUndefined();
    const own = await claimOn(store, "r1", 0);
    await store.settleForeign("t", own.runId, "broken", 4_000, foreignEnd);
    expect(await inVain(store, () => store.reopen("t", 1, "h"))).toBeUndefined();
  });

  test("nor one before the active run, of another id, stopped, or while a run is live (L5, L7)", async () => {
    const store = create();
    await brokenHere(store);
    expect(await inVain(store, () => store.reopen("t", 0, "h"))).toBeUndefined();
    const next = await claimOn(store, "r2", 1);
    expect(await inVain(store, () => store.reopen("t", 1, "h"))).toBeUndefined();
    await store.settle(next, settlement(next, 0));
    expect(await inVain(store, () => store.reopen("t", 1, "h"))).toBeUndefined();
    await claimed(store, "t", "r3", { base: await headOf(store), prevRunIndex: 2, device: DEVICE });
    await store.settleForeign("t", "r3", "stopped", 4_000, stopped);
    expect(await inVain(store, () => store.reopen("t", 3, "h"))).toBeUndefined();
  });

  test("nor one whose events were cut off, or of a deleted thread", async () => {
    const store = create();
    await brokenHere(store);
    await store.cut("t", (await headOf(store)).epoch, baseAt(1));
    expect(await inVain(store, () => store.reopen("t", 1, "h"))).toBeUndefined();
    await store.deleteThread("t");
    expect(await inVain(store, () => store.reopen("t", 1, "h"))).toBeUndefined();
  });

  test("nor one whose end is joined with what precedes it", async () => {
    const store = create();
    // One chunk holds all three events.
    const [one, two] = placed("r").chunks;
    const whole = { ...one!, count: 3, entries: [...one!.entries, ...two!.entries], times: [3, 0] };
    await store.placeRun(placed("r", { status: "broken", closedFrom: 2, chunks: [whole] }));
    expect(await inVain(store, () => store.reopen("t", 0, "h"))).toBeUndefined();
  });

  test("a whole run begins a thread", async () => {
    const store = create();
    const row = await store.placeRun(placed("r", { agentId: "reader", activates: false }));
    expect(row).toEqual({
      threadId: "t",
      runIndex: 0,
      runId: "r",
      prevRunIndex: null,
      agentId: "reader",
      status: "finished",
      epoch: row!.epoch,
      startedAt: 1_000,
      endedAt: 2_500,
      eventCount: 3,
      fingerprint: "r",
      device: DEVICE,
    });
    expect(await store.runById("t", "r", "r")).toEqual(row);
    const head = await headOf(store);
    expect(head).toEqual({ threadId: "t", epoch: row!.epoch, runCount: 1, activeRunIndex: 0 });
    expect(await eventsOf(store, 0)).toEqual(["0 a", "1 b", "2 RUN_FINISHED"]);
    expect((await store.chunks("t", 0, -1, 10))[0]).toMatchObject({ threadId: "t", runIndex: 0, epoch: row!.epoch });
    expect(await store.input("t", 0)).toEqual(placed("r").input);
    expect(await store.closing("t", 0)).toEqual(placed("r").closing);
    expect(await store.stateAfter("t", 0)).toEqual({ state: { after: "r" }, interrupts: [] });
    expect(await contents(store, "t", 0)).toEqual(["all of r"]);
    expect(await store.thread("t")).toEqual({
      threadId: "t",
      title: "hi",
      agentId: "reader",
      archived: false,
      pinned: false,
      createdAt: 1_000,
      updatedAt: 2_500,
      runCount: 1,
      lastStatus: "finished",
    });
    expect((await store.runsOfId("r", 5)).map(({ threadId }) => threadId)).toEqual(["t"]);
  });

  test("it begins a deleted thread anew; nothing of the old one comes back (L1)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1"]);
    await store.deleteThread("t");
    // It has an id that the deleted thread had.
    const row = (await store.placeRun(placed("r1", { activates: false })))!;
    expect(row).toMatchObject({ runIndex: 2, prevRunIndex: null });
    expect(await headOf(store)).toEqual({ threadId: "t", epoch: row.epoch, runCount: 3, activeRunIndex: 2, first: 2 });
    expect((await store.runs("t")).map(({ runIndex }) => runIndex)).toEqual([2]);
    expect(await contents(store, "t", 2)).toEqual(["all of r1"]);
    await runOn(store, "t", "r2", 2);
    expect(await contents(store, "t", 3)).toEqual(["all of r1", "from r2"]);
  });

  test("its thread is listed by `listedAt`, and no run moves it down", async () => {
    const store = create();
    const ahead = 9_000_000;
    await store.placeRun(placed("r0", { startedAt: ahead, endedAt: ahead, listedAt: 5_000 }));
    expect(await store.thread("t")).toMatchObject({ createdAt: 5_000, updatedAt: 5_000 });
    const base = await headOf(store);
    const more = { base, prevRunIndex: 0, device: DEVICE, startedAt: ahead, listedAt: 6_000 };
    const claim = await claimed(store, "t", "r1", more);
    expect(await store.thread("t")).toMatchObject({ updatedAt: 6_000 });
    await store.settle(claim, settlement(claim, 0, { endedAt: ahead, listedAt: 7_000 }));
    expect(await store.thread("t")).toMatchObject({ updatedAt: 7_000 });
    expect(await store.run("t", 1)).toMatchObject({ startedAt: ahead, endedAt: ahead });
    await runOn(store, "t", "r2", 1);
    expect(await store.thread("t")).toMatchObject({ updatedAt: 7_000 });
  });

  test("at the end of the path it is what the next run continues", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r0"]);
    const row = (await store.placeRun(
      placed("r1", { prevRunIndex: 0, endedAt: 9_000, status: "errored", closedFrom: 2 }),
    ))!;
    expect(row).not.toHaveProperty("leaves");
    expect(row).toMatchObject({ closedFrom: 2 });
    const head = await headOf(store);
    expect(head).toEqual({ threadId: "t", epoch: row.epoch, runCount: 2, activeRunIndex: 1 });
    expect(head.epoch).toBeGreaterThan(before.epoch);
    expect(await store.claim(request("t", "r2", { base: before, prevRunIndex: 0 }))).toEqual({ is: "moved" });
    await runOn(store, "t", "r2", 1);
    expect(await contents(store, "t", 2)).toEqual(["from r0", "all of r1", "from r2"]);
  });

  test("at the end of another branch it names the end that it leaves", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1"]);
    expect(await store.placeRun(placed("r2", { prevRunIndex: 0 }))).toMatchObject({ leaves: 1, prevRunIndex: 0 });
    expect(await headOf(store)).toMatchObject({ activeRunIndex: 2, branched: true });
  });

  test("beside the path it changes nothing that a reader or the next claim depends on (L20)", async () => {
    const store = create();
    const before = await withRuns(store, "t", ["r0", "r1"]);
    await store.placeRun(
      placed("r2", { prevRunIndex: 0, activates: false, endedAt: 2_000, agentId: "other", status: "stopped" }),
    );
    expect(await headOf(store)).toEqual({ ...before, runCount: 3, branched: true });
    expect(await store.thread("t")).toMatchObject({ updatedAt: 3_000, lastStatus: "finished", runCount: 3 });
    expect(await store.thread("t")).not.toHaveProperty("agentId");
    expect(await contents(store, "t", 1)).toEqual(["from r0", "from r1"]);
    expect(await contents(store, "t", 2, new Set([0, 2]))).toEqual(["from r0", "all of r2"]);
    expect((await store.claim(request("t", "r3", { base: before, prevRunIndex: 1 }))).is).toBe("claimed");
    expect(await headOf(store)).toMatchObject({ activeRunIndex: 3 });
  });

  test("beside the path it keeps the pending tool calls; at its end it drops them", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r0");
    const left = { made: [{ toolCallId: "c", name: "ask" }], unanswered: new Set<string>(), nextRunId: "next" };
    await store.settle(claim, settlement(claim, 0, { left: left as never }));
    const { pending } = await headOf(store);
    expect(pending).toBeDefined();
    await store.placeRun(placed("r1", { activates: false }));
    expect((await headOf(store)).pending).toEqual(pending);
    await store.activate("t", 1);
    expect((await headOf(store)).pending).toBeUndefined();
  });

  test("at the end of the path the pending tool calls of the end before go", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r0");
    const left = { made: [{ toolCallId: "c", name: "ask" }], unanswered: new Set<string>(), nextRunId: "next" };
    await store.settle(claim, settlement(claim, 0, { left: left as never }));
    await store.placeRun(placed("r1", { prevRunIndex: 0 }));
    expect((await headOf(store)).pending).toBeUndefined();
  });

  test("a live run goes on beside it; to become the end of the path it waits (L5)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    const live = await claimOn(store, "r1", 0);
    const before = await headOf(store);
    expect(await inVain(store, () => store.placeRun(placed("r2", { prevRunIndex: 0 })))).toBeUndefined();
    expect(await store.placeRun(placed("r2", { prevRunIndex: 0, activates: false }))).toMatchObject({ runIndex: 2 });
    expect(await headOf(store)).toEqual({ ...before, runCount: 3, branched: true });
    await store.append(live, chunkOf(live, 0, [delta("still")]));
    expect(await store.settle(live, settlement(live, 1))).toBe("settled");
    expect(await eventsOf(store, 1)).toEqual(["0 still", "1 RUN_FINISHED"]);
    expect(await headOf(store)).toMatchObject({ activeRunIndex: 1, runCount: 3 });
  });

  test("it waits for what it continues: a run that is not here, was cut off, or has not ended", async () => {
    const store = create();
    expect(await store.placeRun(placed("r2", { prevRunIndex: 0 }))).toBeUndefined();
    await withRuns(store, "t", ["r0", "r1"]);
    expect(
      await inVain(store, () => store.placeRun(placed("r9", { prevRunIndex: 2, activates: false }))),
    ).toBeUndefined();
    await store.cut("t", (await headOf(store)).epoch, baseAt(1));
    expect(
      await inVain(store, () => store.placeRun(placed("r9", { prevRunIndex: 0, activates: false }))),
    ).toBeUndefined();
    await claimOn(store, "r2", 1);
    expect(
      await inVain(store, () => store.placeRun(placed("r9", { prevRunIndex: 2, activates: false }))),
    ).toBeUndefined();
  });

  test("a title that somebody has emptied stays empty", async () => {
    const store = create();
    await store.placeRun(placed("r", { title: "first" }));
    await store.updateThread("t", { title: "" });
    await store.placeRun(placed("r1", { prevRunIndex: 0, title: "second" }));
    expect((await store.thread("t"))?.title).toBe("");
  });

  test("a title that a thread has stays", async () => {
    const store = create();
    await store.placeRun(placed("r", { title: "" }));
    expect((await store.thread("t"))?.title).toBe("");
    await store.placeRun(placed("r1", { prevRunIndex: 0, title: "first" }));
    await store.placeRun(placed("r2", { prevRunIndex: 1, title: "second" }));
    expect((await store.thread("t"))?.title).toBe("first");
  });

  test("chunks that are not all of the run's events are refused", async () => {
    const store = create();
    const { chunks } = placed("r");
    for (const some of [[], chunks.slice(1), [chunks[0]!, chunks[0]!]]) {
      await expect(store.placeRun(placed("r", { chunks: some }))).rejects.toMatchObject({ code: "invalid-input" });
    }
    expect(await store.head("t")).toBeUndefined();
  });

  test("a run that is there with its end stays as it is, whoever places it again (L7, L8)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    const row = await store.placeRun(placed("r1", { prevRunIndex: 0 }));
    const again = [
      placed("r1", { prevRunIndex: 0 }),
      placed("r1", { prevRunIndex: 0, status: "broken", closedFrom: 2 }),
    ];
    for (const run of again) expect(await inVain(store, () => store.placeRun(run))).toEqual(row);
    // A run of this device.
    expect(await inVain(store, () => store.placeRun(placed("r0", {}, ["x", "y", "z"])))).toMatchObject({ runIndex: 0 });
    // Another input under its id.
    const other = placed("r1", { prevRunIndex: 0, fingerprint: "other", status: "stopped" }, ["x", "y", "z"]);
    expect(await inVain(store, () => store.placeRun(other))).toMatchObject({ runIndex: 1, status: "finished" });
  });

  test("a broken run of this device stays as it is, whatever another one says of it", async () => {
    const store = create();
    await claimed(store, "t", "r");
    await store.settleForeign("t", "r", "broken", 4_000, foreignEnd);
    expect(await inVain(store, () => store.placeRun(placed("r")))).toMatchObject({ status: "broken" });
  });

  test("a broken one that is placed again as it is stays so", async () => {
    const store = create();
    const broken = placed("r", { status: "broken", closedFrom: 2 });
    const row = await store.placeRun(broken);
    expect(await inVain(store, () => store.placeRun(broken))).toEqual(row);
  });

  test("a run that answers another one has its id; the other one is found by its fingerprint, and each by its name", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    const answer = placed("r0", { prevRunIndex: 0, fingerprint: "answer", answerId: "a" });
    expect(await store.placeRun(answer)).toMatchObject({ runIndex: 1, fingerprint: "answer", answerId: "a" });
    expect(await store.runById("t", "r0")).toMatchObject({ runIndex: 1 });
    expect(await store.runById("t", "r0", "r0")).toMatchObject({ runIndex: 0 });
    expect(await inVain(store, () => store.placeRun(answer))).toMatchObject({ runIndex: 1 });
    expect(await store.runNamed("t", { runId: "r0" })).toMatchObject({ runIndex: 0 });
    expect(await store.runNamed("t", { runId: "r0", answerId: "a" })).toMatchObject({ runIndex: 1 });
    for (const name of [{ runId: "r0", answerId: "b" }, { runId: "r1" }, { runId: "r1", answerId: "a" }])
      expect(await store.runNamed("t", name)).toBeUndefined();
  });

  test("two equal answers are two runs; one beside the path does not take the id", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    const answer = (answerId: string, activates: boolean) =>
      store.placeRun(placed("r0", { prevRunIndex: 0, fingerprint: "answer", answerId, activates }));
    expect(await answer("a", true)).toMatchObject({ runIndex: 1 });
    expect(await answer("b", false)).toMatchObject({ runIndex: 2 });
    expect(await store.runById("t", "r0", "answer")).toMatchObject({ runIndex: 1 });
    expect(await store.runNamed("t", { runId: "r0", answerId: "b" })).toMatchObject({ runIndex: 2, runId: "r0" });
    expect(await answer("c", true)).toMatchObject({ runIndex: 3 });
    expect(await store.runById("t", "r0")).toMatchObject({ runIndex: 3 });
    for (const answerId of ["a", "b", "c"])
      expect(await store.runNamed("t", { runId: "r0", answerId })).toMatchObject({ answerId, runId: "r0" });
    expect(await store.runNamed("t", { runId: "r0" })).toMatchObject({ runIndex: 0 });
    const again = await claimOn(store, "r0", 3, { fingerprint: "later", answerId: "d" });
    expect(again).toMatchObject({ runIndex: 4, runId: "r0" });
    expect(await store.runNamed("t", { runId: "r0", answerId: "b" })).toMatchObject({ runIndex: 2 });
    // One that comes meanwhile does not wait for the live run of its id: that one's end may stand behind it.
    expect(await answer("e", false)).toMatchObject({ runIndex: 5 });
    expect(await store.runById("t", "r0")).toMatchObject({ runIndex: 4 });
    await store.append(again, chunkOf(again, 0, [delta("a")]));
    await store.settle(again, settlement(again, 1));
    expect(await store.deleteThread("t")).toBe(true);
    expect(await store.runNamed("t", { runId: "r0", answerId: "b" })).toBeUndefined();
  });

  test("a run that broke here gets all of its events and its end, in its place (L2)", async () => {
    const store = create();
    await brokenHere(store);
    const before = await headOf(store);
    const row = (await store.placeRun(placed("r1", { prevRunIndex: 0 }, ["a", "b", "c", "d"])))!;
    expect(row).toMatchObject({ runIndex: 1, prevRunIndex: 0, status: "finished", eventCount: 5, endedAt: 2_500 });
    expect(row).toMatchObject({ revised: { epoch: row.epoch, from: 2 }, device: DEVICE });
    expect(row).not.toHaveProperty("closedFrom");
    expect(row.epoch).toBeGreaterThan(before.epoch);
    expect(await store.runById("t", "r1", "r1")).toEqual(row);
    expect(await headOf(store)).toEqual({ ...before, epoch: row.epoch });
    expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b", "2 c", "3 d", "4 RUN_FINISHED"]);
    expect(await contents(store, "t", 1)).toEqual(["from r0", "all of r1"]);
    expect(await store.stateAfter("t", 1)).toMatchObject({ state: { after: "r1" } });
    expect(await store.closing("t", 1)).toEqual(placed("r1").closing);
    expect(await store.input("t", 1)).toEqual(placed("r1").input);
    expect(await store.thread("t")).toMatchObject({ runCount: 2, lastStatus: "finished", updatedAt: 4_000 });
  });

  test("the bytes of a thread count a run once, however often it is placed", async () => {
    const [once, twice] = [create(), create()];
    for (const store of [once, twice]) await withRuns(store, "t", ["r0"]);
    await twice.placeRun(placed("r1", { prevRunIndex: 0, status: "broken", closedFrom: 2, bytes: 70 }));
    for (const store of [once, twice]) await store.placeRun(placed("r1", { prevRunIndex: 0 }, ["a", "b", "c"]));
    expect(await bytesOf(twice)).toBe(await bytesOf(once));
  });

  test("the bytes of a thread count a run once that is reopened", async () => {
    const [once, twice] = [create(), create()];
    for (const store of [once, twice]) {
      let claim = await claimed(store, "t", "r", { device: DEVICE });
      await store.append(claim, chunkOf(claim, 0, [delta("a")]));
      if (store === twice) {
        const chunk = chunkOf(claim, 1, [{ type: EventType.RUN_ERROR }]);
        await store.settle(claim, settlement(claim, 1, { status: "broken", chunk, bytes: 70 }));
        claim = (await store.reopen("t", 0, "host-2"))!;
      }
      await store.settle(claim, settlement(claim, 1, { bytes: 100 }));
    }
    expect(await bytesOf(twice)).toBe(await bytesOf(once));
  });

  test("a run that is replaced after a cut leaves the thread in the list", async () => {
    const store = create();
    await withRuns(store, "t", ["r0"]);
    await store.placeRun(placed("r1", { prevRunIndex: 0, status: "broken", closedFrom: 2, bytes: 70 }));
    await store.cut("t", (await headOf(store)).epoch, baseAt(0));
    await store.placeRun(placed("r1", { prevRunIndex: 0, bytes: 10 }, ["a", "b", "c"]));
    expect(await store.thread("t")).toMatchObject({ runCount: 2 });
  });

  test("one that left more messages leaves only the new ones", async () => {
    const store = create();
    await brokenHere(store);
    await store.placeRun(placed("r1", { derived: { messages: [], rewritten: false, state: {}, interrupts: [] } }));
    expect(await contents(store, "t", 1)).toEqual(["from r0"]);
  });

  test("one that was not derived yet has its content from its device", async () => {
    const store = create();
    await claimed(store, "t", "r", { device: DEVICE });
    await store.settleForeign("t", "r", "broken", 4_000, foreignEnd);
    await store.placeRun(placed("r"));
    expect((await headOf(store)).underived).toBeUndefined();
    await store.derive("t", 0, placed("r").closing, leaving("late", "late", {}));
    expect(await contents(store, "t", 0)).toEqual(["all of r"]);
  });

  test("one that a host here stopped has the end that its device gave it, if that has more events", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r", { device: DEVICE });
    await store.append(claim, chunkOf(claim, 0, [delta("a")]));
    await store.settleForeign("t", "r", "stopped", 4_000, stopped);
    expect(await inVain(store, () => store.placeRun(placed("r", {}, ["a"])))).toMatchObject({ status: "stopped" });
    const row = (await store.placeRun(placed("r")))!;
    expect(row).toMatchObject({ status: "finished", eventCount: 3, revised: { epoch: row.epoch, from: 0 } });
  });

  test("if it precedes the active run, that one is revised too, and stays the end of the path (L2, L20)", async () => {
    const store = create();
    await brokenHere(store);
    await runOn(store, "t", "r2", 1);
    await runOn(store, "t", "r3", 2);
    const before = await headOf(store);
    const row = (await store.placeRun(placed("r1", { prevRunIndex: 0 })))!;
    expect(await headOf(store)).toEqual({ ...before, epoch: row.epoch });
    const last = (await store.run("t", 3))!;
    expect(last).toMatchObject({ epoch: row.epoch, revised: { epoch: row.epoch, from: 0 }, status: "finished" });
    expect(await store.run("t", 2)).not.toHaveProperty("revised");
    expect(await eventsOf(store, 3)).toEqual(["0 r3", "1 RUN_FINISHED"]);
    expect(await contents(store, "t", 3)).toEqual(["from r0", "all of r1", "from r2", "from r3"]);
    expect(await store.closing("t", 3)).toBeDefined();
  });

  test("if it is beside the path, readers of that are not told; it may become the end of it", async () => {
    const store = create();
    await brokenHere(store);
    await runOn(store, "t", "r2", 0);
    const before = await headOf(store);
    await store.placeRun(placed("r1", { activates: false }));
    expect(await headOf(store)).toEqual(before);
    expect(await store.run("t", 2)).not.toHaveProperty("revised");
    expect(await eventsOf(store, 1)).toEqual(["0 a", "1 b", "2 RUN_FINISHED"]);
  });

  test("one beside the path that activates becomes the end of it", async () => {
    const store = create();
    await brokenHere(store);
    await runOn(store, "t", "r2", 0);
    const row = (await store.placeRun(placed("r1")))!;
    expect(await headOf(store)).toMatchObject({ activeRunIndex: 1, epoch: row.epoch, branched: true });
  });

  test("while a run is live, what it began on stays as it is; what is beside it is replaced (L6)", async () => {
    const store = create();
    await brokenHere(store);
    const live = await claimOn(store, "r2", 1);
    expect(await inVain(store, () => store.placeRun(placed("r1", { activates: false })))).toBeUndefined();
    await store.settle(live, settlement(live, 0));
    const other = await claimOn(store, "r3", 0);
    const before = await headOf(store);
    const row = (await store.placeRun(placed("r1", { activates: false })))!;
    expect(row).toMatchObject({ status: "finished", runIndex: 1 });
    expect(await headOf(store)).toEqual(before);
    expect(await store.settle(other, settlement(other, 0))).toBe("settled");
  });

  test("a run that is live itself waits for its end", async () => {
    const store = create();
    await claimed(store, "t", "r", { device: DEVICE });
    for (const activates of [true, false]) {
      expect(await inVain(store, () => store.placeRun(placed("r", { activates })))).toBeUndefined();
    }
  });

  test("the base of a cut thread stays as it is", async () => {
    const store = create();
    await brokenHere(store);
    await store.cut("t", (await headOf(store)).epoch, baseAt(1));
    expect(await inVain(store, () => store.placeRun(placed("r1")))).toMatchObject({ status: "broken" });
    expect(await contents(store, "t", 1)).toEqual(["base"]);
  });

  test("a run that was cut off comes as a new one", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1"]);
    await store.cut("t", (await headOf(store)).epoch, baseAt(1));
    expect(await store.placeRun(placed("r0", { activates: false }))).toMatchObject({ runIndex: 2 });
    expect((await store.runs("t")).map(({ runId }) => runId)).toEqual(["r1", "r0"]);
  });

  test("a settled run becomes the end of the path, under a new epoch (L20)", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1"]);
    await runOn(store, "t", "r2", 0);
    const before = await headOf(store);
    expect(await store.activate("t", 1)).toBe(true);
    const head = await headOf(store);
    expect(head).toEqual({ ...before, activeRunIndex: 1, branched: true, epoch: head.epoch });
    expect(head.epoch).toBeGreaterThan(before.epoch);
    expect(await inVain(store, () => store.activate("t", 1))).toBe(true);
    await runOn(store, "t", "r3", 1);
    expect(await contents(store, "t", 3, new Set([0, 1, 3]))).toEqual(["from r0", "from r1", "from r3"]);
  });

  test("where a run in the middle becomes it, the path must be read from the runs", async () => {
    const store = create();
    await withRuns(store, "t", ["r0", "r1"]);
    expect(await store.activate("t", 0)).toBe(true);
    expect(await headOf(store)).toMatchObject({ activeRunIndex: 0, branched: true });
  });

  test("no run becomes it while one is live, nor one that is not there (L5)", async () => {
    const store = create();
    expect(await store.activate("t", 0)).toBe(false);
    await withRuns(store, "t", ["r0", "r1"]);
    for (const runIndex of [-1, 2]) expect(await inVain(store, () => store.activate("t", runIndex))).toBe(false);
    const live = await claimOn(store, "r2", 1);
    for (const runIndex of [1, 2]) expect(await inVain(store, () => store.activate("t", runIndex))).toBe(false);
    await store.settle(live, settlement(live, 0));
    await store.cut("t", (await headOf(store)).epoch, baseAt(2));
    expect(await inVain(store, () => store.activate("t", 1))).toBe(false);
    await store.deleteThread("t");
    expect(await inVain(store, () => store.activate("t", 2))).toBe(false);
  });

  test("a run that is given and handed out belongs to the caller (L1)", async () => {
    const store = create();
    const run = placed("r", { device: { ...DEVICE } });
    const row = (await store.placeRun(run))!;
    const kept = structuredClone(row);
    Reflect.set(run.device, "name", "spoilt");
    Reflect.set(row.device!, "name", "spoilt");
    Reflect.set((await store.run("t", 0))!.device!, "name", "spoilt");
    expect(await store.runById("t", "r", "r")).toEqual(kept);
  });
}
