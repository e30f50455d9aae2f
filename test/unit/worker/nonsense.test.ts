import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test, vi } from "vitest";
import { collect, inputOf, makeRunner } from "../runner/kit.js";
import { defineAgent } from "../../../src/worker/define-agent.js";

const start: BaseEvent = { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" };

/** The end of a run whose agent yields this, and what its host is told. */
async function endOf(...nonsense: unknown[]) {
  const logger = { error: vi.fn(), warn: vi.fn() };
  const agent = defineAgent<BaseEvent>(async function* () {
    yield start;
    yield* nonsense as never[]; // what no compiler has seen
  });
  const events = await collect(makeRunner({ logger }).run({ threadId: "t", agent, input: inputOf("t", "r") }));
  return { end: events.at(-1), types: events.map(({ type }) => type as string), logger };
}

describe("nonsense that an agent function yields: the message names the event and its position", () => {
  test.each([
    ["a string", "hello", /^event 2 is not an AG-UI event: it has no type \(it is "hello"\)$/],
    ["nothing", undefined, /^event 2 is not .*\(it is undefined\)$/],
    ["null", null, /^event 2 is not .*\(it is null\)$/],
    ["a number", 7, /^event 2 is not .*\(it is 7\)$/],
    ["a list", [start], /^event 2 is not .*\(it is array\)$/],
    ["an object without a type", { messageId: "m" }, /^event 2 is not .*\(it is object\)$/],
    [
      "a misspelt field",
      { type: EventType.TEXT_MESSAGE_CONTENT, messagId: "m", delta: "x" },
      /^event 2 \(TEXT_MESSAGE_CONTENT\): messageId: .* \(its fields: type, messagId, delta\)$/,
    ],
    [
      "a field of the wrong type",
      { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: { secret: 1 } },
      /^event 2 \(TEXT_MESSAGE_CONTENT\): delta: (?!.*secret).*$/,
    ],
    [
      "an event that nothing begins",
      { type: EventType.TOOL_CALL_END, toolCallId: "c" },
      /^event 2 \(TOOL_CALL_END\): Cannot send 'TOOL_CALL_END' event/,
    ],
  ])("%s", async (_what, nonsense, message) => {
    const { end, types } = await endOf(nonsense);
    expect(end).toMatchObject({ code: "INVALID_STREAM", message: expect.stringMatching(message) });
    expect(types).toEqual(["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_ERROR"]);
  });

  test("a type that AG-UI does not know: left out, as AG-UI says, and the host is told", async () => {
    const silence = vi.spyOn(console, "warn").mockReturnValue();
    const { end, types, logger } = await endOf({ type: "TEXT_MESAGE_END", messageId: "m" });
    expect(end).toMatchObject({ type: EventType.RUN_FINISHED });
    expect(types).toEqual(["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_FINISHED"]);
    const told =
      /^Run "r" of thread "t": event 2 \(TEXT_MESAGE_END\) has a type that AG-UI does not know; it was left out$/;
    expect(logger.warn.mock.calls).toEqual([[expect.stringMatching(told)]]);
    expect(silence).not.toHaveBeenCalled();
  });

  test("a message has bounded length, whatever is yielded", async () => {
    const wide = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`${n}${"x".repeat(1_000)}`, n]));
    for (const nonsense of ["x".repeat(1e6), { type: "y".repeat(1e6) }, { ...wide, type: EventType.STEP_STARTED }]) {
      const { end, logger } = await endOf(nonsense);
      const messages = [end?.["message"] ?? "", ...logger.warn.mock.calls.flat()];
      expect(Math.max(...messages.map((message) => String(message).length))).toBeLessThan(1_500);
    }
  });
});
