import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attemptStart, BreakFinder, type AttemptStart } from "../../../src/run/attempt-input.js";
import { closingEvents } from "../../../src/run/finalize.js";
import { Fold } from "../../../src/run/fold.js";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import { times } from "../property.js";

const PAGE_TOOLS = new Set(["page"]);
const question: Message = { id: "u", role: "user", content: "?" };

interface Call {
  readonly name: "search" | "pay" | "page";
  /** How far it got; `done`: with a result. */
  readonly answered: boolean;
}
interface Step {
  readonly reasoning: boolean;
  readonly text: boolean;
  readonly calls: readonly Call[];
}

const step: fc.Arbitrary<Step> = fc.record({
  reasoning: fc.boolean(),
  text: fc.boolean(),
  calls: fc.array(fc.record({ name: fc.constantFrom("search", "pay", "page"), answered: fc.boolean() }), {
    maxLength: 3,
  }),
});

/** The events of a run of several steps, as agents with tools emit them. */
function eventsOf(steps: readonly Step[]): BaseEvent[] {
  return steps.flatMap(({ reasoning, text, calls }, n): BaseEvent[] => [
    { type: EventType.STEP_STARTED, stepName: `step ${n}` },
    ...(reasoning
      ? [
          { type: EventType.REASONING_START, messageId: `r${n}` },
          { type: EventType.REASONING_MESSAGE_START, messageId: `r${n}`, role: "reasoning" },
          { type: EventType.REASONING_MESSAGE_CONTENT, messageId: `r${n}`, delta: "hm" },
          { type: EventType.REASONING_MESSAGE_END, messageId: `r${n}` },
          { type: EventType.REASONING_END, messageId: `r${n}` },
        ]
      : []),
    ...(text
      ? [
          { type: EventType.TEXT_MESSAGE_START, messageId: `a${n}`, role: "assistant" },
          { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `a${n}`, delta: "so " },
          { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `a${n}`, delta: "far" },
          { type: EventType.TEXT_MESSAGE_END, messageId: `a${n}` },
        ]
      : []),
    ...calls.flatMap(({ name }, at): BaseEvent[] => [
      {
        type: EventType.TOOL_CALL_START,
        toolCallId: `c${n}.${at}`,
        toolCallName: name,
        ...(text && { parentMessageId: `a${n}` }),
      },
      { type: EventType.TOOL_CALL_ARGS, toolCallId: `c${n}.${at}`, delta: "{}" },
      { type: EventType.TOOL_CALL_END, toolCallId: `c${n}.${at}` },
    ]),
    ...calls.flatMap(({ answered }, at): BaseEvent[] =>
      answered
        ? [{ type: EventType.TOOL_CALL_RESULT, messageId: `t${n}.${at}`, toolCallId: `c${n}.${at}`, content: "found" }]
        : [],
    ),
    { type: EventType.STEP_FINISHED, stepName: `step ${n}` },
  ]);
}

/** The thread after a run broke behind these events, and what its attempt starts from. */
function broken(given: readonly BaseEvent[], continues: boolean, status: "broken" | "errored" = "broken") {
  const tracker = new OpenConstructTracker(PAGE_TOOLS);
  for (const event of given) tracker.note(event);
  let made = 0;
  const closing = closingEvents(tracker.snapshot(), {
    status,
    threadId: "t",
    runId: "r",
    ids: () => `made${made++}`,
    ...(status === "errored" && { code: "INCOMPLETE_STREAM" }),
  });
  const fold = new Fold({ messages: [question], state: {}, interrupts: [] });
  const finder = new BreakFinder();
  for (const event of given) finder.note(event, false);
  for (const event of closing) finder.note(event, true);
  for (const event of [...given, ...closing]) fold.apply(event);
  const { messages } = fold;
  const isOwn = (id: string): boolean => id !== question.id;
  const start = attemptStart({ messages, broke: finder.point, frontEndTools: PAGE_TOOLS, continues, isOwn });
  return { messages, start };
}

const callsOf = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : [])).map(({ id }) => id);
const resultsOf = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
const typesOf = (given: readonly BaseEvent[], type: EventType): string[] =>
  given.filter((event) => event.type === type).map((event) => String(event["toolCallId"]));

/** What holds of every attempt, whatever its agent. */
function mustBeSound(given: readonly BaseEvent[], { messages, started }: AttemptStart): void {
  const ids = messages.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids[0]).toBe("u");
  // Results that were given are there with their calls, and no others.
  expect(resultsOf(messages).sort()).toEqual(typesOf(given, EventType.TOOL_CALL_RESULT).sort());
  const calls = callsOf(messages);
  for (const answered of resultsOf(messages)) expect(calls).toContain(answered);
  // No call without arguments' end.
  const ended = typesOf(given, EventType.TOOL_CALL_END);
  for (const call of calls) expect(ended).toContain(call);
  const answered = new Set(typesOf(given, EventType.TOOL_CALL_RESULT));
  const names = new Map(
    given.map((event) => [event["toolCallId"], event["toolCallName"]] as const).filter(([, name]) => name),
  );
  const open = ended.filter((call) => !answered.has(call) && names.get(call) !== "page");
  expect(started.map(({ toolCallId }) => toolCallId).sort()).toEqual(open.sort());
  for (const message of messages) {
    if (message.role === "assistant") expect(message.content || message.toolCalls?.length).toBeTruthy();
  }
}

describe("every prefix of a run with tools (issue 16, L2, L20)", () => {
  const cut = fc.tuple(fc.array(step, { minLength: 1, maxLength: 3 }), fc.double({ min: 0, max: 1, noNaN: true }));
  const prefix = ([steps, share]: [Step[], number]): BaseEvent[] => {
    const all = eventsOf(steps);
    return all.slice(0, Math.round(share * all.length));
  };

  test("an agent that continues is given all that was settled, its open calls, and the text that was cut off", () => {
    fc.assert(
      fc.property(cut, fc.constantFrom("broken", "errored"), (at, status) => {
        const given = prefix(at);
        const { start } = broken(given, true, status);
        mustBeSound(given, start);
        expect(callsOf(start.messages).sort()).toEqual(typesOf(given, EventType.TOOL_CALL_END).sort());
        const last = given.findLast(({ type }) => type === EventType.TEXT_MESSAGE_CONTENT);
        if (given.at(-1) === last && last !== undefined) {
          expect(start.messages.at(-1)).toMatchObject({ id: last["messageId"], role: "assistant" });
        }
      }),
      times(300),
    );
  });

  test("another one is asked again: each call has its result, and nothing is said behind the last one", () => {
    fc.assert(
      fc.property(cut, fc.constantFrom("broken", "errored"), (at, status) => {
        const given = prefix(at);
        const { start } = broken(given, false, status);
        mustBeSound(given, start);
        expect(callsOf(start.messages).sort()).toEqual(resultsOf(start.messages).sort());
        expect(["user", "tool"]).toContain(start.messages.at(-1)?.role);
      }),
      times(300),
    );
  });
});

test("what the thread said before the broken run stays, also for an agent that is asked again", () => {
  const before: Message[] = [question, { id: "old", role: "assistant", content: "an answer" }];
  const point = new BreakFinder().point;
  const said: Message[] = [...before, { id: "new", role: "assistant", content: "cut" }];
  const source = { messages: said, broke: point, frontEndTools: PAGE_TOOLS, continues: false };
  expect(attemptStart({ ...source, isOwn: (id) => id === "new" }).messages).toEqual(before);
});

test("a result that looks like a made-up one is kept: it came before the end of the run", () => {
  const given: BaseEvent[] = [
    { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "search" },
    { type: EventType.TOOL_CALL_END, toolCallId: "c" },
    {
      type: EventType.TOOL_CALL_RESULT,
      messageId: "t",
      toolCallId: "c",
      content: JSON.stringify({ status: "broken", message: "The host of the run ended" }),
    },
  ];
  expect(resultsOf(broken(given, true).start.messages)).toEqual(["c"]);
});
