import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { times } from "../property.js";
import { closingEvents, type Ending } from "../../../src/run/finalize.js";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import type { SettledStatus } from "../../../src/run/types.js";
import { mustBeValid } from "./reference.js";
import { RUN_ID, streams, STREAMED_TYPES, streamsWith, THREAD_ID } from "./streams.js";

const STATUSES: readonly SettledStatus[] = ["finished", "errored", "stopped", "superseded", "broken"];

function ending(status: SettledStatus, more: Partial<Ending> = {}): Ending {
  let n = 0;
  return { status, threadId: THREAD_ID, runId: RUN_ID, ids: () => `made-up-${n++}`, ...more };
}

function track(events: readonly BaseEvent[], frontEndTools: readonly string[] = []): OpenConstructTracker {
  const tracker = new OpenConstructTracker(new Set(frontEndTools));
  for (const event of events) tracker.note(event);
  return tracker;
}

const start = { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID };
const call = (toolCallName = "sum"): BaseEvent => ({ type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName });
const callEnd: BaseEvent = { type: EventType.TOOL_CALL_END, toolCallId: "c" };
const result: BaseEvent = { type: EventType.TOOL_CALL_RESULT, messageId: "x", toolCallId: "c", content: "1" };
const types = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);

function snapshot(answered: boolean): BaseEvent {
  const toolCalls = [{ id: "c", type: "function", function: { name: "sum", arguments: "" } }];
  const messages = answered
    ? [
        { id: "c", role: "assistant", toolCalls },
        { id: "x", role: "tool", toolCallId: "c", content: "1" },
      ]
    : [];
  return { type: EventType.MESSAGES_SNAPSHOT, messages };
}

describe("closing events", () => {
  test.each(STREAMED_TYPES)("the streams of these tests are valid, and %s is in some of them", async (type) => {
    await fc.assert(
      fc.asyncProperty(streamsWith(type), ({ events }) => mustBeValid(events)),
      times(15),
    );
  });

  test("they end any run at any point, and further runs may follow (L3, L7, L9)", async () => {
    await fc.assert(
      fc.asyncProperty(
        streams(),
        fc.nat(40),
        fc.constantFrom(...STATUSES),
        fc.boolean(),
        async ({ events }, cut, status, own) => {
          const prefix = events.slice(0, cut + 1);
          const tracker = track(prefix);
          const terminal = own
            ? { terminal: { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID } }
            : {};
          const closing = closingEvents(tracker.snapshot(), ending(status, terminal));
          await mustBeValid([...prefix, ...closing, start, ...closingEvents(undefined, ending("finished"))]);
          // RUN_ERROR may leave things open as far as the verifier is concerned: everything is closed all the same.
          const finished = { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID };
          await mustBeValid([...prefix, ...closing.slice(0, -1), finished]);
          for (const event of closing) tracker.note(event);
          const { unanswered = [], ...open } = tracker.snapshot() ?? {};
          expect(Object.values(open).flat()).toEqual([]);
          if (status !== "finished" && status !== "errored") expect(unanswered).toEqual([]);
        },
      ),
      times(400),
    );
  });

  test.each([
    ["finished", { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID }],
    ["stopped", { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID, outcome: { type: "cancelled" } }],
    [
      "superseded",
      { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID, outcome: { type: "cancelled" } },
    ],
    ["errored", { type: EventType.RUN_ERROR, message: "why", code: "C" }],
    ["broken", { type: EventType.RUN_ERROR, message: "why", code: "RUN_BROKEN" }],
  ] as const)("a run that is %s ends with its terminal event", (status, terminal) => {
    expect(closingEvents(undefined, ending(status, { message: "why", code: "C" }))).toEqual([terminal]);
  });

  test("the agent's own terminal event is the last, as given", () => {
    const terminal = { type: EventType.RUN_ERROR, message: "mine" };
    expect(closingEvents(track([start, call()]).snapshot(), ending("errored", { terminal })).at(-1)).toBe(terminal);
  });

  test.each([
    ["whose end is missing", [call()], "finished", ["TOOL_CALL_END", "TOOL_CALL_RESULT"]],
    ["whose end is missing in a stopped run", [call()], "stopped", ["TOOL_CALL_END", "TOOL_CALL_RESULT"]],
    ["whose end is missing in an errored run", [call()], "errored", ["TOOL_CALL_END", "TOOL_CALL_RESULT"]],
    ...STATUSES.map((how) => ["of the front end whose end is missing", [call("ask")], how, ["TOOL_CALL_END"]] as const),
    ["that has its result before its end", [call(), result], "stopped", ["TOOL_CALL_END"]],
    ["that waits in a stopped run", [call(), callEnd], "stopped", ["TOOL_CALL_RESULT"]],
    ["that waits in a broken run", [call(), callEnd], "broken", ["TOOL_CALL_RESULT"]],
    ["that waits in a superseded run", [call(), callEnd], "superseded", ["TOOL_CALL_RESULT"]],
    ["that waits in a finished run", [call(), callEnd], "finished", []],
    ["that waits in an errored run", [call(), callEnd], "errored", []],
    ["of the front end that waits in a stopped run", [call("ask"), callEnd], "stopped", []],
    ["that is answered", [call(), callEnd, result], "stopped", []],
    ["that a snapshot answers", [call(), callEnd, snapshot(true)], "stopped", []],
    ["that a snapshot leaves out", [call(), snapshot(false)], "stopped", ["TOOL_CALL_END"]],
  ] as const)("a result is made up or not for a call %s", (_, events, status, expected) => {
    const closing = closingEvents(track([start, ...events], ["ask"]).snapshot(), ending(status));
    expect(types(closing).slice(0, -1)).toEqual(expected);
  });

  test("no result is made up in a stream that was cut off", () => {
    const open = track([start, call()]).snapshot();
    const closing = closingEvents(open, ending("errored", { code: "INCOMPLETE_STREAM" }));
    expect(types(closing)).toEqual(["TOOL_CALL_END", "RUN_ERROR"]);
  });

  test("subagents end inside out", () => {
    const events = ["s1", "s2"].map((subagentRunId) => ({
      type: EventType.SUBAGENT_STARTED,
      subagentRunId,
      name: "n",
    }));
    const closing = closingEvents(track([start, ...events]).snapshot(), ending("stopped", { message: "why" }));
    expect(closing.slice(0, 2)).toEqual([
      { type: EventType.SUBAGENT_ERROR, subagentRunId: "s2", message: "why" },
      { type: EventType.SUBAGENT_ERROR, subagentRunId: "s1", message: "why" },
    ]);
  });
});

describe("open constructs", () => {
  test("the snapshot stays one object while nothing changes", () => {
    const tracker = track([start, call("ask")], ["ask"]);
    const first = tracker.snapshot();
    tracker.note({ type: EventType.TOOL_CALL_ARGS, toolCallId: "c", delta: "x" });
    expect(tracker.snapshot()).toBe(first);
    expect(first?.toolCalls).toEqual([{ toolCallId: "c", frontEnd: true }]);
  });

  test("a new run has nothing open", () => {
    expect(track([start, call(), start]).snapshot()).toBeUndefined();
  });
});
