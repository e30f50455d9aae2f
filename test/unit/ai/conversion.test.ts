import type { ContentPart, Message } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { MockLanguageModelV4 } from "ai/test";
import { describe, expect, test } from "vitest";
import { promptOf } from "../../../src/ai/prompt.js";
import { asks, inputOf, runOf } from "./kit.js";

const call = (id: string, name: string, args = "{}") => ({
  id,
  type: "function" as const,
  function: { name, arguments: args },
});
type StreamPart =
  Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

/** A model that answers each request with the next list of parts, as a provider gives them. */
function mock(...answers: StreamPart[][]): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doStream: async () => {
      const parts = answers.shift() ?? [];
      return {
        stream: new ReadableStream<StreamPart>({
          start(controller) {
            for (const part of [{ type: "stream-start", warnings: [] } as StreamPart, ...parts, finish])
              controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  });
}

const finish: StreamPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: "stop" },
  usage: {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  },
};

/** A call of a tool that the provider runs itself. */
const searching: StreamPart[] = [
  { type: "tool-input-start", id: "w", toolName: "web_search", providerExecuted: true, dynamic: true },
  { type: "tool-input-delta", id: "w", delta: '{"q":"x"}' },
  { type: "tool-input-end", id: "w" },
  {
    type: "tool-call",
    toolCallId: "w",
    toolName: "web_search",
    input: '{"q":"x"}',
    providerExecuted: true,
    dynamic: true,
  },
];

const said = (text: string): StreamPart[] => [
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: text },
  { type: "text-end", id: "0" },
];

describe("issue 16.1: messages to the model", () => {
  test("media of all kinds, as data, by URL and by a provider's id", () => {
    const source = (mimeType: string) => ({ type: "data" as const, value: "AAAA", mimeType });
    const [message] = promptOf([
      {
        id: "u",
        role: "user",
        content: [
          { type: "text", text: "See" },
          { type: "image", source: source("image/png") },
          { type: "audio", source: source("audio/wav") },
          { type: "video", source: { type: "url", value: "https://a.test/v.mp4" } },
          { type: "document", source: { type: "url", value: "data:application/pdf;base64,BBBB" } },
          {
            type: "document",
            source: { type: "file", value: "file-1", provider: "openai", mimeType: "application/pdf" },
          },
        ],
      },
    ]);
    expect(message).toEqual({
      role: "user",
      content: [
        { type: "text", text: "See" },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
        { type: "file", mediaType: "audio/wav", data: { type: "data", data: "AAAA" } },
        { type: "file", mediaType: "video/*", data: { type: "url", url: new URL("https://a.test/v.mp4") } },
        { type: "file", mediaType: "application/pdf", data: { type: "data", data: "BBBB" } },
        { type: "file", mediaType: "application/pdf", data: { type: "reference", reference: { openai: "file-1" } } },
      ],
    });
  });

  test("a part that is malformed does not fail the thread's runs: the model is told that it is missing", async () => {
    const image = (type: "data" | "url", value: string): ContentPart => ({
      type: "image",
      source: type === "data" ? { type, value, mimeType: "image/png" } : { type, value },
    });
    const bad = [
      image("data", "no base64!"),
      image("data", ""),
      image("url", "http://"),
      image("url", "data:image/png;base64"),
      image("url", "data:image/png;base64,A"),
      image("url", "data:text/plain,%zz"),
    ];
    const note = { type: "text", text: "[A part of this message, of type image, cannot be read and was left out]" };
    const model = mock([
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "ok" },
      { type: "text-end", id: "1" },
    ]);
    const thread = asks(
      { id: "u", role: "user", content: [{ type: "text", text: "See" }, ...bad] },
      { id: "a", role: "assistant", toolCalls: [call("c", "shot")] },
      { id: "t", role: "tool", toolCallId: "c", content: bad },
      { id: "f", role: "activity", activityType: "file", content: { mediaType: "image/png", url: "http://" } },
      "And?",
    );
    const { end } = await runOf({ model }, inputOf(thread));
    expect(end.type).toBe(EventType.RUN_FINISHED);
    const [user, , tool] = model.doStreamCalls[0]!.prompt;
    expect(user).toMatchObject({ content: [{ text: "See" }, ...bad.map(() => note)] });
    expect(tool).toMatchObject({ content: [{ output: { type: "content", value: bad.map(() => note) } }] });
  });

  test("links that are dead do not fail the thread's runs: the model is told that the files are missing", async () => {
    const { doStream } = mock([]);
    const model = new MockLanguageModelV4({ supportedUrls: { "image/*": [/^https:/] }, doStream });
    const image = (value: string): ContentPart => ({ type: "image", source: { type: "url", value } });
    const content = ["http://localhost/a.png", "https://a.test/b.png", "blob:http://localhost/c"].map(image);
    const { end, events } = await runOf({ model }, inputOf([{ id: "u", role: "user", content }]));
    expect(end.type).toBe(EventType.RUN_FINISHED);
    expect(events.filter(({ type }) => type === EventType.STEP_STARTED)).toHaveLength(1);
    expect(model.doStreamCalls.map(({ prompt: [user] }) => user)).toMatchObject([
      { content: [{ type: "text" }, { type: "file", data: { type: "url" } }, { type: "text" }] },
    ]);
  });

  test("base64 in the alphabet for URLs is given on in the usual one, which providers read", () => {
    const source = { type: "data" as const, value: "_-8A", mimeType: "image/png" };
    const url = { type: "url" as const, value: "data:image/png;base64,_-8A" };
    const data = { data: { type: "data", data: "/+8A" } };
    const content: ContentPart[] = [source, url].map((each) => ({ type: "image", source: each }));
    expect(promptOf([{ id: "u", role: "user", content }])).toMatchObject([{ content: [data, data] }]);
  });

  test("what servers refuse is left out: empty texts, and thoughts that led to nothing", () => {
    const empty: ContentPart = { type: "text", text: "" };
    const image: ContentPart = { type: "image", source: { type: "data", value: "AAAA", mimeType: "image/png" } };
    const prompt = promptOf([
      { id: "u1", role: "user", content: [empty, image] },
      { id: "r", role: "reasoning", content: "Hm" },
      { id: "u2", role: "user", content: [empty] },
      { id: "u3", role: "user", content: "Go on" },
    ]);
    expect(prompt).toMatchObject([
      { role: "user", content: [{ type: "file" }] },
      { role: "user", content: "Go on" },
    ]);
  });

  test("a data URL where its data belongs is read", () => {
    const source = { type: "data" as const, value: "data:image/png;base64,AAAA", mimeType: "" };
    expect(promptOf([{ id: "u", role: "user", content: [{ type: "image", source }] }])).toEqual([
      { role: "user", content: [{ type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } }] },
    ]);
  });

  test("turns: calls are followed by their results, wherever those stand, and one that has none gets one", () => {
    const messages: Message[] = [
      { id: "s", role: "system", content: "Be brief" },
      { id: "d", role: "developer", content: "Be kind" },
      ...asks("go"),
      { id: "a1", role: "assistant", content: "first", toolCalls: [call("c1", "one"), call("c2", "two", "{broken")] },
      { id: "a2", role: "assistant", content: "then" },
      {
        id: "t1",
        role: "tool",
        toolCallId: "c1",
        content: [
          { type: "text", text: "1" },
          { type: "image", source: { type: "data", value: "AA", mimeType: "image/png" } },
        ],
      },
      { id: "p", role: "activity", activityType: "plan", content: {} },
      { id: "t9", role: "tool", toolCallId: "unknown", content: "nobody asked" },
    ];
    expect(promptOf(messages)).toMatchObject([
      { role: "system", content: "Be brief" },
      { role: "system", content: "Be kind" },
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: [
          { type: "text" },
          { type: "tool-call", toolCallId: "c1" },
          { type: "tool-call", toolCallId: "c2", input: {} },
        ],
      },
      {
        role: "tool",
        content: [
          { toolCallId: "c1", toolName: "one", output: { type: "content" } },
          { toolCallId: "c2", toolName: "two", output: { type: "error-text" } },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "then" }] },
    ]);
  });

  test("what another agent encrypted is left alone", () => {
    const [message] = promptOf([
      { id: "r", role: "reasoning", content: "x", encryptedValue: "opaque" },
      { id: "a", role: "assistant", content: "y" },
    ]);
    expect(message).toEqual({
      role: "assistant",
      content: [
        { type: "reasoning", text: "x" },
        { type: "text", text: "y" },
      ],
    });
  });
});

describe("issue 16.1: what providers say beside text", () => {
  test("signatures of reasoning, text and calls come back to them with the next request", async () => {
    const model = mock(
      [
        { type: "reasoning-start", id: "0", providerMetadata: { anthropic: { redactedData: "r" } } },
        { type: "reasoning-delta", id: "0", delta: "hm" },
        { type: "reasoning-delta", id: "0", delta: "", providerMetadata: { anthropic: { signature: "s1" } } },
        { type: "reasoning-end", id: "0" },
        // Told to nobody but its provider.
        { type: "reasoning-start", id: "1" },
        { type: "reasoning-end", id: "1", providerMetadata: { openai: { itemId: "i" } } },
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: "so" },
        { type: "text-end", id: "0", providerMetadata: { google: { thoughtSignature: "t" } } },
        {
          type: "tool-call",
          toolCallId: "c1",
          toolName: "one",
          input: "{}",
          providerMetadata: { google: { thoughtSignature: "u" } },
        },
      ],
      [
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: "done" },
        { type: "text-end", id: "0" },
      ],
    );
    const tools = { one: { parameters: { type: "object" }, execute: () => 1 } };
    const { events } = await runOf({ model, tools }, inputOf(asks("go")));
    expect(events.filter(({ type }) => type === EventType.REASONING_ENCRYPTED_VALUE)).toHaveLength(4);
    expect(model.doStreamCalls[1]?.prompt).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "hm", providerOptions: { anthropic: { redactedData: "r", signature: "s1" } } },
          { type: "reasoning", text: "", providerOptions: { openai: { itemId: "i" } } },
          { type: "text", text: "so", providerOptions: { google: { thoughtSignature: "t" } } },
          { type: "tool-call", toolCallId: "c1", providerOptions: { google: { thoughtSignature: "u" } } },
        ],
      },
      { role: "tool" },
    ]);
  });

  test("calls of one id in one answer, and a call that never ends, are calls of their own with one result each", async () => {
    const made = (toolCallId: string, a: number): StreamPart => ({
      type: "tool-call",
      toolCallId,
      toolName: "one",
      input: `{"a":${a}}`,
      providerMetadata: { p: { a } },
    });
    const begun: StreamPart[] = [
      { type: "tool-input-start", id: "cut", toolName: "one" },
      { type: "tool-input-delta", id: "cut", delta: '{"a":' },
    ];
    const model = mock([made("0", 1), made("0", 2), made("", 3), made("", 4), ...begun, ...begun], []);
    const tools = { one: { parameters: {}, execute: (args: unknown) => args } };
    const { messages, end } = await runOf({ model, tools }, inputOf(asks("go")));
    expect(end.type).toBe(EventType.RUN_FINISHED);
    const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
    const results = messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
    expect(calls.map(({ function: { arguments: text } }) => text)).toEqual([
      '{"a":1}',
      '{"a":2}',
      '{"a":3}',
      '{"a":4}',
      '{"a":',
      '{"a":',
    ]);
    expect(calls.map(({ encryptedValue }) => encryptedValue).slice(1, 3)).toEqual(['{"p":{"a":2}}', '{"p":{"a":3}}']);
    expect(results.toSorted()).toEqual(calls.map(({ id }) => id).toSorted());
    const contents = messages.flatMap(({ role, content }) => (role === "tool" ? [content] : []));
    expect(contents.toSorted().slice(0, 2)).toEqual(Array(2).fill("Error: The call is not complete"));
  });

  test("sources stand in the answer's metadata, files are activities, which the model is given back", async () => {
    const model = mock(
      [
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: "See" },
        { type: "source", sourceType: "url", id: "s", url: "https://a.test/", title: "A" },
        { type: "text-end", id: "0" },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
        { type: "source", sourceType: "url", id: "s2", url: "https://b.test/" },
      ],
      [
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: "ok" },
        { type: "text-end", id: "0" },
      ],
    );
    const { messages } = await runOf({ model }, inputOf(asks("draw")));
    expect(messages.slice(1)).toMatchObject([
      {
        role: "assistant",
        content: "See",
        metadata: { finishReason: "stop", sources: [{ url: "https://a.test/" }, { url: "https://b.test/" }] },
      },
      { role: "activity", activityType: "file", content: { mediaType: "image/png", data: "AAAA" } },
    ]);
    await runOf({ model }, inputOf([...messages, { id: "u2", role: "user", content: "again" }]));
    expect(model.doStreamCalls[1]?.prompt).toMatchObject([
      { role: "user" },
      { role: "assistant", content: [{ type: "text" }, { type: "file", mediaType: "image/png" }] },
      { role: "user" },
    ]);
  });

  test("tools that the provider runs itself have their results in the log, and go back as its own", async () => {
    const model = mock(
      [
        ...searching,
        { type: "tool-result", toolCallId: "w", toolName: "web_search", result: { hits: 1 }, dynamic: true },
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: "found" },
        { type: "text-end", id: "0" },
      ],
      [
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: "ok" },
        { type: "text-end", id: "0" },
      ],
    );
    const { messages, end } = await runOf({ model }, inputOf(asks("search")));
    expect(end.type).toBe(EventType.RUN_FINISHED);
    expect(messages.find(({ role }) => role === "tool")).toMatchObject({ toolCallId: "w", content: '{"hits":1}' });
    await runOf({ model }, inputOf([...messages, { id: "u2", role: "user", content: "more" }]));
    const [, assistant] = model.doStreamCalls[1]!.prompt;
    expect(assistant).toMatchObject({
      role: "assistant",
      content: [
        { type: "tool-call", toolCallId: "w", providerExecuted: true, input: { q: "x" } },
        { type: "tool-result", toolCallId: "w", output: { type: "json", value: { hits: 1 } } },
        { type: "text", text: "found" },
      ],
    });
  });

  test.each<[string, StreamPart[], object]>([
    [
      "failed",
      [
        ...searching,
        {
          type: "tool-result",
          toolCallId: "w",
          toolName: "web_search",
          result: { type: "web_search_tool_result_error", errorCode: "max_uses_exceeded" },
          isError: true,
          dynamic: true,
        },
      ],
      { type: "web_search_tool_result_error", errorCode: "max_uses_exceeded" },
    ],
    ["is lost", searching, { errorCode: "unavailable", message: expect.stringContaining("no result") }],
  ])("a tool that the provider runs itself, whose result %s, goes back as its error", async (_, parts, value) => {
    const model = mock([...parts, ...said("sorry")], said("ok"));
    const { messages } = await runOf({ model }, inputOf(asks("search")));
    const { end } = await runOf({ model }, inputOf([...messages, { id: "u2", role: "user", content: "more" }]));
    expect(end.type).toBe(EventType.RUN_FINISHED);
    expect(model.doStreamCalls[1]!.prompt[1]).toMatchObject({
      content: [
        { type: "tool-call", toolCallId: "w", providerExecuted: true },
        { type: "tool-result", toolCallId: "w", output: { type: "error-json", value } },
        { type: "text" },
      ],
    });
  });

  test("what the end of a stopped run made up for a tool of the provider goes back as an error", () => {
    const made = { ...call("w", "web_search"), metadata: { providerExecuted: true } };
    const content = JSON.stringify({ status: "stopped", message: "The run was stopped" });
    const result: Message = { id: "t", role: "tool", toolCallId: "w", content };
    expect(promptOf([{ id: "a", role: "assistant", toolCalls: [made] }, result, ...asks("more")])[0]).toMatchObject({
      content: [{}, { output: { type: "error-json", value: { errorCode: "unavailable", status: "stopped" } } }],
    });
  });

  test("a tool of the provider that waits for a tool of the agent has no result yet, and no error", async () => {
    const own: StreamPart = { type: "tool-call", toolCallId: "o", toolName: "one", input: "{}" };
    const model = mock([...searching, own], said("ok"));
    await runOf({ model, tools: { one: { parameters: {}, execute: () => 1 } } }, inputOf(asks("search")));
    const [, assistant, tool] = model.doStreamCalls[1]!.prompt;
    expect(assistant?.content).toMatchObject([{ toolCallId: "w" }, { toolCallId: "o" }]);
    expect(tool?.content).toMatchObject([{ toolCallId: "o" }]);
  });

  test("a tool of the provider that wants an approval ends the run with what to do; the next run goes on", async () => {
    const wanted: StreamPart = { type: "tool-approval-request", approvalId: "p", toolCallId: "w" };
    const model = mock([...searching, wanted], said("ok"));
    const { end, messages } = await runOf({ model }, inputOf(asks("search")));
    expect(end).toMatchObject({
      type: EventType.RUN_ERROR,
      code: "INVALID_REQUEST",
      message: expect.stringContaining('"web_search"'),
    });
    const next = await runOf({ model }, inputOf([...messages, { id: "u2", role: "user", content: "more" }]));
    expect(next.end.type).toBe(EventType.RUN_FINISHED);
  });
});
