import { EventType, type BaseEvent } from "@ag-ui/client";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { closingEvents } from "../../../src/run/finalize.js";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import { unpackEntry } from "../../../src/run/pack.js";
import { times, untilMet } from "../property.js";
import { RUN_ID, streams, THREAD_ID, type Stream } from "../run/streams.js";
import {
  type Behaviour,
  behaviours,
  hookOfType,
  Ours,
  outcomeOf,
  packed,
  Reference,
  subscribersOf,
} from "./apply-kit.js";

beforeEach(() => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});

afterEach(() => vi.restoreAllMocks());

const terminal = (more: object = {}): BaseEvent => ({
  type: EventType.RUN_FINISHED,
  threadId: THREAD_ID,
  runId: RUN_ID,
  ...more,
});

const interrupts = [{ id: "i", reason: "ask" }];

const terminals: fc.Arbitrary<BaseEvent> = fc.constantFrom<BaseEvent>(
  { type: EventType.RUN_ERROR, message: "no" },
  terminal(),
  terminal({ result: { n: 1 } }),
  terminal({ outcome: { type: "success", pendingToolCallIds: ["c1"] } }),
  terminal({ outcome: { type: "cancelled" } }),
  terminal({ outcome: { type: "interrupt", interrupts } }),
);

const nextRun: readonly BaseEvent[] = [
  { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: "next" },
  { type: EventType.TOOL_CALL_START, toolCallId: "c20", toolCallName: "ask" },
  { type: EventType.TOOL_CALL_END, toolCallId: "c20" },
  terminal({ runId: "next" }),
];

/** The same with each delta as several, of which some are empty, and deltas behind each start. */
const cut = (event: BaseEvent, parts: number): readonly BaseEvent[] => {
  const { type, messageId, toolCallId, delta } = event as BaseEvent & Record<string, unknown>;
  const deltas = (of: BaseEvent, last: string): BaseEvent[] =>
    Array.from({ length: parts + 1 }, (_, n) => ({ ...of, delta: n === parts ? last : `{"${n}":` }));
  if (typeof delta === "string") return deltas(event, delta);
  if (type === EventType.TEXT_MESSAGE_START)
    return [event, ...deltas({ type: EventType.TEXT_MESSAGE_CONTENT, messageId }, "")];
  if (type === EventType.TOOL_CALL_START)
    return [event, ...deltas({ type: EventType.TOOL_CALL_ARGS, toolCallId }, "1")];
  return [event];
};

/** A thread and whole runs in it, at whose end nothing is open. */
const runs: fc.Arbitrary<Stream> = fc
  .record({ stream: streams(20), last: terminals, parts: fc.nat(3), hasNext: fc.boolean() })
  .map(({ stream: { base, events }, last, parts, hasNext }) => {
    const many = events.flatMap((event) => cut(event, parts));
    const open = new OpenConstructTracker(new Set());
    for (const event of many) open.note(event);
    let results = 0;
    const ends = closingEvents(open.snapshot(), {
      status: "finished",
      threadId: THREAD_ID,
      runId: RUN_ID,
      terminal: last,
      ids: () => `made-up${results++}`,
    });
    const more = hasNext && last.type === EventType.RUN_FINISHED ? nextRun : [];
    return { base, events: [...many, ...ends, ...more] };
  });

describe("what the default stage tells subscribers, and what it rebuilds, is the same (L2)", () => {
  const met = { complete: 0, joined: 0, unpacked: 0 };
  const cases = fc.tuple(runs, behaviours);

  const play =
    (isJoined: boolean) =>
    async ([{ base, events }, who]: [Stream, Behaviour[]]): Promise<void> => {
      const subscribers = subscribersOf(who);
      const hooks = new Set(who.flatMap((one) => one.hooks));
      const entries = isJoined ? packed(events) : events.map((event) => ({ event }));
      const told = entries.flatMap((entry) =>
        hooks.has("onEvent") || hooks.has(hookOfType(entry.event.type)) ? unpackEntry(entry) : [entry.event],
      );
      const given = structuredClone(entries);
      const ours = await outcomeOf(new Ours(base, entries), subscribers);
      const theirs = await outcomeOf(new Reference(base, told), subscribers);
      expect(ours).toEqual(theirs);
      // Fields in the same order, too: tabs and logs may be compared as text.
      expect(JSON.stringify(ours.end)).toEqual(JSON.stringify(theirs.end));
      expect(entries).toEqual(given);
      if (typeof (ours.end as { run: unknown }).run === "object") met.complete++;
      if (isJoined && told.length < events.length) met.joined++;
      if (isJoined && told.length > entries.length) met.unpacked++;
    };

  test("single events", () => fc.assert(fc.asyncProperty(cases, play(false)), times(150)));

  test("joined deltas, as single ones to whoever has a hook for each", async () => {
    await fc.assert(fc.asyncProperty(cases, play(true)), times(150));
    await untilMet(met, cases, play(true));
  });
});

test("a state whose patch is refused has its fields in the same order, in text too (L2)", async () => {
  const base: Stream["base"] = { messages: [], state: { list: [1], count: 0, a: { b: 1 } }, interrupts: [] };
  const remove = { op: "remove", path: "/list" };
  const events: BaseEvent[] = [
    { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
    { type: EventType.STATE_DELTA, delta: [remove, { op: "test", path: "/a", value: null }] },
    { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "/count", value: 2 }] },
    { type: EventType.STATE_DELTA, delta: [remove, { op: "test", path: "/a", value: null }] },
    terminal(),
  ];
  const entries = events.map((event) => ({ event }));
  const ours = await outcomeOf(new Ours(base, entries), subscribersOf([]));
  const theirs = await outcomeOf(new Reference(base, events), subscribersOf([]));
  expect(JSON.stringify(ours.end)).toEqual(JSON.stringify(theirs.end));
});

test("an activity of a subagent that is replaced has its fields in the same order, in text too (L2)", async () => {
  const base: Stream["base"] = {
    messages: [{ id: "p", role: "activity", subagentRunId: "s", activityType: "plan", content: { n: 1 } }],
    state: {},
    interrupts: [],
  };
  const plan = { type: EventType.ACTIVITY_SNAPSHOT, messageId: "p", activityType: "plan", content: { n: 2 } };
  const events: BaseEvent[] = [
    { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
    { ...plan, subagentRunId: "s" },
    terminal(),
  ];
  const entries = events.map((event) => ({ event }));
  const ours = await outcomeOf(new Ours(base, entries), subscribersOf([]));
  const theirs = await outcomeOf(new Reference(base, events), subscribersOf([]));
  expect(JSON.stringify(ours.end)).toEqual(JSON.stringify(theirs.end));
});

test("a message that a snapshot tells again has its fields as the snapshot has them, in text too (L2)", async () => {
  const base: Stream["base"] = { messages: [], state: {}, interrupts: [] };
  const events: BaseEvent[] = [
    { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
    { type: EventType.REASONING_MESSAGE_START, messageId: "r", role: "reasoning", subagentRunId: "s" },
    {
      type: EventType.MESSAGES_SNAPSHOT,
      messages: [{ subagentRunId: "s", id: "r", role: "reasoning", content: "" }],
    },
    { type: EventType.REASONING_MESSAGE_END, messageId: "r" },
    terminal(),
  ];
  const nobody = subscribersOf([]);
  const entries = events.map((event) => ({ event }));
  const ours = await outcomeOf(new Ours(base, entries), nobody);
  const theirs = await outcomeOf(new Reference(base, events), nobody);
  expect(JSON.stringify(ours.end)).toEqual(JSON.stringify(theirs.end));
});

test("thousands of events that waited for a hook are applied without an end of the stack (L13, L17)", async () => {
  const count = 20_000;
  const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID };
  const customs = Array.from({ length: count }, (_, n): BaseEvent => ({
    type: EventType.CUSTOM,
    name: "count",
    value: n,
  }));
  const agent = new Ours({ messages: [], state: {} }, packed([started, ...customs, terminal()]));
  const told: unknown[] = [];
  agent.subscribe({
    onRunStartedEvent: async () => undefined,
    onCustomEvent: ({ event }) => void told.push(event.value),
  });
  await agent.runAgent({ runId: RUN_ID });
  expect(told).toEqual(customs.map(({ value }) => value));
});
