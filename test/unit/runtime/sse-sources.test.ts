import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { describe, expect, test, vi } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import { sseResponse, type SseEvent } from "../../../src/runtime/http/sse.js";
import { DrivenClock } from "../lock/driven-clock.js";
import { CLIENTS, readBy } from "../wire/http-clients.js";
import { parseEvents, Source } from "./sse-kit.js";

const SILENT = { keepAliveMs: 0 };
const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
const finished: BaseEvent = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" };
const custom = (value: unknown): BaseEvent => ({ type: EventType.CUSTOM, name: "n", value });
const plain = (events: readonly BaseEvent[]): SseEvent[] => events.map((event) => ({ event }));
const numbered = (events: readonly BaseEvent[]): SseEvent[] =>
  events.map((event, seq) => ({ event, cursor: { runIndex: 3, seq, epoch: 7 } }));

const line = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> => {
  const { value } = await reader.read();
  return new TextDecoder().decode(value);
};

/** A reader that has waited so long that it was sent a comment line. */
async function afterComment() {
  const clock = new DrivenClock();
  const source = new Source();
  const reader = sseResponse(source, { keepAliveMs: 10, clock }).body!.getReader();
  const comment = line(reader);
  await vi.waitFor(() => expect(clock.waiting).toBe(1));
  clock.pass(10);
  await comment;
  return { source, reader };
}

describe("a silent source", () => {
  test("is bridged by a comment line after each so much silence", async () => {
    const clock = new DrivenClock();
    const source = new Source();
    const reader = sseResponse(source, { keepAliveMs: 1_000, clock }).body!.getReader();
    for (let n = 0; n < 3; n++) {
      const read = line(reader);
      await vi.waitFor(() => expect(clock.waiting).toBe(1));
      clock.pass(999);
      await nextTask();
      expect(clock.waiting).toBe(1);
      clock.pass(1);
      expect(await read).toBe(": keep-alive\n\n");
    }
    expect(source.asked).toBe(1);
    const read = line(reader);
    source.give({ event: custom(1) });
    expect(await read).toBe(`data: ${JSON.stringify(custom(1))}\n\n`);
    expect(clock.waiting).toBe(0);
  });

  test("that speaks after a comment line, before the reader looks, is heard once (L2)", async () => {
    const { source, reader } = await afterComment();
    source.give({ event: custom(1) });
    await nextTask();
    source.give({ event: custom(2) }).end();
    await nextTask();
    expect(await line(reader)).toBe(`data: ${JSON.stringify(custom(1))}\n\n`);
    expect(await line(reader)).toBe(`data: ${JSON.stringify(custom(2))}\n\n`);
    expect((await reader.read()).done).toBe(true);
  });

  test("that fails after a comment line fails the body, and nothing else", async () => {
    const { source, reader } = await afterComment();
    source.fail(new Error("late"));
    await nextTask();
    await expect(reader.read()).rejects.toThrow("The runtime failed");
  });

  test("costs no comment line where nobody reads (L14)", async () => {
    const clock = new DrivenClock();
    const response = sseResponse(new Source().give({ event: started }), { keepAliveMs: 10, clock });
    const reader = response.body!.getReader();
    await reader.read();
    await nextTask();
    expect(clock.waiting).toBe(0);
  });
});

describe("a source that fails", () => {
  const secret = new Error("password");

  test.each([
    [
      "an error of the runtime by its code",
      new RunnerError("storage-lost"),
      "storage-lost",
      "The connection to the database was lost: what was shown is kept; try again",
    ],
    ["any other error without a word of it", secret, "INTERNAL_ERROR", "The runtime failed"],
    ["what is no error at all", { message: "password" }, "INTERNAL_ERROR", "The runtime failed"],
  ])("in an open run tells of %s", async (_, error, code, message) => {
    const body = sseResponse(new Source().give(...numbered([started, custom(1)])).fail(error), SILENT);
    expect(parseEvents(await body.text()).events.slice(2)).toEqual([
      { data: { type: "RUN_ERROR", message, code }, id: "3.1.7" },
    ]);
  });

  test.each(CLIENTS)("in an open run is no success for a client of %s", async (version) => {
    const heard = await readBy(version, sseResponse(new Source().give(...plain([started])).fail(secret), SILENT));
    expect(heard.types).toEqual(["RUN_STARTED", "RUN_ERROR"]);
    expect(heard.outcomes).toEqual([]);
  });

  test.each<[string, readonly BaseEvent[]]>([
    ["before any event", []],
    ["after the run's end", [started, finished]],
    ["after a run's failure", [started, { type: EventType.RUN_ERROR, message: "no" }]],
    ["after the rest of a run, which its reader began elsewhere", [custom(1)]],
  ])("%s fails the body, without a word of why", async (_, events) => {
    const reader = sseResponse(new Source().give(...plain(events)).fail(secret), SILENT).body!.getReader();
    if (events.length > 0) await reader.read();
    const failed: unknown = await reader.read().catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: "host-failed", message: "The runtime failed" });
    expect(failed).not.toHaveProperty("cause");
  });

  test.each(CLIENTS)("before any event is no success for a client of %s", async (version) => {
    const heard = await readBy(version, sseResponse(new Source().fail(secret), SILENT));
    expect(heard.failed).toContain("The runtime failed");
  });

  test("in the second run of a stream ends that one", async () => {
    const second = { ...started, runId: "r2" };
    const body = sseResponse(new Source().give(...plain([started, finished, second])).fail(secret), SILENT);
    expect(parseEvents(await body.text()).events.at(-1)?.data).toMatchObject({ type: "RUN_ERROR" });
  });

  test("by throwing at once does the same", async () => {
    const source = new Source();
    source.next = () => {
      throw secret;
    };
    await expect(sseResponse(source, SILENT).text()).rejects.toThrow("The runtime failed");
  });

  test("to give what JSON can hold has sent what came before, and is ended", async () => {
    const unwritable = {
      toJSON: () => {
        throw new TypeError("no JSON");
      },
    };
    const source = new Source().give(...plain([started, custom(1), custom(unwritable), custom(2)]));
    const body = sseResponse(source, SILENT);
    const { events } = parseEvents(await body.text());
    expect(events.map(({ data }) => data)).toEqual([
      started,
      custom(1),
      { type: "RUN_ERROR", message: "The runtime failed", code: "INTERNAL_ERROR" },
    ]);
    expect(source.returned).toBe(1);
  });

  test("with a mapping that fails for everything fails the body", async () => {
    let broken = false;
    const map = (event: BaseEvent): BaseEvent => {
      if (broken) throw secret;
      return event;
    };
    const source = new Source().give({ event: started }).give({ event: custom(1) });
    const reader = sseResponse(source, { ...SILENT, map }).body!.getReader();
    await reader.read();
    broken = true;
    await expect(reader.read()).rejects.toThrow("The runtime failed");
  });
});
