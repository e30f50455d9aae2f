import type { BaseEvent, Message } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { describe, expect, test } from "vitest";
import { compact } from "../../../src/run/compact-events.js";
import {
  NOTHING,
  activity,
  args,
  callStart,
  check,
  custom,
  end,
  failed,
  finished,
  many,
  snapshot,
  start,
  started,
  state,
  text,
  thought,
  user,
} from "./compact-kit.js";

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

test.each<[string, unknown, unknown?]>([
  ["events", undefined],
  ["events", "text"],
  ["events", 5],
  ["events", {}],
  ["events[0].type", [null]],
  ["events[1].type", [{ type: "CUSTOM" }, "text"]],
  ["events[0].type", [{ type: 5 }]],
  ["base", [], null],
  ["base", [], "text"],
  ["base.messages", [], {}],
])("what are no %s is refused, and named (%#)", (field, events, base) => {
  const refused = expect.objectContaining({ code: "invalid-input", details: { field } }) as Error;
  expect(() => compact(events as never, base as never)).toThrow(refused);
});
