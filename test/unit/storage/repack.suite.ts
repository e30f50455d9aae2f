import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test } from "vitest";
import { ChunkBuilder, lastSeq, unpackChunk, type PlacedEvent } from "../../../src/run/pack.js";
import { chunkSize } from "../../../src/run/size.js";
import type { Chunk, OpenConstructs } from "../../../src/run/types.js";
import { RECORD_EVENTS, RECORD_SIZE } from "../../../src/storage/repacking.js";
import type { Claim, RunStore } from "../../../src/storage/run-store.js";
import { baseAt, claimed, foreignEnd, runOn, settlement } from "./kit.js";

const OPEN: OpenConstructs = {
  textMessages: ["m"],
  reasoningSpans: [],
  reasoningMessages: [],
  toolCalls: [],
  unanswered: [],
  steps: [],
  subagents: [],
};

const eventOf = (seq: number): BaseEvent =>
  seq % 7 === 3
    ? { type: EventType.CUSTOM, name: "n", value: { seq } }
    : { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: `${seq} ` };

/** Appends chunks of so many events each, each event a few ms after the one before. @returns the next seq */
export async function appendAll(store: RunStore, claim: Claim, counts: readonly number[], from = 0): Promise<number> {
  const builder = new ChunkBuilder({ ...claim, firstSeq: from });
  for (const count of counts) {
    for (let n = 0; n < count; n++) builder.add(eventOf(builder.nextSeq), 1_000 + 3 * builder.nextSeq);
    await store.append(claim, builder.take(OPEN)!);
  }
  return builder.nextSeq;
}

/** A settled run of such chunks. @returns the number of its events */
export async function settledRun(
  store: RunStore,
  runId: string,
  counts: readonly number[],
  base = {},
): Promise<number> {
  const claim = await claimed(store, "t", runId, base);
  const next = await appendAll(store, claim, counts);
  await store.settle(claim, settlement(claim, next));
  return next + 1;
}

export const ones = (n: number): number[] => Array.from({ length: n }, () => 1);

/** All chunks of a run, in pages of about `limit` events. */
export async function allChunks(store: RunStore, runIndex: number, limit = Infinity, after = -1): Promise<Chunk[]> {
  const all: Chunk[] = [];
  for (let seq = after; ; seq = lastSeq(all.at(-1)!)) {
    const page = await store.chunks("t", runIndex, seq, limit);
    if (page.length === 0) return all;
    all.push(...page);
  }
}

export const eventsIn = (chunks: readonly Chunk[]): PlacedEvent[] => chunks.flatMap(unpackChunk);

/** The law of repacking a run, part of the law of every RunStore. */
export function describeRepack(create: () => RunStore): void {
  test("a repacked run has the same events and times, in few records of a bounded size (L1, L2)", async () => {
    const store = create();
    await settledRun(store, "r", [...ones(150), 5_000, ...ones(20), 3, 600, 800, 900, 1_000, 1_000, ...ones(70)]);
    const before = await allChunks(store, 0);
    await store.repack("t", 0);
    const after = await allChunks(store, 0);
    expect(eventsIn(after)).toEqual(eventsIn(before));
    expect(after.length).toBeLessThanOrEqual(5);
    for (const chunk of after) {
      if (before.some(({ firstSeq, count }) => firstSeq === chunk.firstSeq && count === chunk.count)) continue;
      expect(chunk.count).toBeLessThanOrEqual(RECORD_EVENTS);
      expect(chunkSize(chunk)).toBeLessThanOrEqual(RECORD_SIZE);
    }
    // What is open after a record is what was open after its last event.
    expect(after.at(-1)?.open).toBeUndefined();
    expect(after[0]?.open).toEqual(OPEN);
    expect(await store.run("t", 0)).toMatchObject({ status: "finished", eventCount: eventsIn(before).length });
    // Done again, it changes nothing.
    await store.repack("t", 0);
    expect(await allChunks(store, 0)).toEqual(after);
  });

  test("large events are not joined beyond the size of a record", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r");
    for (let seq = 0; seq < 10; seq++) {
      const builder = new ChunkBuilder({ ...claim, firstSeq: seq });
      builder.add({ type: EventType.CUSTOM, name: "big", value: "x".repeat(RECORD_SIZE / 3) }, 1);
      await store.append(claim, builder.take()!);
    }
    await store.settle(claim, settlement(claim, 10));
    await store.repack("t", 0);
    const counts = (await allChunks(store, 0)).map(({ count }) => count);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(11);
    expect(counts.slice(0, -1)).toEqual([2, 2, 2, 2]);
  });

  test("what another host ended keeps its own epoch (L6, L9)", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r");
    await appendAll(store, claim, ones(5));
    await store.settleForeign("t", "r", "broken", 4_000, foreignEnd);
    const before = await allChunks(store, 0);
    await store.repack("t", 0);
    const after = await allChunks(store, 0);
    expect(eventsIn(after)).toEqual(eventsIn(before));
    const { epoch } = (await store.run("t", 0))!;
    expect(after.map((chunk) => [chunk.count, chunk.epoch])).toEqual([
      [5, claim.epoch],
      [before.at(-1)!.count, epoch],
    ]);
  });

  test("a live run is left alone, and so is what is not there (L6)", async () => {
    const store = create();
    const claim = await claimed(store, "t", "r");
    await appendAll(store, claim, ones(5));
    await store.repack("t", 0);
    expect(await allChunks(store, 0)).toHaveLength(5);
    await appendAll(store, claim, ones(1), 5);
    await store.repack("t", 1);
    await store.repack("none", 0);
    expect(await store.head("none")).toBeUndefined();
  });

  test("nothing comes back of a run that was deleted or cut off (L1)", async () => {
    const store = create();
    await settledRun(store, "r0", ones(5));
    await runOn(store, "t", "r1", 0);
    await store.cut("t", (await store.head("t"))!.epoch, baseAt(0));
    await store.repack("t", 0);
    expect(await allChunks(store, 0)).toEqual([]);
    await store.deleteThread("t");
    await store.repack("t", 1);
    await store.sweep();
    expect(await allChunks(store, 1)).toEqual([]);
  });

  test("whoever reads meanwhile, from wherever, gets each event once (L2)", async () => {
    const store = create();
    const count = await settledRun(store, "r", ones(700));
    const truth = eventsIn(await allChunks(store, 0));
    const repacking = new AbortController();
    const repacked = store.repack("t", 0).then(() => repacking.abort());
    const readers = [1, 10, 100, 500, Infinity].map(async (limit) => {
      for (let after = -1; !repacking.signal.aborted; after = (after + 97) % count) {
        const events: PlacedEvent[] = [];
        for (const chunk of await allChunks(store, 0, limit, after))
          events.push(...unpackChunk(chunk).filter(({ seq }) => seq > (events.at(-1)?.seq ?? after)));
        expect(events).toEqual(truth.slice(after + 1));
      }
    });
    await Promise.all([repacked, ...readers]);
    expect(eventsIn(await allChunks(store, 0))).toEqual(truth);
  });
}
