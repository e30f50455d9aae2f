import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { expectLinear } from "../linear.js";
import { times } from "../property.js";
import { ChunkBuilder, joinChunks, sliceChunk, unpackChunk } from "../../../src/run/pack.js";
import type { Chunk } from "../../../src/run/types.js";
import { streams } from "./streams.js";

const RUN = { threadId: "t", runIndex: 3, epoch: 7 };

const delta = (text: string, extra: object = {}): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_CONTENT,
  messageId: "m",
  delta: text,
  ...extra,
});

function pack(events: readonly BaseEvent[], at: (n: number) => number = () => 5, firstSeq = 0): Chunk {
  const builder = new ChunkBuilder({ ...RUN, firstSeq });
  events.forEach((event, n) => builder.add(event, at(n)));
  return builder.take()!;
}

/** Deltas that nearly can be joined, and streams. */
const nearly = fc.array(
  fc.record(
    {
      type: fc.constantFrom(EventType.TEXT_MESSAGE_CONTENT, EventType.TOOL_CALL_ARGS, EventType.CUSTOM),
      messageId: fc.constantFrom("m", "n"),
      delta: fc.oneof(
        fc.string({ unit: "binary", maxLength: 3 }),
        fc.constantFrom("\ud83d", "\ude00", ""),
        fc.constant(1),
      ),
      subagentRunId: fc.constantFrom("s", undefined),
      timestamp: fc.constantFrom(1, 0, -0, Number.NaN),
      metadata: fc.constantFrom({}, { a: 1 }),
      rawEvent: fc.constantFrom(null, "x"),
    },
    { requiredKeys: ["type", "messageId", "delta"], noNullPrototype: true },
  ),
  { minLength: 1, maxLength: 40 },
) as fc.Arbitrary<BaseEvent[]>;
const dense = fc
  .array(
    fc.tuple(fc.constantFrom("ab", "c", "\ud83d", "\ude00", ""), fc.constantFrom({}, {}, {}, { subagentRunId: "s" })),
    {
      minLength: 1,
      maxLength: 30,
    },
  )
  .map((parts) => parts.map(([text, extra]) => delta(text, extra)));
const eventLists = fc.oneof(
  nearly,
  dense,
  streams().map(({ events }) => events),
);
const waits = fc.array(fc.integer({ min: -2, max: 3 }), { minLength: 1, maxLength: 10 });
const clock = (steps: readonly number[]): ((n: number) => number) => {
  const at: number[] = [1_700_000_000_000];
  return (n) => {
    while (at.length <= n) at.push(at[at.length - 1]! + steps[at.length % steps.length]!);
    return at[n]!;
  };
};

describe("pack", () => {
  test("unpacking gives back each event and its time (L2)", () => {
    fc.assert(
      fc.property(eventLists, waits, fc.nat(9), (events, steps, firstSeq) => {
        const at = clock(steps);
        const given = structuredClone(events);
        const chunk = pack(events, at, firstSeq);
        expect(events).toStrictEqual(given);
        expect(unpackChunk(structuredClone(chunk))).toStrictEqual(
          given.map((event, n) => ({ event, seq: firstSeq + n, at: at(n) })),
        );
      }),
      times(400),
    );
  });

  test("what is left of a sliced chunk is what unpacking gives from there on (L2)", () => {
    fc.assert(
      fc.property(eventLists, waits, fc.nat(60), (events, steps, from) => {
        const chunk = pack(events, clock(steps), 10);
        const left = sliceChunk(chunk, from);
        expect(left === undefined ? [] : unpackChunk(left)).toStrictEqual(
          unpackChunk(chunk).filter(({ seq }) => seq >= from),
        );
        if (left !== undefined && from >= 10)
          expect(left).toMatchObject({ firstSeq: from, count: events.length + 10 - from });
      }),
      times(300),
    );
  });

  test("joined chunks are the chunk of all their events (L2)", () => {
    fc.assert(
      fc.property(eventLists, waits, fc.nat(40), (events, steps, cut) => {
        const whole = pack(events, clock(steps));
        const builder = new ChunkBuilder(RUN);
        const chunks: (Chunk | undefined)[] = [];
        events.forEach((event, n) => {
          if (n === cut) chunks.push(builder.take());
          builder.add(event, clock(steps)(n));
        });
        chunks.push(builder.take());
        expect(joinChunks(chunks.filter((chunk) => chunk !== undefined))).toStrictEqual(whole);
      }),
      times(300),
    );
  });

  test("adjacent deltas become one entry, a surrogate pair cut in two included", () => {
    const chunk = pack([
      delta("a\ud83d"),
      delta("\ude00"),
      delta("b", { subagentRunId: "s" }),
      delta("c", { subagentRunId: "s" }),
    ]);
    expect(chunk.entries).toEqual([
      { event: delta("a😀"), cuts: [2, 1] },
      { event: delta("bc", { subagentRunId: "s" }), cuts: [1, 1] },
    ]);
    expect(chunk.times).toEqual([4, 0]);
  });

  test("deltas with metadata stay single", () => {
    const metadata = { usage: 1 };
    expect(pack([delta("a", { metadata }), delta("b", { metadata })]).entries).toHaveLength(2);
  });

  test("a builder goes on behind what was taken", () => {
    const builder = new ChunkBuilder({ ...RUN, firstSeq: 4 });
    expect(builder.take()).toBeUndefined();
    builder.add(delta("a"), 1);
    builder.add(delta("b"), 1);
    expect([builder.count, builder.nextSeq]).toEqual([2, 6]);
    expect(builder.take()).toMatchObject({ ...RUN, firstSeq: 4, count: 2 });
    builder.add(delta("c"), 2);
    expect(builder.take()).toMatchObject({ firstSeq: 6, count: 1, at: 2, times: [1, 0] });
  });

  test("100,000 deltas are packed in linear time (L17)", () => {
    expectLinear(12_500, (count) => {
      const events = Array.from({ length: count }, (_, n) => delta(`w${n % 10} `));
      return () => expect(pack(events).entries).toHaveLength(1);
    });
  });
});
