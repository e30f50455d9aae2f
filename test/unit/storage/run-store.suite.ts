import { EventType } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { unpackChunk } from "../../../src/run/pack.js";
import type { RunStore, StopRequest, ThreadRow } from "../../../src/storage/run-store.js";
import { describeCut } from "./cut.suite.js";
import { describeDeletion } from "./deletion.suite.js";
import { describeDevices } from "./devices.suite.js";
import { describeRepack } from "./repack.suite.js";
import { describeThreadUpdates } from "./thread-update.suite.js";
import { describeRecoveries } from "./recovery.suite.js";
import { describeWaiting } from "./waiting.suite.js";
import { chunkOf, claimed, contents, delta, foreignEnd, leaving, request, runOn, settlement, withRuns } from "./kit.js";

/** The law of every RunStore. `create` gives one that nothing was written to. */
export function describeRunStore(name: string, create: () => RunStore): void {
  describe(name, () => {
    test("epochs grow over all threads, run indexes within one (L6)", async () => {
      const store = create();
      const one = await claimed(store, "t1", "r");
      const other = await claimed(store, "t2", "r");
      await store.settle(one, settlement(one, 0));
      const head = (await store.head("t1"))!;
      const next = await claimed(store, "t1", "r2", { base: head, prevRunIndex: 0 });
      expect([one.epoch < other.epoch, other.epoch < next.epoch]).toEqual([true, true]);
      expect([one.runIndex, other.runIndex, next.runIndex]).toEqual([0, 0, 1]);
    });

    test("a claim on a base that is not the head's is told that the thread went on (L5)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r1");
      expect(await store.claim(request("t", "r2"))).toEqual({ is: "moved" });
      const live = (await store.head("t"))!;
      expect(await store.claim(request("t", "r2", { base: live }))).toEqual({ is: "moved" });
      await store.settle(claim, settlement(claim, 0));
      expect((await store.claim(request("t", "r2", { base: live, prevRunIndex: 0 }))).is).toBe("claimed");
    });

    test("a claim on what the thread was before another host's run is told that it went on (L1)", async () => {
      const store = create();
      const first = await claimed(store, "t", "r1");
      await store.settle(first, settlement(first, 0));
      const before = (await store.head("t"))!;
      const other = await claimed(store, "t", "r2", { base: before, prevRunIndex: 0, holder: "host-2" });
      await store.settle(other, settlement(other, 0));
      expect(await store.claim(request("t", "r3", { base: before, prevRunIndex: 0 }))).toEqual({ is: "moved" });
      expect(await store.claim(request("t", "r3"))).toEqual({ is: "moved" });
      expect((await store.head("t"))!.runCount).toBe(2);
    });

    test("a claim repeated after an ambiguous end is the same claim; another's run id is found (L8)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      expect(await store.claim(request("t", "r"))).toEqual({ is: "claimed", claim, bytes: 0 });
      expect(await store.claim(request("t", "r", { holder: "host-2" }))).toMatchObject({
        is: "exists",
        run: { runIndex: 0 },
      });
    });

    test("an appended chunk comes back whole, and repeating it repeats nothing (L8)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      const chunks = [chunkOf(claim, 0, [delta("a"), delta("b")]), chunkOf(claim, 2, [delta("c")])];
      for (const chunk of [...chunks, chunks[1]!]) await store.append(claim, chunk);
      expect(await store.chunks("t", 0, -1, 100)).toEqual(chunks);
      expect((await store.chunks("t", 0, 0, 100)).flatMap(unpackChunk).map(({ seq }) => seq)).toEqual([0, 1, 2]);
      expect((await store.chunks("t", 0, 1, 100)).flatMap(unpackChunk).map(({ seq }) => seq)).toEqual([2]);
      expect(await store.chunks("t", 0, 2, 100)).toEqual([]);
    });

    test("a run of many records is read in pages, without gap or overlap (L2)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      for (let seq = 0; seq < 600; seq++) await store.append(claim, chunkOf(claim, seq, [delta(`${seq}`)]));
      let seen: number[] = [];
      for (;;) {
        const page = await store.chunks("t", 0, seen.length - 1, 150);
        if (page.length === 0) break;
        seen = [...seen, ...page.flatMap(unpackChunk).map(({ seq }) => seq)];
      }
      expect(seen).toEqual(Array.from({ length: 600 }, (_, seq) => seq));
    });

    test("who lost the claim writes nothing more (L6)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      await store.append(claim, chunkOf(claim, 0, [delta("a")]));
      await store.settleForeign("t", "r", "broken", 4_000, foreignEnd);
      const log = await store.chunks("t", 0, -1, 100);
      const late = { code: "fenced", details: { threadId: "t", runId: "r" } };
      await expect(store.append(claim, chunkOf(claim, 1, [delta("late")]))).rejects.toMatchObject(late);
      await expect(store.settle(claim, settlement(claim, 1))).rejects.toMatchObject(late);
      expect(await store.chunks("t", 0, -1, 100)).toEqual(log);
    });

    test("a foreign end closes what the last chunk left open, in one transaction, once (L9)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      const open = {
        textMessages: ["m"],
        reasoningSpans: [],
        reasoningMessages: [],
        toolCalls: [],
        unanswered: [],
        steps: [],
        subagents: [],
      };
      await store.append(claim, chunkOf(claim, 0, [delta("a")], open));
      const ends = await Promise.all([1, 2].map(() => store.settleForeign("t", "r", "broken", 4_000, foreignEnd)));
      expect(ends.filter((end) => end !== undefined)).toMatchObject([{ status: "broken", eventCount: 3 }]);
      const events = (await store.chunks("t", 0, 0, 100)).flatMap(unpackChunk).map(({ event }) => event.type);
      expect(events).toEqual([EventType.TEXT_MESSAGE_END, EventType.RUN_ERROR]);
      expect(await store.head("t")).toMatchObject({ activeRunIndex: 0, underived: [0] });
      expect((await store.head("t"))?.live).toBeUndefined();
      expect(await store.liveHeads()).toEqual([]);
    });

    test("a run without a named parent comes from the thread's last run, wherever it branches", async () => {
      const store = create();
      await withRuns(store, "t", ["r1", "r2"]);
      await claimed(store, "t", "r3", { base: (await store.head("t"))!, prevRunIndex: 0 });
      await claimed(store, "other", "r4", { parentRunId: "theirs" });
      expect([...(await store.runs("t")), ...(await store.runs("other"))].map((run) => run.parentRunId)).toEqual([
        undefined,
        "r1",
        "r2",
        "theirs",
      ]);
    });

    test("runs of one id are found in all threads, at most as many as asked for", async () => {
      const store = create();
      for (const threadId of ["t1", "t2", "t3"]) await withRuns(store, threadId, ["r", `${threadId}-r`]);
      const found = await store.runsOfId("r", 10);
      expect(found.map(({ threadId, runIndex }) => [threadId, runIndex]).sort()).toEqual([
        ["t1", 0],
        ["t2", 0],
        ["t3", 0],
      ]);
      expect(await store.runsOfId("r", 2)).toHaveLength(2);
      expect(await store.runsOfId("t2-r", 10)).toEqual([await store.run("t2", 1)]);
      expect(await store.runsOfId("none", 10)).toEqual([]);
    });

    test("a thread's runs come from the newest down, in pages, those of one status where asked for (L15)", async () => {
      const store = create();
      await withRuns(store, "t", ["r0", "r1"]);
      await claimed(store, "t", "r2", { base: (await store.head("t"))!, prevRunIndex: 1 });
      await store.settleForeign("t", "r2", "broken", 4_000, foreignEnd);
      await runOn(store, "t", "r3", 2);
      await withRuns(store, "u", ["other"]);
      const ids = async (query: Partial<Parameters<RunStore["runsBefore"]>[0]>): Promise<string[]> =>
        (await store.runsBefore({ threadId: "t", limit: 10, ...query })).map(({ runId }) => runId);
      expect(await ids({})).toEqual(["r3", "r2", "r1", "r0"]);
      expect(await ids({ limit: 2 })).toEqual(["r3", "r2"]);
      expect(await ids({ limit: 2, before: 2 })).toEqual(["r1", "r0"]);
      expect(await ids({ status: "finished" })).toEqual(["r3", "r1", "r0"]);
      expect(await ids({ status: "finished", before: 3, limit: 1 })).toEqual(["r1"]);
      expect(await ids({ status: "broken" })).toEqual(["r2"]);
      expect(await ids({ limit: 0 })).toEqual([]);
      expect(await ids({ threadId: "none" })).toEqual([]);
    });

    test("a thread of many runs is listed whole, whichever way (L2)", async () => {
      const store = create();
      const runIds = Array.from({ length: 300 }, (_, n) => `r${n}`);
      await withRuns(store, "t", runIds);
      expect((await store.runs("t")).map(({ runId }) => runId)).toEqual(runIds);
      const first = await store.runsBefore({ threadId: "t", limit: 270 });
      const second = await store.runsBefore({ threadId: "t", limit: 1_000, before: first.at(-1)!.runIndex });
      expect([...first, ...second].map(({ runId }) => runId)).toEqual(runIds.toReversed());
    });

    test("a stop request stands in the log once, and an append hears of it (L11)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      expect(await store.requestStop("t", "another", 5)).toBeUndefined();
      expect(await store.requestStop("t", undefined, 5)).toMatchObject({ runId: "r", holder: "host-1", first: true });
      expect(await store.requestStop("t", "r", 6)).toMatchObject({ first: false });
      expect(await store.append(claim, chunkOf(claim, 0, [delta("a")]))).toEqual({ stop: "stopped" });
      expect((await store.head("t"))?.stop).toEqual({ runId: "r", at: 5, as: "stopped" });
    });

    test("an append hears of nothing where nobody asked (L11)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      expect(await store.append(claim, chunkOf(claim, 0, [delta("a")]))).toEqual({});
    });

    test.each<[StopRequest["as"][], StopRequest["as"]]>([
      [["superseded"], "superseded"],
      [["stopped", "superseded"], "superseded"],
      [["superseded", "stopped"], "superseded"],
    ])("of the requests %j the run is asked to end as %s (L11)", async (requests, as) => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      const firsts: boolean[] = [];
      for (const asked of requests) firsts.push((await store.requestStop("t", "r", 5, asked))!.first);
      expect(firsts).toEqual(requests.map((_, n) => n === 0));
      expect(await store.append(claim, chunkOf(claim, 0, [delta("a")]))).toEqual({ stop: as });
      expect((await store.head("t"))?.stop?.as).toBe(as);
    });

    test.each(["stopped", "superseded", "broken"] as const)(
      "an end as %s stands, whatever somebody asked for (L11)",
      async (status) => {
        const store = create();
        const claim = await claimed(store, "t", "r");
        await store.requestStop("t", "r", 5, "superseded");
        expect(await store.settle(claim, settlement(claim, 0, { status, ownTerminal: false }))).toBe("settled");
        expect(await store.run("t", 0)).toMatchObject({ status });
      },
    );

    test.each(["finished", "errored"] as const)(
      "a request to be superseded decides an end as %s that the agent did not bring about (L11)",
      async (status) => {
        const store = create();
        const claim = await claimed(store, "t", "r");
        await store.requestStop("t", "r", 5, "superseded");
        const before = await store.head("t");
        const end = settlement(claim, 0, { status, ownTerminal: false });
        expect(await store.settle(claim, end)).toBe("stop-requested");
        expect(await store.head("t")).toEqual(before);
        expect(await store.settle(claim, { ...end, ownTerminal: true })).toBe("settled");
      },
    );

    test("a stop request decides the end, unless the agent ended the run itself (L11)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      await store.requestStop("t", "r", 5);
      expect(await store.settle(claim, settlement(claim, 0, { ownTerminal: false }))).toBe("stop-requested");
      expect((await store.head("t"))?.live).toBeDefined();
      expect(await store.settle(claim, settlement(claim, 0))).toBe("settled");
      expect(await store.run("t", 0)).toMatchObject({ status: "finished", endedAt: 3_000, eventCount: 1 });
    });

    test("settling leaves the thread free, with what the run left behind; repeating it repeats nothing (L7, L8)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      for (let times = 0; times < 2; times++) expect(await store.settle(claim, settlement(claim, 0))).toBe("settled");
      expect(await store.messageRows("t", 0, undefined)).toEqual([
        { runIndex: 0, resets: false, row: { message: { id: "a", role: "assistant", content: "yes" } } },
      ]);
      expect(await store.stateAfter("t", 0)).toEqual({ state: { n: 1 }, interrupts: [] });
      expect(await store.thread("t")).toMatchObject({ runCount: 1, lastStatus: "finished", updatedAt: 3_000 });
    });

    test("messages begin anew with a run that rewrote them, also with none at all (L2)", async () => {
      const store = create();
      await withRuns(store, "t", ["r0"]);
      for (const [runId, prevRunIndex, messages] of [
        ["r1", 0, leaving("x", "anew", {}).messages],
        ["r2", 1, []],
      ] as const) {
        const claim = await claimed(store, "t", runId, { base: (await store.head("t"))!, prevRunIndex });
        const derived = { ...leaving("", "", {}), messages, rewritten: true };
        await store.settle(claim, settlement(claim, 0, { derived }));
      }
      await runOn(store, "t", "r3", 0);
      expect(await store.messageRows("t", 1, undefined)).toEqual([
        { runIndex: 1, resets: true, row: { message: { id: "x", role: "assistant", content: "anew" } } },
      ]);
      expect(await store.messageRows("t", 2, undefined)).toEqual([{ runIndex: 2, resets: true, row: undefined }]);
      expect(await contents(store, "t", 3, new Set([0, 3]))).toEqual(["from r0", "from r3"]);
      expect(await contents(store, "t", 3, new Set([0, 1, 2]))).toEqual([]);
    });

    test("a message is told in each form that a run left it in, whatever came after; only of its thread", async () => {
      const store = create();
      await withRuns(store, "t", ["r0"]);
      await withRuns(store, "other", ["r0"]);
      const claim = await claimed(store, "t", "r1", { base: (await store.head("t"))!, prevRunIndex: null });
      const [row] = leaving("x", "again", {}).messages;
      const first = (await store.messageRows("t", 0, undefined))[0]!.row!.message;
      const again = { ...row!.message, id: first.id };
      const derived = { ...leaving("", "", {}), messages: [{ message: again }], rewritten: true };
      await store.settle(claim, settlement(claim, 0, { derived }));
      expect(await store.messageForms("t", [first.id, "nobody's", first.id])).toEqual(
        new Map([[first.id, [first, again]]]),
      );
      expect(await store.messageForms("t", [])).toEqual(new Map());
      expect(await store.messageForms("unknown", [first.id])).toEqual(new Map());
    });

    test("threads are listed by falling updatedAt, in pages", async () => {
      const store = create();
      for (let n = 0; n < 5; n++)
        await claimed(store, `t${n}`, "r", { startedAt: 100 + n, agentId: n % 2 === 0 ? "even" : "odd" });
      const ids = async (query: Partial<Parameters<RunStore["threads"]>[0]>): Promise<string[]> =>
        (await store.threads({ limit: 10, archived: false, ...query })).map(({ threadId }) => threadId);
      expect(await ids({})).toEqual(["t4", "t3", "t2", "t1", "t0"]);
      expect(await ids({ limit: 2, before: { updatedAt: 103, threadId: "" } })).toEqual(["t2", "t1"]);
      expect(await ids({ agentId: "odd" })).toEqual(["t3", "t1"]);
      expect(await ids({ archived: true })).toEqual([]);
    });

    test("threads of one time are listed by falling id, and pages of any length have each once", async () => {
      const store = create();
      const names = ["a", "b", "c", "d", "e", "f", "g"];
      for (const [n, threadId] of names.entries())
        await claimed(store, threadId, "r", {
          startedAt: n === 0 ? 99 : n === 6 ? 101 : 100,
          agentId: n % 2 === 0 ? "even" : "odd",
        });
      for (const agentId of [undefined, "even"]) {
        const expected = names.filter((_id, n) => agentId === undefined || n % 2 === 0).toReversed();
        for (let limit = 1; limit <= names.length; limit++) {
          const found: ThreadRow[] = [];
          for (;;) {
            const last = found.at(-1);
            const query = { limit, archived: false, ...(agentId && { agentId }), ...(last && { before: last }) };
            const page = await store.threads(query);
            found.push(...page);
            if (page.length < limit) break;
          }
          expect(found.map(({ threadId }) => threadId)).toEqual(expected);
        }
      }
      // A place whose thread is gone or has moved.
      const place = { updatedAt: 100, threadId: "cc" };
      expect(
        (await store.threads({ limit: 9, archived: false, before: place })).map(({ threadId }) => threadId),
      ).toEqual(["c", "b", "a"]);
    });

    test("what is handed in and out belongs to the caller: changing it changes nothing in the log (L1)", async () => {
      const store = create();
      const input = { messages: [{ id: "u", role: "user" as const, content: "hi" }] };
      const claim = await claimed(store, "t", "r", { input });
      const derived = leaving("a", "yes", { list: [1] });
      const end = settlement(claim, 0, { derived });
      await store.settle(claim, end);
      const head = (await store.head("t"))!;
      await claimed(store, "t", "broken", { base: head, prevRunIndex: 0 });
      const exists = await store.claim(request("t", "r"));
      const ended = await store.settleForeign("t", "broken", "broken", 4_000, foreignEnd);
      const reads = () =>
        Promise.all([
          store.runById("t", "broken"),
          store.runs("t"),
          store.runsBefore({ threadId: "t", limit: 1 }),
          store.runsOfId("r", 1),
          store.threads({ limit: 1, archived: false }),
          store.head("t"),
          store.run("t", 0),
          store.thread("t"),
          store.input("t", 0),
          store.closing("t", 0),
          store.stateAfter("t", 0),
          store.messageRows("t", 0, undefined),
        ]);
      const before = structuredClone(await reads());
      const spoil = (value: unknown): void => {
        if (typeof value !== "object" || value === null) return;
        for (const inner of Object.values(value)) spoil(inner);
        for (const key of Object.keys(value)) Reflect.set(value, key, "spoilt");
      };
      for (const value of [input, derived, end.closing, head, exists, ended, await reads()]) spoil(value);
      expect(await reads()).toEqual(before);
    });

    test("a closed store answers nothing (L13)", async () => {
      const store = create();
      await store.head("t");
      await store.close();
      await expect(store.head("t")).rejects.toMatchObject({ code: "closed" });
      await expect(store.claim(request("t", "r"))).rejects.toMatchObject({ code: "closed" });
    });

    describeThreadUpdates(create);
    describeWaiting(create);
    describeRecoveries(create);
    describeDeletion(create);
    describeCut(create);
    describeRepack(create);
    describeDevices(create);
  });
}
