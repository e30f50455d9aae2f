import { EventType, type AgentSubscriber, type BaseEvent, type Message, type ToolCall } from "@ag-ui/client";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { equalJson } from "../../../src/run/json.js";
import { times } from "../property.js";
import { user } from "../runner/kit.js";
import { RUN_ID, streams, THREAD_ID } from "../run/streams.js";
import { Ours, packed } from "./apply-kit.js";

beforeEach(() => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});

afterEach(() => vi.restoreAllMocks());

const delta = (text: string, messageId = "m"): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_CONTENT,
  messageId,
  delta: text,
});

/** A run that writes one message. */
const answer = (deltas: readonly string[], messageId = "m"): BaseEvent[] => [
  { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
  { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
  ...deltas.map((text) => delta(text, messageId)),
  { type: EventType.TEXT_MESSAGE_END, messageId },
  { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID },
];

const single = (events: readonly BaseEvent[]) => events.map((event) => ({ event }));

const history = (count: number): Message[] => Array.from({ length: count }, (_, n) => user(`h${n}`, "x".repeat(500)));

const START = { messages: [], state: {} };

/** What an agent showed, one list for each change. */
function shownBy(agent: LocalAgent): Message[][] {
  const shown: Message[][] = [];
  agent.subscribe({ onMessagesChanged: ({ messages }) => void shown.push(messages as Message[]) });
  return shown;
}

describe("what was handed out", () => {
  test("never changes, and what did not change is the same object", async () => {
    await fc.assert(
      fc.asyncProperty(streams(30), async ({ base, events }) => {
        const ends = [{ type: EventType.RUN_ERROR, message: "no" } as BaseEvent];
        const agent = new Ours(base, single([...events, ...ends]));
        const handed: unknown[] = [];
        const copies: unknown[] = [];
        const keep = (given: { messages: unknown; state: unknown; event?: unknown }): void => {
          const kept = { messages: given.messages, state: given.state as unknown, event: given.event };
          handed.push(kept);
          copies.push(structuredClone(kept));
        };
        agent.subscribe({ onEvent: keep, onMessagesChanged: keep, onStateChanged: keep, onNewMessage: keep });
        const shown = shownBy(agent);
        await agent.runAgent({ runId: RUN_ID });
        expect(handed).toEqual(copies);
        shown.slice(1).forEach((messages, n) => {
          const before = shown[n]!;
          expect(messages).not.toBe(before);
          // The message that an event is about may come to say what it said before.
          const anew = messages.filter((message, at) => {
            const { id } = message;
            const held = before.find((one) => one.id === id);
            const isFirst = messages.findIndex((one) => one.id === id) === at;
            return isFirst && held !== undefined && held !== message && equalJson(held, message);
          });
          expect(anew.length).toBeLessThanOrEqual(1);
        });
      }),
      times(60),
    );
  });

  test("stays the same object where a snapshot says the same again", async () => {
    const before = history(3);
    const events: BaseEvent[] = [
      { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
      {
        type: EventType.MESSAGES_SNAPSHOT,
        messages: [...structuredClone(before).with(1, user("h1", "edited")), user("new")],
      },
      { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID },
    ];
    const agent = new Ours({ messages: before, state: {} }, single(events));
    const [first, , third] = agent.messages;
    await agent.runAgent({ runId: RUN_ID });
    expect(agent.messages.map(({ content }) => content)).toEqual([
      first!.content,
      "edited",
      third!.content,
      user("new").content,
    ]);
    expect(agent.messages[0]).toBe(first);
    expect(agent.messages[2]).toBe(third);
  });

  test("keeps the other tool calls of a message that one of them grows in", async () => {
    const call = (toolCallId: string): BaseEvent[] => [
      { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: "ask", parentMessageId: "m" },
      { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "{" },
      { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "}" },
      { type: EventType.TOOL_CALL_END, toolCallId },
    ];
    const events = [...answer(["a"]).slice(0, -1), ...call("c1"), ...call("c2"), ...answer([]).slice(-1)];
    const agent = new Ours(START, single(events));
    const shown = shownBy(agent);
    await agent.runAgent({ runId: RUN_ID });
    const calls = shown.map((messages) => (messages.at(-1) as { toolCalls?: ToolCall[] }).toolCalls ?? []);
    const [third, second, first] = calls.slice(-3).toReversed();
    expect([first, second, third].map((one) => one!.map((it) => it.function.arguments))).toEqual([
      ["{}", ""],
      ["{}", "{"],
      ["{}", "{}"],
    ]);
    expect(third![0]).toBe(first![0]);
  });

  test("may be written to by a hook without harm to what comes", async () => {
    const agent = new Ours({ messages: history(2), state: { n: 0 } }, single(answer(["a", "b", "c"])));
    const vandal: AgentSubscriber = {
      onTextMessageContentEvent: ({ messages }) => {
        (messages as Message[]).length = 0;
        return undefined;
      },
      onMessagesChanged: ({ messages }) => {
        messages.forEach((message) => ((message as Message).content = "spoilt"));
        (messages as Message[]).reverse();
      },
    };
    agent.subscribe(vandal);
    await agent.runAgent({ runId: RUN_ID });
    expect(agent.messages.map(({ id }) => id).toSorted()).toEqual(["h0", "h1", "m"]);
  });

  test("an own array: what is pushed to it stays behind what comes", async () => {
    const agent = new Ours(START, single(answer(["a", "b"])));
    agent.subscribe({
      onTextMessageStartEvent: () => void agent.messages.push(user("meanwhile")),
    });
    await agent.runAgent({ runId: RUN_ID });
    expect(agent.messages).toEqual([{ id: "m", role: "assistant", content: "ab" }, user("meanwhile")]);
  });
});

describe("cost (L17)", () => {
  /** How many objects of each list are not those of the list before. */
  const copied = (shown: readonly (readonly Message[])[]): number =>
    shown
      .slice(1)
      .reduce((sum, messages, n) => sum + messages.filter((message, at) => message !== shown[n]![at]).length, 0);

  test.each([
    ["each delta", (events: BaseEvent[]) => single(events), 1_002],
    ["a joined delta", packed, 3],
  ])("%s copies one message, whatever is before it, and clones nothing", async (_, entriesOf, changes) => {
    const deltas = Array.from({ length: 1_000 }, () => "word ");
    const agent = new Ours({ messages: history(200), state: { rows: history(200) } }, entriesOf(answer(deltas)));
    const shown: Message[][] = [];
    const clones = vi.spyOn(globalThis, "structuredClone");
    let during = 0;
    agent.subscribe({
      onRunStartedEvent: () => void clones.mockClear(),
      onRunFinishedEvent: () => void (during = clones.mock.calls.length),
      onMessagesChanged: ({ messages }) => void shown.push(messages as Message[]),
    });
    await agent.runAgent({ runId: RUN_ID });
    expect(agent.messages.at(-1)!.content).toBe("word ".repeat(1_000));
    expect(shown).toHaveLength(changes - 1);
    expect(copied(shown)).toBe(changes - 2);
    expect(during).toBe(0);
  });

  test("a state delta copies what is on its way", async () => {
    const rows = Array.from({ length: 100 }, (_, n) => ({ n }));
    const events: BaseEvent[] = [
      { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
      { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "/rows/7/n", value: -1 }] },
      { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "/rows/8/n", value: -2 }] },
      { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID },
    ];
    const agent = new Ours({ messages: [], state: { rows, other: { deep: {} } } }, single(events));
    const states: { rows: unknown[]; other: unknown }[] = [];
    agent.subscribe({ onStateChanged: ({ state }) => void states.push(state as (typeof states)[number]) });
    await agent.runAgent({ runId: RUN_ID });
    const [first, second] = states;
    expect(second!.other).toBe(first!.other);
    expect(second!.rows.filter((row, n) => row !== first!.rows[n])).toEqual([{ n: -2 }]);
    expect(first!.rows[8]).toEqual({ n: 8 });
  });
});
