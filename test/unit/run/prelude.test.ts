import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { times } from "../property.js";
import { closingEvents } from "../../../src/run/finalize.js";
import { settledPrelude } from "../../../src/run/prelude.js";
import { RunView } from "../../../src/run/run-view.js";
import { mustBeValid, referenceFold } from "./reference.js";
import { RUN_ID, streams, THREAD_ID, type Stream } from "./streams.js";

const NOTHING = { messages: [], state: {}, interrupts: [] };
const ids = (() => {
  let n = 0;
  return () => `made-up-${n++}`;
})();

/** The run to its end, finished in order. */
function complete({ base, events }: Stream): BaseEvent[] {
  const view = new RunView(base);
  for (const event of events) view.apply(event);
  return [...events, ...closingEvents(view.open(), { status: "finished", threadId: THREAD_ID, runId: RUN_ID, ids })];
}

/** The thread's earlier run, as a snapshot. */
function earlier(base: Stream["base"]): BaseEvent[] {
  return settledPrelude({
    runStarted: {
      type: EventType.RUN_STARTED,
      threadId: THREAD_ID,
      runId: "earlier",
      input: { messages: base.messages },
    },
    state: base.state,
    messages: base.messages,
    customs: [{ type: EventType.CUSTOM, name: "n", value: 1 }],
    terminal: {
      type: EventType.RUN_FINISHED,
      threadId: THREAD_ID,
      runId: "earlier",
      outcome: { type: "interrupt", interrupts: base.interrupts },
    },
  });
}

const text = (id: string): BaseEvent[] => [
  { type: EventType.TEXT_MESSAGE_START, messageId: id, metadata: { k: 1 } },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: id, delta: "so far", metadata: { k: 2 } },
];

const count = (events: readonly BaseEvent[]): number =>
  events.filter(({ type }) => type === EventType.MESSAGES_SNAPSHOT).length;

const subagent = (type: EventType, subagentRunId: string, more = {}): BaseEvent => ({
  type,
  subagentRunId,
  ...more,
});

describe("prelude of a live run", () => {
  test("from any point on, a reader rebuilds what all events give, and hears a valid sequence (L2, L3)", async () => {
    await fc.assert(
      fc.asyncProperty(streams(60), fc.nat(62), async (stream, at) => {
        const events = complete(stream);
        const cut = Math.min(at, events.length - 2) + 1;
        const view = new RunView(stream.base);
        for (const event of events.slice(0, cut)) view.apply(event);
        const heard = [...structuredClone(view.prelude()), ...events.slice(cut)];

        const truth = await referenceFold(stream.base, events);
        const history = earlier(stream.base);
        await mustBeValid([...history, ...heard]);
        await mustBeValid(heard);
        expect(await referenceFold(NOTHING, [...history, ...heard])).toEqual(truth);
        expect(await referenceFold(stream.base, heard)).toEqual(truth);
        expect(await referenceFold(NOTHING, heard)).toEqual(truth);
      }),
      times(500),
    );
  });

  test("nothing is written to the events of the run", () => {
    fc.assert(
      fc.property(streams(), ({ base, events }) => {
        const given = structuredClone(events);
        const view = new RunView(base);
        for (const event of events) view.apply(event);
        view.prelude();
        expect(events).toEqual(given);
      }),
    );
  });

  const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID };
  const after = (events: readonly BaseEvent[], messages: Message[] = []): BaseEvent[] => {
    const view = new RunView({ ...NOTHING, messages });
    for (const event of [started, ...events]) view.apply(event);
    return view.prelude();
  };

  test("a message under way stands in the snapshot with its content so far, and starts again", () => {
    expect(after(text("m"))).toEqual([
      started,
      { type: EventType.STATE_SNAPSHOT, snapshot: {} },
      {
        type: EventType.MESSAGES_SNAPSHOT,
        messages: [{ id: "m", role: "assistant", content: "so far", metadata: { k: 2 } }],
        metadata: { "@ag-ui/client": { authoritativeActivityTypes: null } },
      },
      { type: EventType.TEXT_MESSAGE_START, messageId: "m" },
    ]);
  });

  test("messages are cleared first only where a snapshot would leave them in the wrong order", () => {
    const toolCalls = [{ id: "c", type: "function" as const, function: { name: "f", arguments: "{}" } }];
    const messages: Message[] = [
      { id: "a", role: "assistant", toolCalls },
      { id: "u", role: "user", content: "?" },
    ];
    expect(count(after(text("m"), messages))).toBe(1);
    const result = { type: EventType.TOOL_CALL_RESULT, messageId: "r", toolCallId: "c", content: "1" };
    expect(count(after([...text("m"), result], messages))).toBe(3);
  });

  test("an ended subagent may still be named as a parent", async () => {
    const events = [
      subagent(EventType.SUBAGENT_STARTED, "s1", { name: "n" }),
      subagent(EventType.SUBAGENT_FINISHED, "s1"),
    ];
    const next = subagent(EventType.SUBAGENT_STARTED, "s2", { name: "n", parentSubagentRunId: "s1" });
    await mustBeValid([...after(events), next]);
  });

  test("a reader is told which calls wait for an answer", () => {
    const call = [
      { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "ask" },
      { type: EventType.TOOL_CALL_END, toolCallId: "c" },
    ];
    expect(after(call).slice(-2)).toEqual(call);
  });
});

describe("prelude of a settled run", () => {
  test("a fresh reader has messages, state and interrupts, also where the last run failed (L2, L3, L4)", async () => {
    await fc.assert(
      fc.asyncProperty(streams(), fc.boolean(), async (stream, failed) => {
        const base = await referenceFold(stream.base, stream.events);
        const terminal = failed
          ? { type: EventType.RUN_ERROR, message: "no" }
          : {
              type: EventType.RUN_FINISHED,
              threadId: THREAD_ID,
              runId: RUN_ID,
              outcome: { type: "interrupt", interrupts: base.interrupts },
            };
        const customs = stream.events.filter(({ type }) => type === EventType.CUSTOM || type === EventType.RAW);
        const prelude = settledPrelude({ ...base, runStarted: stream.events[0]!, customs, terminal });
        await mustBeValid(prelude);
        expect(await referenceFold(NOTHING, prelude)).toEqual(base);
        expect(prelude.at(-1)).toBe(terminal);
      }),
      times(200),
    );
  });
});
