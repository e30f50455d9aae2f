import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { closingEvents } from "../../../src/run/finalize.js";
import { ChunkBuilder, unpackChunk } from "../../../src/run/pack.js";
import type { Chunk } from "../../../src/run/types.js";
import type { Claim, ClaimRequest, RunStore, Settlement } from "../../../src/storage/run-store.js";

const delta = (text: string): BaseEvent => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: text });

const request = (threadId: string, runId: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  threadId,
  runId,
  holder: "host-1",
  startedAt: 1_000,
  base: undefined,
  prevRunIndex: null,
  input: { messages: [{ id: "u", role: "user", content: "hi" }] },
  fingerprint: runId,
  title: "hi",
  ...more,
});

async function claimed(store: RunStore, ...args: Parameters<typeof request>): Promise<Claim> {
  const result = await store.claim(request(...args));
  if (result.is !== "claimed") throw new Error(`not claimed: ${result.is}`);
  return result.claim;
}

function chunkOf(claim: Claim, firstSeq: number, events: readonly BaseEvent[], open?: Chunk["open"]): Chunk {
  const builder = new ChunkBuilder({ ...claim, firstSeq });
  for (const event of events) builder.add(event, 2_000);
  return builder.take(open)!;
}

const settlement = (claim: Claim, firstSeq: number, more: Partial<Settlement> = {}): Settlement => {
  const terminal: BaseEvent = { type: EventType.RUN_FINISHED, threadId: claim.threadId, runId: claim.runId };
  return {
    status: "finished",
    endedAt: 3_000,
    chunk: chunkOf(claim, firstSeq, [terminal]),
    ownTerminal: true,
    closing: { runStarted: { type: EventType.RUN_STARTED }, customs: [], terminal },
    derived: {
      messages: [{ message: { id: "a", role: "assistant", content: "yes" } }],
      rewritten: false,
      state: { n: 1 },
      interrupts: [],
    },
    ...more,
  };
};

const foreignEnd: Parameters<RunStore["settleForeign"]>[4] = (run, nextSeq, open) => {
  const builder = new ChunkBuilder({ ...run, firstSeq: nextSeq });
  for (const event of closingEvents(open, { ...run, status: "broken", ids: () => "made-up" }))
    builder.add(event, 4_000);
  return builder.take()!;
};

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

    test("a claim repeated after an ambiguous end is the same claim; another's run id is found (L8)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      expect(await store.claim(request("t", "r"))).toEqual({ is: "claimed", claim });
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

    test("a stop request stands in the log once, and an append hears of it (L11)", async () => {
      const store = create();
      const claim = await claimed(store, "t", "r");
      expect(await store.requestStop("t", "another", 5)).toBeUndefined();
      expect(await store.requestStop("t", undefined, 5)).toMatchObject({ runId: "r", holder: "host-1", first: true });
      expect(await store.requestStop("t", "r", 6)).toMatchObject({ first: false });
      expect(await store.append(claim, chunkOf(claim, 0, [delta("a")]))).toEqual({ stopRequested: true });
    });

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

    test("threads are listed by falling updatedAt, in pages", async () => {
      const store = create();
      for (let n = 0; n < 5; n++)
        await claimed(store, `t${n}`, "r", { startedAt: 100 + n, agentId: n % 2 === 0 ? "even" : "odd" });
      const ids = async (query: Partial<Parameters<RunStore["threads"]>[0]>): Promise<string[]> =>
        (await store.threads({ limit: 10, archived: false, ...query })).map(({ threadId }) => threadId);
      expect(await ids({})).toEqual(["t4", "t3", "t2", "t1", "t0"]);
      expect(await ids({ limit: 2, before: 103 })).toEqual(["t2", "t1"]);
      expect(await ids({ agentId: "odd" })).toEqual(["t3", "t1"]);
      expect(await ids({ archived: true })).toEqual([]);
    });
  });
}
