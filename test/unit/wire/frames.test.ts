import { EventType } from "@ag-ui/client";
import { lastValueFrom, toArray, type Subscription } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { receiveFrames } from "../../../src/wire/frames.js";
import { sendFrames } from "../../../src/wire/send-frames.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { WINDOW_FRAMES, WINDOW_SIZE } from "../../../src/wire/window.js";

/** A frame with so much text. */
const frameOf = (seq: number, length = 1): Frame => ({
  type: "chunk",
  chunk: {
    threadId: "t",
    runIndex: 0,
    epoch: 1,
    firstSeq: seq,
    count: 1,
    entries: [{ event: { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "x".repeat(length) } }],
    at: 1,
    times: [1, 0],
  },
});

/** A host that sends frames, as many as there are, to a tab. */
function sending(frame: (n: number) => Frame, count = Infinity) {
  const { port1, port2 } = new MessageChannel();
  const ended = new AbortController();
  let made = 0;
  let closed = false;
  async function* frames(): AsyncGenerator<Frame, void> {
    try {
      while (made < count) yield frame(made++);
      yield { type: "end" };
    } finally {
      closed = true;
    }
  }
  const sent = sendFrames(port1, () => frames(), ended.signal);
  onTestFinished(() => {
    ended.abort();
    port2.close();
  });
  return { tab: port2, sent, made: () => made, closed: () => closed, end: () => ended.abort() };
}

/** Everything that is under way arrives. */
async function settled(made: () => number): Promise<void> {
  for (let before = -1; before !== made();) {
    before = made();
    for (let task = 0; task < 20; task++) await nextTask();
  }
}

test("a tab that takes nothing costs a window of frames, and no frame is made beyond it (L14)", async () => {
  const host = sending((n) => frameOf(n));
  await settled(host.made);
  expect(host.made()).toBe(WINDOW_FRAMES);
});

test("a tab that takes nothing costs a window of text (L14)", async () => {
  const host = sending((n) => frameOf(n, WINDOW_SIZE / 4));
  await settled(host.made);
  expect(host.made()).toBe(4);
});

test("a frame of more than the window is sent alone (L13, L14)", async () => {
  const host = sending((n) => frameOf(n, 3 * WINDOW_SIZE), 5);
  await settled(host.made);
  expect(host.made()).toBe(1);
  const all = await lastValueFrom(receiveFrames(host.tab, new AbortController().signal).pipe(toArray()));
  expect(all).toHaveLength(5);
});

test.each([
  ["small", 1],
  ["of a third of the window", Math.floor(WINDOW_SIZE / 3)],
  ["of about half of it", WINDOW_SIZE / 2 - 200],
  ["of nearly all of it", WINDOW_SIZE - 200],
])("frames that are %s all arrive, in order (L2, L13)", async (_name, length) => {
  const host = sending((n) => frameOf(n, length), 100);
  const all = await lastValueFrom(receiveFrames(host.tab, new AbortController().signal).pipe(toArray()));
  expect(all.map((frame) => (frame.type === "chunk" ? frame.chunk.firstSeq : frame.type))).toEqual(
    Array.from({ length: 100 }, (_, n) => n),
  );
  await host.sent;
  expect(host.closed()).toBe(true);
});

test("frames of a type that the tab does not know use up no credit (L13)", async () => {
  const unknown = { type: "of a later build" } as unknown as Frame;
  const host = sending((n) => (n < 2 * WINDOW_FRAMES ? unknown : frameOf(n)), 2 * WINDOW_FRAMES + 1);
  const last = await lastValueFrom(receiveFrames(host.tab, new AbortController().signal));
  expect(last).toMatchObject({ type: "chunk", chunk: { firstSeq: 2 * WINDOW_FRAMES } });
});

test("a tab that comes back from its freeze gets on from there (L2)", async () => {
  const host = sending((n) => frameOf(n), 200);
  await settled(host.made);
  expect(host.made()).toBe(WINDOW_FRAMES);
  const all = await lastValueFrom(receiveFrames(host.tab, new AbortController().signal).pipe(toArray()));
  expect(all).toHaveLength(200);
});

test.each([-1, 0, 0.5, Number.NaN, "many", null, undefined, {}, [1]])(
  "a tab that says it has consumed %s gets nothing more for it (L14)",
  async (frames) => {
    const host = sending((n) => frameOf(n));
    await settled(host.made);
    for (let n = 0; n < 1_000; n++) host.tab.postMessage({ type: "credit", frames });
    for (const wrong of [null, 1, "credit", [], { type: "credit" }, { type: "other" }]) host.tab.postMessage(wrong);
    await settled(host.made);
    expect(host.made()).toBe(WINDOW_FRAMES);
  },
);

test.each([1e9, Infinity, Number.MAX_SAFE_INTEGER])(
  "a tab that says it has consumed %s frames gets a window for it, not more (L14)",
  async (frames) => {
    const host = sending((n) => frameOf(n));
    await settled(host.made);
    host.tab.postMessage({ type: "credit", frames });
    await settled(host.made);
    expect(host.made()).toBe(2 * WINDOW_FRAMES);
  },
);

test("a tab may leave at any time; what was read for it is let go of (L11, L14)", async () => {
  for (const consumed of [0, 1, 5]) {
    const host = sending((n) => frameOf(n));
    let reading: Subscription | undefined;
    let seen = 0;
    if (consumed === 0) {
      await settled(host.made);
      host.tab.postMessage({ type: "detach" });
    } else {
      reading = receiveFrames(host.tab, new AbortController().signal).subscribe(() => {
        if (++seen === consumed) reading?.unsubscribe();
      });
    }
    await host.sent;
    await vi.waitFor(() => expect(host.closed()).toBe(true));
    expect(host.made()).toBeLessThanOrEqual(WINDOW_FRAMES + consumed);
  }
});
