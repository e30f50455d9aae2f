import { EventType } from "@ag-ui/core";
import type { BaseEvent, Message } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { expectLinear } from "../linear.js";
import { times } from "../property.js";
import { compact } from "../../../src/run/compact-events.js";
import { Fold } from "../../../src/run/fold.js";
import { MessageList } from "../../../src/run/message-list.js";
import { ChunkBuilder } from "../../../src/run/pack.js";
import { referenceFold } from "./reference.js";
import { RUN_ID, streams, THREAD_ID } from "./streams.js";

const NOTHING = { messages: [], state: {}, interrupts: [] };

function fold(base: ConstructorParameters<typeof Fold>[0], events: readonly BaseEvent[]): Fold {
  const all = new Fold(base);
  for (const event of events) all.apply(event);
  return all;
}

const content = ({ messages, state, interrupts }: Fold) => ({ messages, state, interrupts });

const terminals: fc.Arbitrary<BaseEvent> = fc.constantFrom<BaseEvent>(
  { type: EventType.RUN_ERROR, message: "no" },
  { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID },
  { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID, outcome: { type: "cancelled" } },
  {
    type: EventType.RUN_FINISHED,
    threadId: THREAD_ID,
    runId: RUN_ID,
    outcome: { type: "interrupt", interrupts: [{ id: "i", reason: "ask", subagentRunId: null }] },
  },
);

const call = (toolCallId: string, more: object = {}): BaseEvent => ({
  type: EventType.TOOL_CALL_START,
  toolCallId,
  toolCallName: "f",
  ...more,
});

const activity = (messageId: string, more: object = {}): BaseEvent => ({
  type: EventType.ACTIVITY_SNAPSHOT,
  messageId,
  activityType: "plan",
  content: {},
  ...more,
});

const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

const stateDelta = (op: object): BaseEvent => ({ type: EventType.STATE_DELTA, delta: [op] });

describe("fold", () => {
  test("it rebuilds what @ag-ui/client rebuilds, and writes to nothing that it was given (L2)", async () => {
    await fc.assert(
      fc.asyncProperty(streams(60), terminals, async ({ base, events }, terminal) => {
        const all = [...events, terminal];
        const given = structuredClone({ base, all });
        expect(content(fold(base, all))).toEqual(await referenceFold(base, all));
        expect({ base, all }).toEqual(given);
      }),
      times(600),
    );
  });

  test("it makes the same of packed entries (L2)", () => {
    fc.assert(
      fc.property(streams(60), ({ base, events }) => {
        const builder = new ChunkBuilder({ threadId: "t", runIndex: 0, epoch: 1 });
        for (const event of events) builder.add(event, 0);
        const packed = new Fold(base);
        for (const entry of builder.take()!.entries) packed.apply(entry.event);
        expect(content(packed)).toEqual(content(fold(base, events)));
      }),
      times(300),
    );
  });

  test("untouched messages are those of the base, and none of the base goes unless it says so", () => {
    fc.assert(
      fc.property(streams(60), ({ base, events }) => {
        const all = fold(base, events);
        const before = new Map(base.messages.map((message) => [message.id, message]));
        for (const message of all.messages) {
          if (!all.list.touched.has(message.id)) expect(message).toBe(before.get(message.id));
        }
        const after = new Set(all.messages.map(({ id }) => id));
        for (const id of all.list.touched) expect(after).toContain(id);
        if (all.list.rewritten) return;
        const kept = all.messages.filter(({ id }) => before.has(id)).map(({ id }) => id);
        expect(kept).toEqual([...before.keys()]);
      }),
      times(300),
    );
  });

  test.each([
    ["a call takes the id of a message", [call("u", { subagentRunId: "s" }), call("u2", { parentMessageId: "u" })]],
    [
      "a call's parent is of another owner",
      [call("c", { parentMessageId: "p", subagentRunId: "s" }), call("d", { parentMessageId: "p" })],
    ],
    [
      "an activity changes its owner",
      [activity("a", { subagentRunId: "s" }), activity("a"), activity("b"), activity("b", { subagentRunId: "s" })],
    ],
    [
      "a merged activity keeps its owner",
      [activity("a", { subagentRunId: "s" }), activity("a", { replace: false, content: { x: 1 } })],
    ],
    [
      "messages have a null owner",
      [{ type: EventType.MESSAGES_SNAPSHOT, messages: [{ id: "n", role: "user", content: "", subagentRunId: null }] }],
    ],
    ["a delta has no message", [{ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "none", delta: "x" }]],
    ["text follows parts", [{ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "parts", delta: "x" }]],
    [
      "a state is null",
      [
        { type: EventType.STATE_SNAPSHOT, snapshot: null },
        { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "", value: [1] }] },
      ],
    ],
  ] as [string, BaseEvent[]][])("it is the reference's where %s", async (_, events) => {
    const messages: Message[] = [
      { id: "u", role: "user", content: "?" },
      { id: "parts", role: "user", content: [{ type: "text", text: "?" }] },
    ];
    const base = { ...NOTHING, messages };
    expect(content(fold(base, events))).toEqual(await referenceFold(base, events));
  });

  test("a result stands behind its call, also in the middle of the base, which is no rewriting", () => {
    const toolCalls = [{ id: "c", type: "function" as const, function: { name: "f", arguments: "{}" } }];
    const messages: Message[] = [
      { id: "a", role: "assistant", toolCalls },
      { id: "u", role: "user", content: "?" },
    ];
    const all = fold({ ...NOTHING, messages }, [
      { type: EventType.TOOL_CALL_RESULT, messageId: "r", toolCallId: "c", content: "1" },
    ]);
    expect(all.messages.map(({ id }) => id)).toEqual(["a", "r", "u"]);
    expect([...all.list.touched]).toEqual(["r"]);
    expect(all.list.rewritten).toBe(false);
  });

  test("a snapshot that repeats the base touches nothing (L15)", () => {
    const messages: Message[] = [{ id: "u", role: "user", content: "?" }];
    const all = fold({ ...NOTHING, messages }, [
      { type: EventType.MESSAGES_SNAPSHOT, messages: structuredClone(messages) },
    ]);
    expect([all.list.touched.size, all.list.rewritten]).toEqual([0, false]);
  });

  test("a patch that no client may be handed changes nothing, not even by its metadata, and is left out when compacted (L19)", () => {
    const poison = [{ op: "move", from: "/toString", path: "/x" }];
    const bomb = Array.from({ length: 26 }, (_, n) => ({ op: "copy", from: "", path: `/${n}` }));
    const events: BaseEvent[] = [activity("a", { content: { n: 1 } }), { type: EventType.STATE_DELTA, delta: poison }];
    for (const patch of [poison, bomb]) {
      events.push(
        { type: EventType.STATE_DELTA, delta: patch, rawEvent: {} },
        { type: EventType.ACTIVITY_DELTA, messageId: "a", activityType: "other", patch, metadata: { of: "it" } },
      );
    }
    const all = fold({ ...NOTHING, state: { s: 1 } }, events);
    expect(content(all)).toEqual({
      messages: [{ id: "a", role: "activity", activityType: "plan", content: { n: 1 } }],
      state: { s: 1 },
      interrupts: [],
    });
    expect(compact(events, { ...NOTHING, state: { s: 1 } })).toEqual(events.slice(0, 1));
  });

  test("a chunk event is refused", () => {
    expect(() => fold(NOTHING, [{ type: EventType.TEXT_MESSAGE_CHUNK, messageId: "m", delta: "a" }])).toThrow(
      TypeError,
    );
  });

  test("the versions grow with what they are versions of", () => {
    const all = fold(NOTHING, []);
    const step = (event: BaseEvent): [boolean, boolean] => {
      const before = [all.list.version, all.stateVersion];
      all.apply(event);
      return [all.list.version > before[0]!, all.stateVersion > before[1]!];
    };
    expect(step({ type: EventType.TEXT_MESSAGE_START, messageId: "m" })).toEqual([true, false]);
    expect(step({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "a" })).toEqual([true, false]);
    expect(step({ type: EventType.STATE_DELTA, delta: [{ op: "add", path: "/a", value: 1 }] })).toEqual([false, true]);
    expect(step({ type: EventType.STATE_DELTA, delta: [{ op: "remove", path: "/b" }] })).toEqual([false, false]);
  });
});

describe("cost (L17)", () => {
  test("100,000 deltas", () => {
    expectLinear(12_500, (count) => {
      const events: BaseEvent[] = [
        { type: EventType.TEXT_MESSAGE_START, messageId: "m" },
        ...many(count, () => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "word " })),
      ];
      return () => expect((fold(NOTHING, events).messages[0]!.content as string).length).toBe(5 * count);
    });
  });

  test("8,000 list appends, 10,000 small deltas and 2,000 that fail on a state of 200 KB", () => {
    expectLinear(1_000, (count) => {
      const state = { list: [], rows: many(2_000, (n) => ({ n, text: "x".repeat(80) })), count: 0 };
      const events = [
        ...many(count, (n) => stateDelta({ op: "add", path: "/list/-", value: { n } })),
        ...many((5 * count) / 4, (n) => stateDelta({ op: "replace", path: `/rows/${n % 2_000}/n`, value: n })),
        ...many(count / 4, () => stateDelta({ op: "test", path: "/count", value: 1 })),
      ];
      return () => {
        const after = fold({ ...NOTHING, state }, events).state as { list: unknown[] };
        expect(after.list).toHaveLength(count);
      };
    });
  });

  test("8,000 list appends to an activity", () => {
    expectLinear(1_000, (count) => {
      const events = [
        activity("a", { content: { list: [] } }),
        ...many(count, (n) => ({
          type: EventType.ACTIVITY_DELTA,
          messageId: "a",
          activityType: "plan",
          patch: [{ op: "add", path: "/list/-", value: { n } }],
        })),
      ];
      return () => expect(fold(NOTHING, events).messages).toMatchObject([{ content: { list: { length: count } } }]);
    });
  });

  test("10,000 unique metadata keys on one message, and 5,000 tool calls with results in one message", () => {
    expectLinear(1_250, (count) => {
      const events: BaseEvent[] = [
        { type: EventType.TEXT_MESSAGE_START, messageId: "m" },
        ...many(count, (n) => ({
          type: EventType.TEXT_MESSAGE_CONTENT,
          messageId: "m",
          delta: "a",
          metadata: { [`k${n}`]: n },
        })),
      ];
      for (let n = 0; n < count / 2; n++) {
        events.push({ type: EventType.TOOL_CALL_START, toolCallId: `c${n}`, toolCallName: "f", parentMessageId: "m" });
        events.push({ type: EventType.TOOL_CALL_ARGS, toolCallId: `c${n}`, delta: "{}" });
      }
      return () => void fold(NOTHING, events);
    });
  });

  /** @returns how often the roles of these messages were read: whoever walks them reads them */
  function countReads(messages: readonly Message[]): () => number {
    let reads = 0;
    for (const message of messages) {
      const { role } = message;
      const get = (): string => {
        reads++;
        return role;
      };
      Object.defineProperty(message, "role", { get, enumerable: true });
    }
    return () => reads;
  }

  test("a message that many events change is copied by the first of them, and again once it was handed out", () => {
    const open = { id: "c", type: "function" as const, function: { name: "f", arguments: "" } };
    const base: Message = { id: "a", role: "assistant", content: "", toolCalls: [open] };
    const list = new MessageList([base]);
    const written = list.write(base);
    expect(written).not.toBe(base);
    expect(list.write(written)).toBe(written);
    expect(list.writableCall("c")).toBe(list.writableCall("c"));
    expect(list.get("a")).toBe(written);
    const [shared] = list.share();
    expect(list.write(shared!)).not.toBe(shared);
  });

  const COUNT = 1_000;

  test.each([
    ["at the end of the list", [], (n: number) => `new${n}`],
    ["in the middle of the list", [{ id: "u", role: "user", content: "?" }], (n: number) => `new${n}`],
    ["of one id in the middle of the list", [{ id: "u", role: "user", content: "?" }], () => "new"],
  ] as const)("results %s do not walk those before them", (_what, behind, idOf) => {
    const toolCalls = many(COUNT, (n) => ({
      id: `c${n}`,
      type: "function" as const,
      function: { name: "f", arguments: "" },
    }));
    const before = many(COUNT, (n): Message => ({ id: `r${n}`, role: "tool", toolCallId: `c${n}`, content: "1" }));
    const reads = countReads(before);
    const all = fold(
      { ...NOTHING, messages: [{ id: "a", role: "assistant", toolCalls }, ...before, ...behind] },
      many(COUNT, (n) => ({ type: EventType.TOOL_CALL_RESULT, messageId: idOf(n), toolCallId: `c${n}`, content: "2" })),
    );
    expect(all.messages.map(({ id }) => id)).toEqual([
      "a",
      ...before.map(({ id }) => id),
      ...many(COUNT, idOf),
      ...behind.map(({ id }) => id),
    ]);
    expect(reads()).toBeLessThan(10 * COUNT);
  });

  test.each([
    ["empty", []],
    ["that say the same", [{ id: "u", role: "user", content: "?" }]],
  ] as const)("snapshots %s do not walk the reasoning that they leave alone", (_what, messages) => {
    const before = many(COUNT, (n): Message => ({ id: `t${n}`, role: "reasoning", content: "" }));
    const reads = countReads(before);
    const events = many(COUNT, (n): BaseEvent[] => [
      { type: EventType.REASONING_MESSAGE_START, messageId: `new${n}`, role: "reasoning" },
      { type: EventType.MESSAGES_SNAPSHOT, messages: [...messages] },
    ]);
    expect(fold({ ...NOTHING, messages: before }, events.flat()).messages).toHaveLength(2 * COUNT + messages.length);
    expect(reads()).toBeLessThan(10 * COUNT);
  });
});
