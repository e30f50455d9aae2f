import fc from "fast-check";
import { expect, test } from "vitest";
import { unpackChunk } from "../../../src/run/pack.js";
import { chunkSize } from "../../../src/run/size.js";
import type { Chunk } from "../../../src/run/types.js";
import { catchUp, FRAME_EVENTS, FRAME_SIZE } from "../../../src/runner/read/catch-up.js";
import { times } from "../property.js";
import { chunkOf, delta } from "../storage/kit.js";

const CLAIM = { threadId: "t", runId: "r", runIndex: 0, epoch: 1, holder: "h" };

/** Chunks of so many events each, one after the other, each event with so much text. */
function chunksOf(counts: readonly number[], text = "x"): Chunk[] {
  let seq = 0;
  return counts.map((count) => {
    const chunk = chunkOf(
      CLAIM,
      seq,
      Array.from({ length: count }, (_, n) => delta(`${seq + n}${text}`)),
    );
    seq += count;
    return chunk;
  });
}

test("whatever is missing comes once, in order, in frames of a bounded size (L2, L14)", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 400, max: 1_500 })), { maxLength: 30 }),
      fc.constantFrom("", "x", "x".repeat(500)),
      fc.integer({ min: -1, max: 2_000 }),
      (counts, text, seq) => {
        const chunks = chunksOf(counts, text);
        const frames = catchUp(chunks, seq);
        const all = chunks.flatMap(unpackChunk);
        expect(frames.flatMap(unpackChunk)).toEqual(all.filter((placed) => placed.seq > seq));
        for (const frame of frames) {
          const isOne = chunks.some(
            ({ firstSeq, count }) => frame.firstSeq + frame.count === firstSeq + count && frame.count <= count,
          );
          if (!isOne) {
            expect(frame.count).toBeLessThanOrEqual(FRAME_EVENTS);
            expect(chunkSize(frame)).toBeLessThanOrEqual(FRAME_SIZE);
          }
        }
      },
    ),
    times(100),
  );
});

test("a reader that is many chunks behind gets few frames; who is one behind gets that chunk itself (L14)", () => {
  const chunks = chunksOf(Array.from({ length: 5_000 }, () => 1));
  expect(catchUp(chunks, -1)).toHaveLength(Math.ceil(5_000 / FRAME_EVENTS));
  expect(catchUp(chunks, 4_998)).toEqual([chunks.at(-1)]);
  expect(catchUp(chunks, 4_998)[0]).toBe(chunks.at(-1));
});
