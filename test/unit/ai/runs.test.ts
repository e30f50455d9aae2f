import type { Message, Tool } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { tool as sdkTool } from "ai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { aiAgent, aiTool, stateTools, type AiAgentOptions, type AiTools } from "ag-ui-local-runtime/ai";
import { leftCalls } from "../../../src/run/pending-tool-calls.js";
import { asks, inputOf, runOf, servedModel, typesOf } from "./kit.js";

const it = servedModel();

const numbers = z.object({ a: z.number(), b: z.number() });
const add = aiTool({ description: "Adds", parameters: numbers, execute: ({ a, b }) => ({ sum: a + b }) });
const showOnMap: Tool = { name: "showOnMap", description: "Shows a place", parameters: { type: "object" } };
const resultsIn = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) => (message.role === "tool" ? [`${message.toolCallId}: ${String(message.content)}`] : []));
const lastOf = (messages: readonly Message[]): unknown => messages.at(-1)?.content;

describe("issue 16.1: an agent of a model", () => {
  test("streams reasoning and text as they come, and tells usage and how the answer ended", async () => {
    const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
    it.server.script({ reasoning: ["hm", "m"], text: ["Hello", " you"], usage });
    const { events, messages, end } = await runOf({ model: it.model }, inputOf(asks("hi")));
    expect(typesOf(events)).toEqual([
      EventType.RUN_STARTED,
      EventType.STEP_STARTED,
      EventType.REASONING_START,
      EventType.REASONING_MESSAGE_START,
      EventType.REASONING_MESSAGE_CONTENT,
      EventType.REASONING_MESSAGE_END,
      EventType.REASONING_END,
      EventType.TEXT_MESSAGE_START,
      EventType.TEXT_MESSAGE_CONTENT,
      EventType.TEXT_MESSAGE_END,
      EventType.STEP_FINISHED,
      EventType.RUN_FINISHED,
    ]);
    expect(messages.slice(1)).toMatchObject([
      { role: "reasoning", content: "hmm" },
      { role: "assistant", content: "Hello you", metadata: { finishReason: "stop" } },
    ]);
    expect(end).toMatchObject({ outcome: { type: "success" }, usage: [{ inputTokens: 5, outputTokens: 7 }] });
  });

  test("is told the system prompt, the page's context and the state, in this order", async () => {
    it.server.script({ text: ["ok"] });
    const context = [{ description: "Open page", value: "maps" }];
    const input = inputOf(asks("hi"), { context, state: { city: "Rome" } });
    await runOf({ model: it.model, system: ({ state }) => `Be ${JSON.stringify(state)}`, state: "tell" }, input);
    expect(it.server.requests[0]?.body["messages"]).toEqual([
      {
        role: "system",
        content: 'Be {"city":"Rome"}\n\nOpen page:\nmaps\n\nThe current state, as JSON:\n{"city":"Rome"}',
      },
      { role: "user", content: "hi" },
    ]);
  });

  test("executes the calls of a step at the same time, streams their arguments, and asks again with the results", async () => {
    it.server.script(
      {
        text: ["Two sums"],
        calls: [
          { name: "add", args: ['{"a":1,', '"b":2}'] },
          { name: "add", args: { a: 3, b: 4 } },
        ],
      },
      { text: ["3 and 7"] },
    );
    let started = 0;
    let both!: () => void;
    const met = new Promise<void>((resolve) => (both = resolve));
    const tools = {
      add: aiTool({
        parameters: numbers,
        // Neither ends before the other has begun.
        execute: async ({ a, b }) => {
          if (++started === 2) both();
          await met;
          return a + b;
        },
      }),
    };
    const { events, messages } = await runOf({ model: it.model, tools }, inputOf(asks("sums")));
    const args = events.flatMap((event) => (event.type === EventType.TOOL_CALL_ARGS ? [event.delta] : []));
    expect(args).toEqual(['{"a":1,', '"b":2}', '{"a":3,"b":4}']);
    expect(resultsIn(messages)).toEqual(["call-0: 3", "call-1: 7"]);
    expect(it.server.requests).toHaveLength(2);
    expect(it.server.requests[1]?.body["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", content: "Two sums", tool_calls: [{ id: "call-0" }, { id: "call-1" }] },
      { role: "tool", tool_call_id: "call-0", content: "3" },
      { role: "tool", tool_call_id: "call-1", content: "7" },
    ]);
    expect(lastOf(messages)).toBe("3 and 7");
  });

  test("takes tools of the AI SDK, whose outputs may come bit by bit", async () => {
    it.server.script({ calls: [{ name: "count", args: { to: 3 } }] }, { text: ["done"] });
    const count = sdkTool({
      inputSchema: z.object({ to: z.number() }),
      async *execute({ to }) {
        for (let n = 1; n <= to; n++) yield n;
      },
    });
    const { messages } = await runOf({ model: it.model, tools: { count } }, inputOf(asks("count")));
    expect(resultsIn(messages)).toEqual(["call-0: 3"]);
  });

  test("servers that count calls from 0 in each answer: every call has an id of its own in the thread", async () => {
    it.server.script(
      { calls: [{ id: "0", name: "add", args: { a: 1, b: 1 } }] },
      { calls: [{ id: "0", name: "add", args: { a: 2, b: 2 } }] },
      { text: ["done"] },
    );
    const { messages } = await runOf({ model: it.model, tools: { add } }, inputOf(asks("twice")));
    const ids = messages
      .flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
      .map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    expect(resultsIn(messages).map((result) => result.split(": ")[1])).toEqual(['{"sum":2}', '{"sum":4}']);
  });

  test("malformed arguments and unknown tools are answered with an error, which the model sees", async () => {
    it.server.script(
      {
        calls: [
          { name: "add", args: ['{"a":1, "b'] },
          { name: "add", args: { a: "one" } },
          { name: "nothing", args: {} },
        ],
      },
      { text: ["sorry"] },
    );
    const { messages, end } = await runOf({ model: it.model, tools: { add } }, inputOf(asks("?")));
    const results = resultsIn(messages);
    expect(results).toHaveLength(3);
    for (const result of results) expect(result).toContain("Error: ");
    expect(end.type).toBe(EventType.RUN_FINISHED);
    expect(lastOf(messages)).toBe("sorry");
  });

  test("the last step has no tools, so that it ends with an answer", async () => {
    it.server.script((request) =>
      request.body["tool_choice"] === "none"
        ? { text: ["enough"] }
        : { calls: [{ name: "add", args: { a: 1, b: 1 } }] },
    );
    const { messages, end } = await runOf({ model: it.model, tools: { add }, maxSteps: 3 }, inputOf(asks("for ever")));
    expect(it.server.requests).toHaveLength(3);
    expect(end.type).toBe(EventType.RUN_FINISHED);
    expect(lastOf(messages)).toBe("enough");
  });

  test("a model without tools that imitates calls of the thread is asked maxSteps times, and no more", async () => {
    it.server.script(() => ({ calls: [{ name: "add", args: { a: 1, b: 1 } }] }));
    const { end } = await runOf({ model: it.model, maxSteps: 3 }, inputOf(asks("for ever")));
    expect(it.server.requests).toHaveLength(3);
    expect(end).toMatchObject({ type: EventType.RUN_ERROR, code: "STEP_LIMIT" });
  });

  test("a model that heeds neither the last step nor a required tool is told apart", async () => {
    it.server.script({ calls: [{ name: "add", args: { a: 1, b: 1 } }] }, { text: ["no tool"] });
    const options = { model: it.model, tools: { add } };
    const late = await runOf({ ...options, maxSteps: 1 }, inputOf(asks("hi")));
    expect(late.end).toMatchObject({ code: "STEP_LIMIT", message: expect.stringContaining("maxSteps") });
    const none = await runOf({ ...options, settings: { toolChoice: "required" } }, inputOf(asks("hi")));
    expect(none.end).toMatchObject({ code: "INVALID_RESPONSE", message: expect.stringContaining("called no tool") });
  });

  test("gives an object where it has an output schema; another answer is an error", async () => {
    it.server.script({ text: ['{"city":', '"Rome"}'] }, { text: ['{"town":1}'] });
    const options = { model: it.model, output: z.object({ city: z.string() }) };
    expect((await runOf(options, inputOf(asks("where?")))).end).toMatchObject({ result: { city: "Rome" } });
    expect((await runOf(options, inputOf(asks("where?")))).end).toMatchObject({
      type: "RUN_ERROR",
      code: "INVALID_OUTPUT",
    });
  });

  test("tools set and patch the state, and are told where a patch does not apply", async () => {
    it.server.script(
      { calls: [{ name: "setState", args: { state: { list: ["a"] } } }] },
      { calls: [{ name: "patchState", args: { patch: [{ op: "add", path: "/list/-", value: "b" }] } }] },
      { calls: [{ name: "patchState", args: { patch: [{ op: "remove", path: "/nothing" }] } }] },
      { text: ["done"] },
    );
    const { events, state, messages } = await runOf(
      { model: it.model, tools: stateTools(), state: "tell" },
      inputOf(asks("list")),
    );
    expect(state).toEqual({ list: ["a", "b"] });
    expect(events.filter(({ type }) => type.startsWith("STATE_")).map(({ type }) => type)).toEqual([
      "STATE_SNAPSHOT",
      "STATE_DELTA",
    ]);
    expect(resultsIn(messages).at(-1)).toContain("does not apply");
    expect(JSON.stringify(it.server.requests.at(-1)?.body)).toContain('{\\"list\\":[\\"a\\",\\"b\\"]}');
  });

  test("a state that the model writes wrongly is a tool's error, which it corrects", async () => {
    it.server.script(
      { calls: [{ name: "setState", args: { list: ["a"] } }] },
      { calls: [{ name: "patchState", args: { patch: [{ op: "add", path: "/a~b", value: 1 }] } }] },
      { calls: [{ name: "patchState", args: { patch: [{ op: "add", path: "/a~0b", value: 1 }] } }] },
      { text: ["done"] },
    );
    const { state, messages } = await runOf(
      { model: it.model, tools: stateTools() },
      inputOf(asks("list"), { state: {} }),
    );
    expect(resultsIn(messages)).toEqual([
      expect.stringContaining('Error: The arguments must be { "state": … }'),
      expect.stringContaining("Error: The state cannot be changed so: delta.0.path"),
      expect.stringContaining("The state was changed"),
    ]);
    expect(state).toEqual({ "a~b": 1 });
    expect(lastOf(messages)).toBe("done");
  });

  test("wrong options are refused by name", () => {
    const model = it.model;
    expect(() => aiAgent({ model, tool: {} } as never)).toThrow("aiAgent has no option tool");
    expect(() => aiAgent({} as never)).toThrow("aiAgent needs a model");
    expect(() => aiAgent({ model, tools: { add: { inputSchem: {} } } as unknown as AiTools })).toThrow("tools.add");
    expect(() => aiAgent({ model, tools: { add: { description: "x" } } as unknown as AiTools })).toThrow(
      "tools.add.parameters",
    );
  });
});

describe("issue 16.1: calls that wait", () => {
  test("tools of the page end the run, which names them as pending; the next run goes on with their results", async () => {
    it.server.script({ calls: [{ name: "showOnMap", args: { place: "Rome" } }] }, { text: ["shown"] });
    const input = inputOf(asks("show Rome"), { tools: [showOnMap] });
    const first = await runOf({ model: it.model }, input);
    expect(first.end).toMatchObject({ outcome: { type: "success", pendingToolCallIds: ["call-0"] } });
    const { outcome } = first.end as { outcome: { type: "success" } };
    expect(leftCalls(input.messages, first.messages, new Set(["showOnMap"]), outcome).made).toHaveLength(1);
    const answered: Message[] = [...first.messages, { id: "r", role: "tool", toolCallId: "call-0", content: "ok" }];
    const second = await runOf({ model: it.model }, inputOf(answered, { tools: [showOnMap] }));
    expect(lastOf(second.messages)).toBe("shown");
    expect(it.server.requests[1]?.body["messages"]).toMatchObject([{}, {}, { role: "tool", content: "ok" }]);
  });

  test("a step with all three kinds: what runs here is executed, the rest waits for its people", async () => {
    let sent = 0;
    const tools: AiTools = {
      add,
      send: aiTool({
        parameters: z.object({ to: z.string() }),
        needsApproval: ({ to }) => to !== "me",
        execute: ({ to }) => {
          sent++;
          return `sent to ${to}`;
        },
      }),
    };
    it.server.script(
      {
        calls: [
          { id: "a", name: "add", args: { a: 1, b: 2 } },
          { id: "b", name: "showOnMap", args: {} },
          { id: "c", name: "send", args: { to: "you" } },
          { id: "d", name: "send", args: { to: "me" } },
        ],
      },
      { text: ["all done"] },
    );
    const first = await runOf({ model: it.model, tools }, inputOf(asks("all"), { tools: [showOnMap] }));
    expect(resultsIn(first.messages).toSorted()).toEqual(['a: {"sum":3}', "d: sent to me"]);
    const { interrupts } = (first.end as { outcome: { interrupts: { id: string; toolCallId: string }[] } }).outcome;
    expect(interrupts).toMatchObject([{ reason: "tool_call", toolCallId: "c" }]);
    // The page's call stays open in the run that the answer starts.
    const resume = [{ interruptId: interrupts[0]!.id, status: "resolved" as const, payload: { approved: true } }];
    const second = await runOf({ model: it.model, tools }, inputOf(first.messages, { tools: [showOnMap], resume }));
    expect(resultsIn(second.messages)).toContain("c: sent to you");
    expect(second.end).toMatchObject({ outcome: { type: "success", pendingToolCallIds: ["b"] } });
    expect(sent).toBe(2);
    expect(it.server.requests).toHaveLength(1);
    const answered: Message[] = [...second.messages, { id: "r", role: "tool", toolCallId: "b", content: "ok" }];
    const third = await runOf({ model: it.model, tools }, inputOf(answered, { tools: [showOnMap] }));
    expect(lastOf(third.messages)).toBe("all done");
    expect(sent).toBe(2);
  });

  test.each([
    [
      "denied, with a reason",
      { status: "resolved", payload: { approved: false, reason: "too late" } },
      "The user denied this call: too late",
    ],
    ["cancelled", { status: "cancelled" }, "The user did not approve this call"],
    [
      "with other arguments",
      { status: "resolved", payload: { approved: true, editedArgs: { a: 5, b: 5 } } },
      '{"sum":10}',
    ],
    [
      "with arguments that the tool does not take",
      { status: "resolved", payload: { approved: true, editedArgs: { a: "x" } } },
      "Error: ",
    ],
  ] as const)("an approval that is %s", async (_, answer, content) => {
    it.server.script({ calls: [{ name: "add", args: { a: 1, b: 2 } }] }, { text: ["ok"] });
    const options = { model: it.model, tools: { add: { ...add, needsApproval: true } } };
    const first = await runOf(options, inputOf(asks("add")));
    const { interrupts } = (first.end as { outcome: { interrupts: { id: string }[] } }).outcome;
    const resume = [{ interruptId: interrupts[0]!.id, ...answer }];
    const second = await runOf(options, inputOf(first.messages, { resume }));
    expect(resultsIn(second.messages)[0]).toContain(content);
    expect(lastOf(second.messages)).toBe("ok");
  });

  test("a call that was repaired stands so in the log, its name as well: it is approved and executed", async () => {
    it.server.script({ calls: [{ name: "sum", args: ['{"a":1,', '"b":2'] }] }, { text: ["3"] });
    const options: AiAgentOptions = {
      model: it.model,
      tools: { add: { ...add, needsApproval: true } },
      settings: { repairToolCall: async ({ toolCall }) => ({ ...toolCall, toolName: "add", input: '{"a":1,"b":2}' }) },
    };
    const first = await runOf(options, inputOf(asks("add")));
    expect(first.messages.at(-1)).toMatchObject({
      toolCalls: [{ function: { name: "add", arguments: '{"a":1,"b":2}' } }],
    });
    const { interrupts } = (first.end as { outcome: { interrupts: { id: string }[] } }).outcome;
    const resume = [{ interruptId: interrupts[0]!.id, status: "resolved" as const, payload: { approved: true } }];
    const second = await runOf(options, inputOf(first.messages, { resume }));
    expect(resultsIn(second.messages)).toEqual(['call-0: {"sum":3}']);
  });

  test("a tool of the agent that the page runs waits for it, while another call of its step is approved", async () => {
    const pick: AiTools[string] = { description: "Asks for a place", parameters: { type: "object" } };
    const tools = { add: { ...add, needsApproval: true }, pick };
    const calls = [
      { id: "a", name: "add", args: { a: 1, b: 2 } },
      { id: "b", name: "pick", args: {} },
    ];
    it.server.script({ calls });
    const first = await runOf({ model: it.model, tools }, inputOf(asks("both")));
    const { interrupts } = (first.end as { outcome: { interrupts: { id: string }[] } }).outcome;
    const resume = [{ interruptId: interrupts[0]!.id, status: "resolved" as const, payload: { approved: true } }];
    const second = await runOf({ model: it.model, tools }, inputOf(first.messages, { resume }));
    expect(resultsIn(second.messages)).toEqual(['a: {"sum":3}']);
    expect(second.end).toMatchObject({ outcome: { type: "success", pendingToolCallIds: ["b"] } });
  });

  test("a tool whose needsApproval says anything but no waits for its approval", async () => {
    const needsApproval = (() => "user-approval") as unknown as () => boolean;
    it.server.script({ calls: [{ name: "add", args: { a: 1, b: 2 } }] });
    const { end } = await runOf({ model: it.model, tools: { add: { ...add, needsApproval } } }, inputOf(asks("add")));
    expect(end).toMatchObject({ outcome: { type: "interrupt", interrupts: [{ toolCallId: "call-0" }] } });
  });

  test("an approval that comes with a further message is carried out, and the model is told of both", async () => {
    it.server.script({ calls: [{ name: "add", args: { a: 1, b: 2 } }] }, { text: ["ok"] });
    const options = { model: it.model, tools: { add: { ...add, needsApproval: true } } };
    const first = await runOf(options, inputOf(asks("add")));
    const { interrupts } = (first.end as { outcome: { interrupts: { id: string }[] } }).outcome;
    const resume = [{ interruptId: interrupts[0]!.id, status: "resolved" as const, payload: { approved: true } }];
    const written: Message[] = [...first.messages, { id: "u9", role: "user", content: "and be quick" }];
    const second = await runOf(options, inputOf(written, { resume }));
    expect(resultsIn(second.messages)).toEqual(['call-0: {"sum":3}']);
    expect(it.server.requests[1]?.body["messages"]).toMatchObject([
      {},
      {},
      { role: "tool", content: '{"sum":3}' },
      { content: "and be quick" },
    ]);
  });

  test("somebody writes instead of answering: the model is told that the call has no result", async () => {
    it.server.script({ calls: [{ name: "showOnMap", args: {} }] }, { text: ["fine"] });
    const first = await runOf({ model: it.model }, inputOf(asks("show"), { tools: [showOnMap] }));
    const second = await runOf(
      { model: it.model },
      inputOf([...first.messages, { id: "u9", role: "user", content: "never mind" }]),
    );
    expect(lastOf(second.messages)).toBe("fine");
    expect(it.server.requests[1]?.body["messages"]).toMatchObject([
      {},
      {},
      { role: "tool" },
      { content: "never mind" },
    ]);
  });
});
