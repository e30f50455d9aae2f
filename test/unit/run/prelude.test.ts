import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message, MessagesSnapshotEvent } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { times, untilMet } from "../property.js";
import { closingEvents } from "../../../src/run/finalize.js";
import { lastOf } from "../../../src/run/message-page.js";
import { livePrelude } from "../../../src/run/live-prelude.js";
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
  return [
    ...events,
    ...closingEvents(view.open.snapshot(), { status: "finished", threadId: THREAD_ID, runId: RUN_ID, ids }),
  ];
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

/** The event tells of all messages, or of one of these. */
function speaksOf(event: BaseEvent, hidden: readonly Message[]): boolean {
  if (event.type === EventType.MESSAGES_SNAPSHOT) return true;
  const known = new Set(hidden.flatMap((message) => [message.id, ...callsOf(message)]));
  const input = (event as { input?: { messages?: Message[] } }).input?.messages ?? [];
  const named = [event["messageId"], event["toolCallId"], event["parentMessageId"], event["entityId"]];
  return [...named, ...input.map(({ id }) => id)].some((id) => known.has(String(id)));
}

const callsOf = (message: Message): string[] =>
  message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => id) : [];

describe("prelude of a live run", () => {
  const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID };

  test("from any point on, a reader rebuilds what all events give, and hears a valid sequence (L2, L3)", async () => {
    await fc.assert(
      fc.asyncProperty(streams(60), fc.nat(62), async (stream, at) => {
        const events = complete(stream);
        const cut = Math.min(at, events.length - 2) + 1;
        const view = new RunView(stream.base);
        for (const event of events.slice(0, cut)) view.apply(event);
        const heard = [...structuredClone(livePrelude(view).events), ...events.slice(cut)];

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

  test("a reader that is shown the last messages rebuilds those, and goes on with the run (L2, L3)", async () => {
    const seen = { longer: 0, goneOn: 0 };
    const cases = fc.tuple(streams(40), fc.nat(42), fc.integer({ min: 1, max: 4 }));
    const judge = async ([stream, at, limit]: typeof cases extends fc.Arbitrary<infer Case> ? Case : never) => {
      const events = complete(stream);
      const cut = Math.min(at, events.length - 2) + 1;
      const view = new RunView(stream.base);
      for (const event of events.slice(0, cut)) view.apply(event);
      const all = structuredClone(view.fold.messages);
      const shown = livePrelude(view, { limit });
      const prelude = structuredClone(shown.events);
      const part = prelude.findLast(({ type }) => type === EventType.MESSAGES_SNAPSHOT) as MessagesSnapshotEvent;
      const hidden = all.slice(0, all.length - part.messages.length);
      expect([...hidden, ...part.messages]).toEqual(all);
      expect(part.messages.length).toBeGreaterThanOrEqual(Math.min(limit, all.length));
      expect(shown.earlier).toBe(hidden.length > 0);
      if (part.messages.length > limit) seen.longer++;

      const before = earlier({ ...stream.base, messages: [...lastOf(stream.base.messages, limit).messages] });
      await mustBeValid([...before, ...prelude]);
      expect((await referenceFold(NOTHING, prelude)).messages).toEqual(part.messages);
      expect((await referenceFold(NOTHING, [...before, ...prelude])).messages).toEqual(part.messages);
      // Whatever it has read of another branch.
      const left: Message = { id: "left", role: "reasoning", content: "hm" };
      const anew = structuredClone(livePrelude(view, { limit, forget: true }).events);
      const held = [left, ...lastOf(stream.base.messages, limit).messages];
      expect((await referenceFold({ ...stream.base, messages: held }, anew)).messages).toEqual(part.messages);

      const rest = events.slice(cut);
      await mustBeValid([...before, ...prelude, ...rest]);
      if (rest.some((event) => speaksOf(event, hidden))) return;
      const truth = await referenceFold(stream.base, events);
      const heard = await referenceFold(NOTHING, [...before, ...prelude, ...rest]);
      expect({ ...heard, messages: [...hidden, ...heard.messages] }).toEqual(truth);
      if (hidden.length > 0 && rest.length > 3) seen.goneOn++;
    };
    await fc.assert(fc.asyncProperty(cases, judge), times(300));
    await untilMet(seen, cases, judge);
  });

  test("of a long thread a reader is shown the last messages, and all that the run has added or has open", () => {
    const messages = Array.from({ length: 100 }, (_, n): Message => ({ id: `b${n}`, role: "assistant", content: "" }));
    const view = new RunView({ ...NOTHING, messages });
    const shown = (limit: number): string[] => {
      const snapshot = livePrelude(view, { limit }).events.findLast(({ type }) => type === EventType.MESSAGES_SNAPSHOT);
      return (snapshot as MessagesSnapshotEvent).messages.map(({ id }) => id);
    };
    view.apply(started);
    expect(shown(2)).toEqual(["b98", "b99"]);
    for (const event of text("m")) view.apply(event);
    expect(shown(2)).toEqual(["b99", "m"]);
    const ended = (id: string): BaseEvent => ({ type: EventType.TEXT_MESSAGE_END, messageId: id });
    for (const event of [ended("m"), ...text("m2"), ended("m2"), ...text("m3")]) view.apply(event);
    expect(shown(2)).toEqual(["m", "m2", "m3"]);
    view.apply({ type: EventType.TEXT_MESSAGE_START, messageId: "b95" });
    expect(shown(2)).toEqual(["b95", "b96", "b97", "b98", "b99", "m", "m2", "m3"]);
    view.apply(ended("b95"));
    expect(shown(2)).toEqual(["m", "m2", "m3"]);
    const isPart = (limit?: number): boolean => livePrelude(view, limit === undefined ? {} : { limit }).earlier;
    expect([isPart(2), isPart(103), isPart()]).toEqual([true, false, false]);
  });

  test("nothing is written to the events of the run", () => {
    fc.assert(
      fc.property(streams(), ({ base, events }) => {
        const given = structuredClone(events);
        const view = new RunView(base);
        for (const event of events) view.apply(event);
        livePrelude(view);
        expect(events).toEqual(given);
      }),
    );
  });

  const after = (events: readonly BaseEvent[], messages: Message[] = []): BaseEvent[] => {
    const view = new RunView({ ...NOTHING, messages });
    for (const event of [started, ...events]) view.apply(event);
    return livePrelude(view).events;
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

  test("two messages of one id that become one are one for a reader that holds both (L2)", async () => {
    const activity: Message = { id: "a", role: "activity", activityType: "x", content: {} };
    const held: Message[] = [{ id: "a", role: "tool", toolCallId: "c", content: "1" }, activity];
    const prelude = after([{ type: EventType.MESSAGES_SNAPSHOT, messages: [] }], held);
    const reader = await referenceFold({ ...NOTHING, messages: held }, structuredClone(prelude));
    expect(reader.messages).toEqual([activity]);
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
  test("a reader that holds other messages too has those that it is shown (L2)", async () => {
    await fc.assert(
      fc.asyncProperty(streams(), fc.integer({ min: 1, max: 4 }), async (stream, limit) => {
        const base = await referenceFold(stream.base, stream.events);
        const terminal = { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID };
        const { messages } = lastOf(base.messages, limit);
        const parts = { ...base, messages, runStarted: stream.events[0]!, customs: [], terminal };
        const prelude = structuredClone(settledPrelude(parts, true));
        await mustBeValid(prelude);
        const left: Message = { id: "left", role: "reasoning", content: "hm" };
        const held = { ...base, messages: [left, ...base.messages] };
        expect((await referenceFold(held, prelude)).messages).toEqual(messages);
      }),
      times(100),
    );
  });

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
        const { messages, state, interrupts } = base;
        const interrupted = failed && interrupts.length > 0 && { interrupted: { runId: "asked", interrupts } };
        const runStarted = stream.events[0]!;
        const prelude = settledPrelude({ messages, state, runStarted, customs, terminal, ...interrupted });
        await mustBeValid(prelude);
        expect(await referenceFold(NOTHING, prelude)).toEqual(base);
        expect(prelude.at(-1)).toBe(terminal);
        const asked = prelude.filter(({ outcome }) => (outcome as { type?: string } | undefined)?.type === "interrupt");
        if (failed) expect(asked.map(({ runId }) => runId)).toEqual(interrupts.length > 0 ? ["asked"] : []);
      }),
      times(200),
    );
  });
});
