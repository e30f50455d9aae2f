import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test } from "vitest";
import type { Frame } from "../../../src/wire/shapes.js";
import { threadEvents } from "../../../src/wire/thread-events.js";

const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
const finished: BaseEvent = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" };

const chunk = (firstSeq: number, event: BaseEvent): Frame => ({
  type: "chunk",
  chunk: { threadId: "t", runIndex: 2, epoch: 7, firstSeq, count: 1, entries: [{ event }], at: 1, times: [1, 0] },
});

const prelude = (runIndex: number, events: readonly BaseEvent[] = []): Frame => ({
  type: "prelude",
  events,
  cursor: { runIndex, seq: 3, epoch: 8 },
});

test("each part says how far its reader has got", () => {
  const eventsOf = threadEvents("t");
  expect(eventsOf(prelude(1, [started, finished]))).toEqual({
    events: [started, finished],
    cursor: { runIndex: 1, seq: 3, epoch: 8 },
  });
  expect(eventsOf({ type: "run", run: { runIndex: 2, runId: "r", epoch: 7 } })).toBeUndefined();
  expect(eventsOf(chunk(0, started))).toEqual({ events: [started], cursor: { runIndex: 2, seq: 0, epoch: 7 } });
  expect(eventsOf(chunk(1, finished))?.cursor.seq).toBe(1);
  expect(eventsOf({ type: "settled", runIndex: 2, runId: "r", status: "finished" })).toBeUndefined();
  expect(eventsOf(prelude(3, [started, finished]))?.cursor.runIndex).toBe(3);
});

test("a run that is cut off under its reader is an error, never an invalid sequence (L3)", () => {
  for (const [runIndex, code] of [
    [-1, "deleted"],
    [1, "fenced"],
  ] as const) {
    const eventsOf = threadEvents("t");
    eventsOf(chunk(0, started));
    expect(() => eventsOf(prelude(runIndex))).toThrow(expect.objectContaining({ code }));
  }
  const live = threadEvents("t");
  live(prelude(1, [started, finished, started]));
  expect(() => live(prelude(1))).toThrow(expect.objectContaining({ code: "fenced" }));
});
