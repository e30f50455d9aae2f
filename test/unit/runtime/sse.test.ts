import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { EventEncoder } from "@ag-ui/encoder";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import type { Cursor } from "../../../src/run/types.js";
import { formatCursor, parseCursor, sseResponse, type SseEvent } from "../../../src/runtime/http/sse.js";
import { DrivenClock } from "../lock/driven-clock.js";
import { times } from "../property.js";
import { streams } from "../run/streams.js";
import { CLIENTS, readBy } from "../wire/http-clients.js";
import { CASES } from "../wire/version-cases.js";
import { chunksOf, cutAt, parseEvents, Source } from "./sse-kit.js";

const SILENT = { keepAliveMs: 0 };
const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
const finished: BaseEvent = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" };
const custom = (value: unknown): BaseEvent => ({ type: EventType.CUSTOM, name: "n", value });
const plain = (events: readonly BaseEvent[]): SseEvent[] => events.map((event) => ({ event }));
const numbered = (events: readonly BaseEvent[]): SseEvent[] =>
  events.map((event, seq) => ({ event, cursor: { runIndex: 3, seq, epoch: 7 } }));

const text = async (chunks: readonly Uint8Array[]): Promise<string> =>
  new Response(new Blob([...chunks] as BlobPart[])).text();

describe("the body", () => {
  test("is what the AG-UI encoder makes of the events", async () => {
    const events = CASES.flatMap((one) => one.events) as BaseEvent[];
    const withNulls = [{ ...custom(null), timestamp: null, rawEvent: null }] as unknown as BaseEvent[];
    const encoder = new EventEncoder();
    for (const event of [...events, ...withNulls]) {
      const response = sseResponse(new Source().give({ event }).end(), SILENT);
      expect(await response.text()).toBe(encoder.encodeSSE(event));
    }
  });

  test("has the cursor of each event that has one", async () => {
    const [first, second] = numbered([started, custom(1)]);
    const body = sseResponse(
      new Source()
        .give(first!, { event: custom("n") })
        .give(second!)
        .end(),
      SILENT,
    );
    expect(await body.text()).toBe(
      `id: 3.0.7\ndata: ${JSON.stringify(started)}\n\n` +
        `data: ${JSON.stringify(custom("n"))}\n\n` +
        `id: 3.1.7\ndata: ${JSON.stringify(custom(1))}\n\n`,
    );
  });

  test("comes to the same however it is cut, for a parser and for both clients (L2)", async () => {
    const cuts = fc.array(fc.nat(100_000), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(streams(15), fc.array(fc.nat(15), { maxLength: 5 }), cuts, async ({ events }, ends, at) => {
        const all = [...events, { type: EventType.RUN_ERROR, message: "no" }];
        const places = [...ends.sort((a, b) => a - b), all.length];
        const answer = (): Response => {
          const source = new Source();
          let from = 0;
          for (const to of places) {
            source.give(...numbered(all).slice(from, to));
            from = Math.max(from, to);
          }
          return sseResponse(source.end(), SILENT);
        };
        const cut = await (await cutAt(answer(), at)).text();
        expect(parseEvents(cut).events).toEqual(
          // As JSON has it.
          all.map((data, seq) => ({ data: JSON.parse(JSON.stringify(data)) as unknown, id: `3.${seq}.7` })),
        );
        const whole = await readBy("1.0.0", answer());
        expect(whole.failed).toBeUndefined();
        expect(whole.types).toEqual(all.map(({ type }) => type));
        expect(await readBy("1.0.0", await cutAt(answer(), at))).toEqual(whole);
      }),
      times(60),
    );
  });

  test.each(CLIENTS)("is read by a client of %s, cursors and comment lines with it", async (version) => {
    const clock = new DrivenClock();
    const source = new Source().give(...numbered([started, custom(1)]));
    const reading = readBy(version, sseResponse(source, { keepAliveMs: 10, clock }));
    await vi.waitFor(() => expect(source.asked).toBe(2));
    clock.pass(10);
    await vi.waitFor(() => expect(clock.waiting).toBe(1));
    source.give({ event: finished }).end();
    expect(await reading).toMatchObject({ types: [started.type, "CUSTOM", finished.type], outcomes: ["success"] });
  });

  test("has one chunk for a batch that is small", async () => {
    const source = new Source()
      .give(...plain([started, custom(1)]))
      .give()
      .give({ event: finished })
      .end();
    const chunks = await chunksOf(sseResponse(source, SILENT));
    expect(await Promise.all(chunks.map(async (chunk) => parseEvents(await text([chunk])).events.length))).toEqual([
      2, 1,
    ]);
  });

  test("has chunks of bounded size, and larger ones only where an event is", async () => {
    const sizes = [
      10,
      30_000,
      30_000,
      30_000,
      200_000,
      10,
      65_000,
      65_000,
      ...Array.from({ length: 2_000 }, () => 100),
    ];
    const events = sizes.map((size, n) => custom(`${n}${"é".repeat(size / 2)}`));
    const source = new Source().give(...plain(events)).end();
    const chunks = await chunksOf(sseResponse(source, SILENT));
    expect(parseEvents(await text(chunks)).events.map(({ data }) => data)).toEqual(events);
    for (const chunk of chunks) {
      const inside = parseEvents(await text([chunk])).events.length;
      if (inside > 1) expect(chunk.byteLength).toBeLessThanOrEqual(64 * 1024);
    }
    expect(chunks.length).toBeLessThan(15);
  });

  test("has a chunk of its own for an event that is larger than any", async () => {
    const events = [custom("x".repeat(100_000)), custom(1)];
    const chunks = await chunksOf(sseResponse(new Source().give(...plain(events)).end(), SILENT));
    expect(chunks).toHaveLength(2);
  });

  test("has the events as they are mapped", async () => {
    const map = (event: BaseEvent): BaseEvent => ({ ...event, name: "mapped" });
    const body = sseResponse(new Source().give({ event: custom(1) }).end(), { ...SILENT, map });
    expect(parseEvents(await body.text()).events).toEqual([{ data: { ...custom(1), name: "mapped" } }]);
  });
});

describe("the answer", () => {
  test("is not kept back on its way", () => {
    const { status, headers } = sseResponse(new Source(), {
      ...SILENT,
      headers: { "X-Own": "1", "cache-control": "x" },
    });
    expect(status).toBe(200);
    expect(Object.fromEntries(headers)).toEqual({
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "x-own": "1",
    });
  });
});

describe("a reader", () => {
  test("that reads nothing costs nothing, and one that stops reading one batch (L14)", async () => {
    const source = new Source();
    for (let n = 0; n < 50; n++) source.give({ event: custom(n) });
    const reader = sseResponse(source, SILENT).body!.getReader();
    await nextTask();
    expect(source.asked).toBe(0);
    for (let n = 1; n <= 20; n++) {
      await reader.read();
      await nextTask();
      expect(source.asked).toBeLessThanOrEqual(n + 2);
    }
  });

  test("has a large batch before the source is asked again (L14)", async () => {
    const source = new Source().give(...plain(Array.from({ length: 10 }, () => custom("x".repeat(40_000)))));
    const reader = sseResponse(source, SILENT).body!.getReader();
    for (let n = 0; n < 10; n++) await reader.read();
    expect(source.asked).toBe(1);
  });

  test("that takes nothing for too long is ended and lets go of the source; one that waits is not (L14)", async () => {
    const clock = new DrivenClock();
    const source = new Source().give(...plain([started]));
    const reader = sseResponse(source, { keepAliveMs: 0, readerTimeoutMs: 10, clock }).body!.getReader();
    await reader.read();
    const waiting = reader.read();
    await vi.waitFor(() => expect(source.asked).toBe(2));
    clock.pass(10);
    await vi.waitFor(() => expect(clock.waiting).toBe(1));
    source.give({ event: custom(1) });
    expect((await waiting).done).toBe(false);
    clock.pass(20);
    await vi.waitFor(() => expect(source.returned).toBe(1));
    await expect(reader.read()).rejects.toMatchObject({ code: "timeout" });
    expect(clock.waiting).toBe(0);
  });

  test("that has read all leaves no timer behind", async () => {
    const clock = new DrivenClock();
    const source = new Source().give(...plain([started, finished])).end();
    await sseResponse(source, { keepAliveMs: 0, readerTimeoutMs: 10, clock }).text();
    expect(clock.waiting).toBe(0);
  });

  test("has a large event in pieces, as it is in one (L14)", async () => {
    const events = [
      started,
      custom("é".repeat(1_000_000)),
      custom(Array.from({ length: 50_000 }, (_, n) => ({ n }))),
      finished,
    ];
    const chunks = await chunksOf(sseResponse(new Source().give(...numbered(events)).end(), SILENT));
    expect(parseEvents(await text(chunks)).events.map(({ data }) => data)).toEqual(events);
    for (const chunk of chunks) expect(chunk.byteLength).toBeLessThan(256 * 1024);
  });

  test("is cut off where a large event cannot be made: nothing is put into its middle", async () => {
    const unsaid = {
      toJSON: () => {
        throw new Error("no JSON");
      },
    };
    const broken = custom([..."x".repeat(20)].map(() => "y".repeat(50_000)).concat(unsaid as never));
    const source = new Source().give(...plain([started, broken]));
    const reader = sseResponse(source, SILENT).body!.getReader();
    let seen = "";
    await expect(
      (async () => {
        for (let next = await reader.read(); !next.done; next = await reader.read()) {
          seen += new TextDecoder().decode(next.value);
        }
      })(),
    ).rejects.toThrow("The runtime failed");
    expect(seen).not.toContain("RUN_ERROR");
  });

  test("that cancels ends the source at once, though that does not answer", async () => {
    const source = new Source();
    const reader = sseResponse(source, SILENT).body!.getReader();
    const read = reader.read();
    await vi.waitFor(() => expect(source.asked).toBe(1));
    const cancelled = reader.cancel("enough");
    expect(source.returned).toBe(1);
    await cancelled;
    expect(await read).toEqual({ done: true, value: undefined });
    // What comes too late goes nowhere, and fails for nobody.
    source.fail(new Error("late"));
    await nextTask();
    expect(source).toMatchObject({ asked: 1, returned: 1 });
  });

  test("that cancels as soon as it reads lets go of the source", async () => {
    const source = new Source();
    const reader = sseResponse(source, SILENT).body!.getReader();
    // A stream asks for nothing before it has started.
    await nextTask();
    void reader.read();
    await reader.cancel();
    await nextTask();
    expect(source).toMatchObject({ returned: 1 });
  });

  test("that cancels before it reads ends the source", async () => {
    const source = new Source();
    await sseResponse(source, SILENT).body!.cancel();
    expect(source).toMatchObject({ asked: 0, returned: 1 });
  });

  test("that is aborted ends the source", async () => {
    const source = new Source().give({ event: started });
    const aborted = new AbortController();
    const written = sseResponse(source, SILENT).body!.pipeTo(new WritableStream(), { signal: aborted.signal });
    const over = expect(written).rejects.toThrow("aborted");
    await vi.waitFor(() => expect(source.asked).toBe(2));
    aborted.abort();
    await over;
    expect(source.returned).toBe(1);
  });

  test.each<[string, (() => Promise<never>) | undefined]>([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no"))],
    ["never settles", () => new Promise(() => {})],
    ["is not there", undefined],
  ])("cancels also where the source's return() %s", async (_, end) => {
    const source: AsyncIterable<readonly SseEvent[]> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), ...(end && { return: end }) }),
    };
    const reader = sseResponse(source, SILENT).body!.getReader();
    void reader.read();
    expect(await reader.cancel()).toBeUndefined();
    await nextTask();
  });

  test("that cancels while a comment line is due gets none, and no timer stays", async () => {
    const clock = new DrivenClock();
    const reader = sseResponse(new Source(), { keepAliveMs: 10, clock }).body!.getReader();
    const read = reader.read();
    await vi.waitFor(() => expect(clock.waiting).toBe(1));
    await reader.cancel();
    expect(clock.waiting).toBe(0);
    expect((await read).done).toBe(true);
  });
});

describe("a cursor", () => {
  const safe = fc.maxSafeNat();

  test("comes back from its id", () => {
    fc.assert(
      fc.property(safe, fc.oneof(fc.constant(-1), safe), safe, (runIndex, seq, epoch) => {
        const cursor: Cursor = { runIndex, seq, epoch };
        const id = formatCursor(cursor);
        expect(id).toMatch(/^[\d.-]{5,53}$/);
        expect(parseCursor(id)).toEqual(cursor);
      }),
      times(300),
    );
  });

  test.each([
    undefined,
    null,
    0,
    {},
    [],
    ["1.1.1"],
    "",
    "1",
    "1.1",
    "1.1.1.1",
    "1.1.1 ",
    " 1.1.1",
    "1.1.1\n",
    "-1.0.0",
    "0.-2.0",
    "0.0.-1",
    "0.-0.0",
    "01.0.0",
    "1.+1.0",
    "1e3.0.0",
    "0x1.0.0",
    "1.NaN.0",
    "Infinity.0.0",
    "9007199254740992.0.0",
    "9999999999999999.0.0",
    "1..0",
    "a.b.c",
    "١.0.0",
  ])("is not read from %j", (id) => {
    expect(parseCursor(id)).toBeUndefined();
  });

  test("has one id", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\d.-]{0,12}$/), (id) => {
        const cursor = parseCursor(id);
        if (cursor !== undefined) expect(formatCursor(cursor)).toBe(id);
      }),
      times(500),
    );
  });
});
