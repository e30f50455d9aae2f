import { transformChunks, type BaseEvent, type Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import fc from "fast-check";
import { from } from "rxjs";
import { describe, expect, test } from "vitest";
import { times } from "../property.js";
import { compact } from "../../../src/run/compact.js";
import { closingEvents } from "../../../src/run/finalize.js";
import { Fold, type ThreadContent } from "../../../src/run/fold.js";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import { mustBeValid, referenceFold } from "./reference.js";
import { streams, THREAD_ID, type Stream } from "./streams.js";

const NOTHING = { messages: [], state: {}, interrupts: [] };

const started = (runId = "run", messages?: readonly object[]): BaseEvent => ({
  type: EventType.RUN_STARTED,
  threadId: THREAD_ID,
  runId,
  ...(messages && { input: { threadId: THREAD_ID, runId, messages, tools: [], context: [] } }),
});
const finished = (runId = "run", outcome?: object): BaseEvent => ({
  type: EventType.RUN_FINISHED,
  threadId: THREAD_ID,
  runId,
  ...(outcome && { outcome }),
});
const failed: BaseEvent = { type: EventType.RUN_ERROR, message: "no" };

const start = (messageId: string, more: object = {}): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_START,
  messageId,
  ...more,
});
const text = (messageId: string, delta: string, more: object = {}): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_CONTENT,
  messageId,
  delta,
  ...more,
});
const end = (messageId: string): BaseEvent => ({ type: EventType.TEXT_MESSAGE_END, messageId });
const thought = (messageId: string, delta: string): BaseEvent => ({
  type: EventType.REASONING_MESSAGE_CONTENT,
  messageId,
  delta,
});
const callStart = (toolCallId: string, more: object = {}): BaseEvent => ({
  type: EventType.TOOL_CALL_START,
  toolCallId,
  toolCallName: "f",
  ...more,
});
const args = (toolCallId: string, delta: string): BaseEvent => ({ type: EventType.TOOL_CALL_ARGS, toolCallId, delta });
const patch = (op: object, more: object = {}): BaseEvent => ({ type: EventType.STATE_DELTA, delta: [op], ...more });
const append = (value: unknown): BaseEvent => patch({ op: "add", path: "/list/-", value });
const state = (snapshot: object, more: object = {}): BaseEvent => ({
  type: EventType.STATE_SNAPSHOT,
  snapshot,
  ...more,
});
const activity = (messageId: string, content: object, more: object = {}): BaseEvent => ({
  type: EventType.ACTIVITY_SNAPSHOT,
  messageId,
  activityType: "plan",
  content,
  ...more,
});
const activityPatch = (messageId: string, op: object, more: object = {}): BaseEvent => ({
  type: EventType.ACTIVITY_DELTA,
  messageId,
  activityType: "plan",
  patch: [op],
  ...more,
});
const snapshot = (messages: readonly object[], more: object = {}): BaseEvent => ({
  type: EventType.MESSAGES_SNAPSHOT,
  messages,
  ...more,
});
const custom = (name: string): BaseEvent => ({ type: EventType.CUSTOM, name, value: 1 });
const user = (id: string, more: object = {}): Message => ({ id, role: "user", content: id, ...more });

const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

/** The runs of a log, each from its RUN_STARTED on. */
function runsOf(events: readonly BaseEvent[]): BaseEvent[][] {
  const runs: BaseEvent[][] = [];
  for (const event of events) {
    if (event.type === EventType.RUN_STARTED) runs.push([]);
    runs[runs.length - 1]!.push(event);
  }
  return runs;
}

/** What a reader holds at the end of each run: by `@ag-ui/client`, and by the fold, which must agree. */
async function read(events: readonly BaseEvent[], base: ThreadContent): Promise<ThreadContent[]> {
  const held: ThreadContent[] = [];
  const fold = new Fold(base);
  for (const run of runsOf(events)) {
    held.push(await referenceFold(held[held.length - 1] ?? base, run));
    for (const event of run) fold.apply(event);
    const { messages, state: folded, interrupts } = fold;
    expect({ messages, state: folded, interrupts }).toEqual(held[held.length - 1]);
  }
  return held;
}

/** Compacts, and checks everything that must hold of any log. */
async function check(events: readonly BaseEvent[], base: ThreadContent = NOTHING): Promise<BaseEvent[]> {
  const given = structuredClone({ events, base });
  const compacted = compact(events, base);
  expect({ events, base }).toEqual(given);
  expect(await read(compacted, base)).toEqual(await read(events, base));
  await mustBeValid(compacted);
  expect(compact(compacted, base)).toEqual(compacted);
  expect({ events, base }).toEqual(given);
  return compacted;
}

/** Repeats some of the events that may be repeated as often as one likes, some with fields of their own. */
function thicken(events: readonly BaseEvent[], choices: readonly number[]): BaseEvent[] {
  const types: readonly string[] = [
    EventType.TEXT_MESSAGE_CONTENT,
    EventType.REASONING_MESSAGE_CONTENT,
    EventType.TOOL_CALL_ARGS,
    EventType.STATE_DELTA,
    EventType.ACTIVITY_DELTA,
    EventType.ACTIVITY_SNAPSHOT,
    EventType.MESSAGES_SNAPSHOT,
  ];
  return events.flatMap((event, n) => {
    const choice = choices[n % choices.length]!;
    if (!types.includes(event.type)) return [event];
    const again: BaseEvent[] = many((choice % 3) + 1, () => structuredClone(event));
    if (choice > 15) again.push({ ...structuredClone(event), rawEvent: { n } });
    if (choice > 12) again.push({ ...structuredClone(event), metadata: { [`k${choice % 3}`]: n } });
    return again;
  });
}

interface Log extends Stream {
  readonly runs: number;
}

/** A thread of one to four runs; `open`: the last may have no end. */
const logs: fc.Arbitrary<Log> = fc
  .array(fc.tuple(streams(50), fc.nat(4), fc.array(fc.nat(18), { minLength: 7, maxLength: 13 })), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => {
    const events = parts.flatMap(([stream, how, choices], n) => {
      const runId = `run${n}`;
      const [first, ...rest] = stream.events;
      const run = [{ ...first!, runId }, ...thicken(rest, choices)];
      if (how === 0) return [...run, failed];
      if (how === 1 && n === parts.length - 1) return run;
      const tracker = new OpenConstructTracker(new Set());
      for (const event of run) tracker.note(event);
      let made = 0;
      const interrupts = [{ id: `i${n}`, reason: "ask" }];
      const terminal = finished(runId, how === 2 ? { type: "interrupt", interrupts } : undefined);
      const ids = (): string => `made-up-${n}-${made++}`;
      const status = "finished" as const;
      return [...run, ...closingEvents(tracker.snapshot(), { status, threadId: THREAD_ID, runId, terminal, ids })];
    });
    return { base: parts[0]![0].base, events, runs: parts.length };
  });

/** With an end, which the last run may lack. */
function ended(events: readonly BaseEvent[]): readonly BaseEvent[] {
  const last = events[events.length - 1]!.type;
  return last === EventType.RUN_FINISHED || last === EventType.RUN_ERROR ? events : [...events, failed];
}

const chunkLists: fc.Arbitrary<BaseEvent[]> = fc
  .array(fc.record({ kind: fc.nat(4), id: fc.nat(1), delta: fc.constantFrom("a", "b", "\ud83d", "\ude00") }), {
    minLength: 1,
    maxLength: 25,
  })
  .map((choices) =>
    choices.map(({ kind, id, delta }): BaseEvent => {
      if (kind === 0) return { type: EventType.TOOL_CALL_CHUNK, toolCallId: `c${id}`, toolCallName: "f", delta };
      if (kind === 1) return { type: EventType.REASONING_MESSAGE_CHUNK, messageId: `r${id}`, delta };
      if (kind === 2) return custom(delta);
      return { type: EventType.TEXT_MESSAGE_CHUNK, messageId: `m${id}`, delta };
    }),
  );

/** The events with their chunk events expanded, as `@ag-ui/client` does. */
function expanded(events: readonly BaseEvent[]): BaseEvent[] {
  const all: BaseEvent[] = [];
  transformChunks()(from(events)).subscribe((event) => all.push(event));
  return all;
}

const KEPT: readonly string[] = Object.values(EventType).filter((type) => /^(CUSTOM|RAW|STEP|SUBAGENT)/.test(type));

describe("compact", () => {
  test("readers end each run with the same messages, state and interrupts, in a valid log (L2, L3, L4)", async () => {
    await fc.assert(
      fc.asyncProperty(logs, async ({ base, events, runs }) => {
        await mustBeValid(events);
        const compacted = await check(events, base);
        expect(runsOf(compacted)).toHaveLength(runs);
        expect(compacted.length).toBeLessThanOrEqual(events.length);
        await mustBeValid([...ended(compacted), ...events]);
        const kept = (of: readonly BaseEvent[]): BaseEvent[] => of.filter(({ type }) => KEPT.includes(type));
        expect(kept(compacted)).toEqual(kept(events));
        const raw = (of: readonly BaseEvent[]): unknown[] => of.flatMap(({ rawEvent }) => rawEvent ?? []);
        expect(raw(compacted)).toEqual(raw(events));
      }),
      times(300),
    );
  });

  test("what follows, and a part of a thread, are as good as before (L2, L3, L4)", async () => {
    await fc.assert(
      fc.asyncProperty(logs, fc.nat(120), fc.nat(3), async ({ base, events, runs }, cut, run) => {
        const at = Math.max(1, cut % events.length);
        const followed = [...compact(events.slice(0, at), base), ...events.slice(at)];
        await mustBeValid(followed);
        expect((await read(followed, base)).at(-1)).toEqual((await read(events, base)).at(-1));

        const later = runsOf(events).slice(run % runs);
        const before = runsOf(events)
          .slice(0, run % runs)
          .flat();
        await check(later.flat(), before.length === 0 ? base : (await read(before, base)).at(-1)!);
      }),
      times(120),
    );
  });

  test("chunk events are what they expand to (L2, L3)", async () => {
    await fc.assert(
      fc.asyncProperty(chunkLists, async (chunks) => {
        const events = [started(), ...chunks, finished()];
        expect(compact(events)).toEqual(await check(expanded(events)));
      }),
      times(200),
    );
    const broken: BaseEvent = { type: EventType.TEXT_MESSAGE_CHUNK, delta: "a" };
    expect(() => compact([started(), broken])).toThrow("messageId");
  });
});

describe("deltas", () => {
  test("those of one message, reasoning or call become one in the place of the first, also when interleaved", async () => {
    const reasoning = { type: EventType.REASONING_MESSAGE_START, messageId: "r", role: "reasoning" };
    const opened = [started(), start("m"), reasoning, callStart("c")];
    const ends = [
      end("m"),
      { type: EventType.REASONING_MESSAGE_END, messageId: "r" },
      { type: EventType.TOOL_CALL_END, toolCallId: "c" },
    ];
    const deltas = many(10, (n) => [text("m", `${n}`), thought("r", `${n}`), custom(`${n}`), args("c", `${n}`)]).flat();
    const digits = "0123456789";
    expect(await check([...opened, ...deltas, ...ends, finished()])).toEqual([
      ...opened,
      text("m", digits),
      thought("r", digits),
      custom("0"),
      args("c", digits),
      ...many(9, (n) => custom(`${n + 1}`)),
      ...ends,
      finished(),
    ]);
  });

  test("timestamp, owner and metadata of merged deltas stay; one with a rawEvent or an unknown field is not merged", async () => {
    const owner = { subagentRunId: "s" };
    const events = [
      started(),
      start("m", owner),
      text("m", "a", { timestamp: 1, metadata: { x: 1, y: { deep: 1 } } }),
      text("m", "b", { timestamp: 2, metadata: { x: 2, z: 3 }, ...owner }),
      text("m", "c", { rawEvent: { id: 7 } }),
      text("m", "d", { timestamp: 3 }),
      text("m", "e", owner),
      text("m", "f", { unheardOf: 1 }),
      end("m"),
      finished(),
    ];
    expect((await check(events)).slice(2, -2)).toEqual([
      text("m", "ab", { timestamp: 1, metadata: { x: 2, y: { deep: 1 }, z: 3 }, ...owner }),
      text("m", "c", { rawEvent: { id: 7 } }),
      text("m", "de", { timestamp: 3, ...owner }),
      text("m", "f", { unheardOf: 1 }),
    ]);
  });

  test("deltas of different owners stay apart", () => {
    const events = [started(), text("m", "a", { subagentRunId: "s" }), text("m", "b", { subagentRunId: "t" })];
    expect(compact(events)).toEqual(events);
  });

  test("the text of a message that RUN_ERROR left open stays before it", async () => {
    const events = [started(), start("m"), text("m", "a"), custom("x"), text("m", "b"), failed, started("2"), failed];
    expect(await check(events)).toEqual([
      started(),
      start("m"),
      text("m", "ab"),
      custom("x"),
      failed,
      started("2"),
      failed,
    ]);
  });

  test("nothing passes a MESSAGES_SNAPSHOT: what follows one in the middle of a text is kept", async () => {
    const history = snapshot([{ id: "m", role: "assistant", content: "A" }]);
    const opened = [started(), start("m"), text("m", "a"), history, text("m", "b")];
    const compacted = await check([...opened, text("m", "c"), end("m"), finished()]);
    expect(compacted).toEqual([...opened.slice(0, -1), text("m", "bc"), end("m"), finished()]);
  });

  test.each<[string, BaseEvent[], Message[]]>([
    ["the message is started again", [end("m"), start("m", { metadata: { x: 2 } })], []],
    ["reasoning is written into the message", [thought("m", "-")], []],
    [
      "a tool result takes the message's id",
      [{ type: EventType.TOOL_CALL_RESULT, messageId: "m", toolCallId: "b", content: "" }],
      [],
    ],
    ["a tool call makes the message", [callStart("c2", { parentMessageId: "m" })], []],
    ["an activity takes the message's place", [activity("m", {})], []],
    [
      "the message gets an encrypted value",
      [{ type: EventType.REASONING_ENCRYPTED_VALUE, subtype: "message", entityId: "m", encryptedValue: "x" }],
      [],
    ],
  ])("none is moved where %s", async (_, between) => {
    const base = { ...NOTHING, messages: [] };
    const opened = [
      started(),
      { type: EventType.REASONING_MESSAGE_START, messageId: "m", role: "reasoning" },
      start("m"),
      snapshot(
        [
          {
            id: "b",
            role: "assistant",
            toolCalls: [{ id: "b", type: "function", function: { name: "f", arguments: "" } }],
          },
        ],
        {
          metadata: { "@ag-ui/client": { authoritativeActivityTypes: null } },
        },
      ),
    ];
    const events = [...opened, text("m", "a", { metadata: { x: 1 } }), ...between, text("m", "b"), failed];
    expect(await check(events, base)).toEqual(events);
  });

  test("arguments do not pass another start of their call", async () => {
    const callEnd = { type: EventType.TOOL_CALL_END, toolCallId: "c" };
    const again = [callEnd, callStart("c", { metadata: { x: 1 } })];
    const events = [started(), callStart("c"), args("c", "a"), ...again, args("c", "b"), failed];
    expect(await check(events)).toEqual(events);
  });

  test("arguments do not pass an activity that takes the place of the message with their call", async () => {
    const events = [started(), callStart("c"), args("c", "a"), activity("c", {}), args("c", "b"), failed];
    const other = [
      started(),
      callStart("c", { parentMessageId: "p" }),
      args("c", "a"),
      activity("p", {}),
      args("c", "b"),
    ];
    expect(await check(events)).toEqual(events);
    expect(await check([...other, failed])).toEqual([...other, failed]);
  });

  test("keys of prototypes are keys like others in metadata", async () => {
    const keys = (json: string): object => ({ metadata: JSON.parse(json) as object });
    const events = [
      started(),
      start("m"),
      text("m", "a", keys('{"__proto__":{"polluted":1}}')),
      text("m", "b", keys('{"constructor":{"prototype":{"polluted":1}}}')),
      end("m"),
      finished(),
    ];
    const merged = compact(events)[2]!;
    expect(JSON.stringify(merged.metadata)).toBe(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    );
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe("state", () => {
  const base = { ...NOTHING, state: { list: [] as unknown[], count: 0 } };

  test("deltas without a snapshot become one snapshot, from the true base (L4)", async () => {
    const events = [started(), ...many(20, append), custom("x"), append(20), finished()];
    expect(await check(events, base)).toEqual([
      started(),
      custom("x"),
      state({ list: many(21, (n) => n), count: 0 }),
      finished(),
    ]);
  });

  test("8,000 list appends become one snapshot", () => {
    const compacted = compact([started(), ...many(8_000, (n) => append({ n })), finished()], base);
    expect(compacted.slice(1, -1)).toEqual([state({ list: many(8_000, (n) => ({ n })), count: 0 })]);
  });

  test("few small deltas on a large state stay as they are, each run its own", async () => {
    const large = { ...base, state: { ...base.state, text: "x".repeat(5_000) } };
    const run = (runId: string): BaseEvent[] => [started(runId), append(1), append(2), finished(runId)];
    const events = [...run("1"), ...run("2")];
    expect(await check(events, large)).toEqual(events);
  });

  test("objects of many keys are judged right, also after most keys are gone", async () => {
    const keys = (count: number): object => Object.fromEntries(many(count, (n) => [`k${n}`, n]));
    const large = { ...base, state: { rows: keys(300) } };
    const tick = (runId: string): BaseEvent[] => [
      started(runId),
      ...many(2, (n) => patch({ op: "add", path: "/rows/k0", value: n })),
      finished(runId),
    ];
    const removals = many(299, (n) => patch({ op: "remove", path: `/rows/k${n + 1}` }));
    const clear = [started("3"), ...removals, finished("3")];
    expect(await check([...tick("1"), ...tick("2"), ...clear, ...tick("4")], large)).toEqual([
      ...tick("1"),
      ...tick("2"),
      started("3"),
      state({ rows: { k0: 1 } }),
      finished("3"),
      started("4"),
      state({ rows: { k0: 1 } }),
      finished("4"),
    ]);
  });

  test("a snapshot says more than the deltas before it and after it", async () => {
    const events = [started(), append(1), state({ list: [7] }, { timestamp: 1 }), append(8), failed];
    expect(await check(events, base)).toEqual([started(), state({ list: [7, 8] }), failed]);
  });

  test("a patch that does not apply is left out, and a single event stays what it is", async () => {
    const refused = patch({ op: "replace", path: "/no/way", value: 1 });
    const events = [started(), refused, append(1), refused, finished()];
    const compacted = await check(events, base);
    expect(compacted).toEqual([started(), append(1), finished()]);
    expect(compacted[1]).toBe(events[2]);
  });

  test("metadata comes together, a common owner and the last time stay, a rawEvent is not merged", async () => {
    const owner = { subagentRunId: "s" };
    const raw = patch({ op: "add", path: "/list/-", value: 3 }, { rawEvent: { id: 7 } });
    const events = [
      started(),
      state({ list: [1] }, { metadata: { x: 1, y: 1 }, timestamp: 1, ...owner }),
      patch({ op: "add", path: "/list/-", value: 2 }, { metadata: { x: 2 }, timestamp: 2, ...owner }),
      raw,
      state({ list: [4] }, owner),
      append(5),
      finished(),
    ];
    expect((await check(events)).slice(1, -1)).toEqual([
      state({ list: [1, 2] }, { metadata: { x: 2, y: 1 }, timestamp: 2, ...owner }),
      raw,
      state({ list: [4, 5] }),
    ]);
  });

  test("keys of prototypes pollute nothing", () => {
    const polluting = JSON.parse('{"list":[],"__proto__":{"polluted":1}}') as object;
    const events = [
      started(),
      state(polluting),
      patch({ op: "add", path: "/__proto__/polluted", value: 1 }),
      patch({ op: "add", path: "/constructor/prototype/polluted", value: 1 }),
      append(1),
      finished(),
    ];
    const compacted = compact(events);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(JSON.stringify(compacted[1]!["snapshot"])).toBe('{"list":[1],"__proto__":{"polluted":1}}');
  });

  test("what is returned does not change when later runs go on with the state", () => {
    const run = (runId: string): BaseEvent[] => [started(runId), ...many(9, append), finished(runId)];
    const compacted = compact([...run("1"), ...run("2")], base);
    expect(compacted[1]).toEqual(state({ list: many(9, (n) => n), count: 0 }));
  });
});

describe("activities", () => {
  const add = (messageId: string, value: number, more: object = {}): BaseEvent =>
    activityPatch(messageId, { op: "add", path: "/list/-", value }, more);

  test("one snapshot takes the place of the first, so that the message keeps its place", async () => {
    const more = { metadata: { x: 1, y: 1 }, timestamp: 1, subagentRunId: "s" };
    const events = [
      started(),
      activity("a", { list: [] }, more),
      start("m"),
      end("m"),
      ...many(9, (n) => add("a", n, { activityType: "search" })),
      activity("a", { ignored: 1 }, { replace: false, metadata: { x: 2 } }),
      finished(),
    ];
    expect(await check(events)).toEqual([
      started(),
      activity("a", { list: many(9, (n) => n) }, { ...more, activityType: "search", metadata: { x: 2, y: 1 } }),
      start("m"),
      end("m"),
      finished(),
    ]);
  });

  test("one that replace: false begins, is begun by the snapshot", async () => {
    const events = [started(), activity("a", { list: [] }, { replace: false }), ...many(9, (n) => add("a", n)), failed];
    expect(await check(events)).toEqual([started(), activity("a", { list: many(9, (n) => n) }), failed]);
  });

  test("few small deltas on a large content stay as they are", async () => {
    const events = [
      started(),
      activity("a", { list: [], text: "x".repeat(500) }),
      snapshot([user("u")]),
      add("a", 1),
      add("a", 2),
      failed,
    ];
    expect(await check(events)).toEqual(events);
  });

  test("deltas on an activity of an earlier run stay: whose it is, the run has not said", async () => {
    const message = { id: "a", role: "activity", activityType: "plan", content: { list: [] } } as const;
    const deltas = many(3, (n) => add("a", n));
    const later = [activity("b", {}), add("a", 3, { subagentRunId: "s" })];
    const events = [started(), ...deltas, snapshot([user("u")]), ...later, failed];
    expect(await check(events, { ...NOTHING, messages: [message] })).toEqual(events);
    const two = [started("1"), activity("a", { list: [] }), failed, started("2"), ...deltas, failed];
    expect(await check(two)).toEqual(two);
    const ignored = activity("a", {}, { replace: false, subagentRunId: "s" });
    const contradicted = [started(), ignored, ...deltas, add("a", 3, { subagentRunId: "s" }), failed];
    expect(await check(contradicted, { ...NOTHING, messages: [message] })).toEqual(contradicted);
  });

  test("where a MESSAGES_SNAPSHOT or the input has said whose it is, they become a snapshot", async () => {
    const message = { id: "a", role: "activity", activityType: "plan", content: { list: [] }, subagentRunId: "s" };
    const deltas = many(9, (n) => add("a", n));
    const merged = activity("a", { list: many(9, (n) => n) }, { subagentRunId: "s" });
    for (const first of [[started(), snapshot([message])], [started("run", [message])]]) {
      expect(await check([...first, ...deltas, failed])).toEqual([...first, merged, failed]);
    }
  });

  test("an id that another message holds, and a content that is no object, are left alone", async () => {
    const taken = [
      started(),
      add("u", 1),
      activity("u", {}, { replace: false }),
      activity("u", { x: 1 }),
      add("u", 2),
      failed,
    ];
    expect(await check(taken, { ...NOTHING, messages: [user("u")] })).toEqual(taken);
    const list = [started(), activity("a", {}), activityPatch("a", { op: "replace", path: "", value: [1] }), failed];
    expect(await check(list)).toEqual(list);
  });

  test("what passes none: a rawEvent, text of the same id, a MESSAGES_SNAPSHOT", async () => {
    for (const between of [
      [add("a", 1, { rawEvent: { id: 7 } })],
      [start("a"), text("a", "x"), end("a")],
      [snapshot([{ id: "a", role: "user", content: "" }])],
    ]) {
      const events = [started(), activity("a", { list: [] }), ...between, activity("a", { list: [] }), failed];
      expect(await check(events)).toEqual(events);
    }
  });
});

describe("repeats", () => {
  test("a run that is open is not started again, nor is one ended twice", () => {
    const step = { type: EventType.STEP_STARTED, stepName: "p" };
    const stepEnd = { type: EventType.STEP_FINISHED, stepName: "p" };
    const input = [user("u")];
    const ends = [finished(), finished(), failed];
    expect(compact([started("run", input), started("run", input), step, step, stepEnd, stepEnd, ...ends])).toEqual([
      started("run", input),
      step,
      stepEnd,
      finished(),
    ]);
  });

  test("a repeat that says something new stays", () => {
    const interrupts = [{ id: "i", reason: "ask" }];
    const events = [
      started(),
      started("run", [user("u")]),
      finished("run", { type: "interrupt", interrupts }),
      finished(),
      started(),
      failed,
    ];
    expect(compact(events)).toEqual(events);
    const late = [started(), failed, finished()];
    expect(compact(late, { ...NOTHING, interrupts })).toEqual(late);
  });

  test("nothing passes the end of a run, or the start of another, where the log lacks one of them", () => {
    const content = [start("m"), text("m", "a"), state({}), snapshot([])];
    for (const between of [failed, started("2")]) {
      const events = [started("1"), ...content, between, ...content.slice(1).toReversed()];
      expect(compact(events)).toEqual(events);
    }
    const twice = [started("1"), snapshot([]), started("2"), snapshot([])];
    expect(compact(twice)).toEqual(twice);
  });

  test("a run's input is without the messages that a reader holds", async () => {
    const events = [
      started("1", [user("u"), user("v"), user("v", { content: "again" })]),
      finished("1"),
      started("2", [user("u", { content: "edited" }), user("v"), user("w")]),
      finished("2"),
    ];
    expect(await check(events, { ...NOTHING, messages: [user("u")] })).toEqual([
      started("1", [user("v")]),
      finished("1"),
      started("2", [user("w")]),
      finished("2"),
    ]);
  });

  test("messages with an owner stay in the input: what has no owner in the run, has it from there", async () => {
    const messages = [{ id: "m", role: "assistant", content: "", subagentRunId: "s" }] as const;
    const events = [
      started("1", messages),
      start("m"),
      text("m", "a", { subagentRunId: "s" }),
      end("m"),
      finished("1"),
    ];
    expect(await check(events, { ...NOTHING, messages: [...messages] })).toEqual(events);
  });

  test("a MESSAGES_SNAPSHOT goes where the next one has the same messages and nothing is between them", async () => {
    const of = (content: string, more: object = {}): BaseEvent =>
      snapshot([user("u"), user("v", { content, ...more })]);
    const holder = (id: string): object => ({
      ...user("m"),
      role: "assistant",
      toolCalls: [{ id, type: "function", function: { name: "f", arguments: "" } }],
    });
    const beside = [custom("x"), state({})];
    expect(await check([started(), of("a"), ...beside, of("b"), failed])).toEqual([
      started(),
      ...beside,
      of("b"),
      failed,
    ]);
    for (const apart of [
      [of("a"), start("m"), of("b")],
      [start("m"), of("a"), text("m", "x"), of("b")],
      [of("a"), activity("x", {}), of("b")],
      [of("a"), of("b", { subagentRunId: "s" })],
      [of("a"), of("b", { role: "developer" })],
      [of("a"), snapshot([user("v"), user("u")])],
      [of("a"), snapshot([user("u")])],
      [snapshot([user("u"), user("u", { content: "2" })]), snapshot([user("u"), user("u", { content: "2" })])],
      [snapshot([holder("c")]), snapshot([holder("d")])],
      [of("a"), { ...of("b"), metadata: { "@ag-ui/client": { authoritativeActivityTypes: null } } }],
    ]) {
      const events = [started(), ...apart, failed];
      expect(await check(events)).toEqual(events);
    }
  });
});
