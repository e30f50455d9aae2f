import { EventType, type AGUIEvent } from "@ag-ui/core";
import { describe, expect, test } from "vitest";
import { aiAgent, isRetryable } from "ag-ui-local-runtime/ai";
import { Fold } from "../../../src/run/fold.js";
import { failureOf } from "../../../src/ai/provider-error.js";
import { piecesOf, type ScriptedAnswer } from "../../openai/server.js";
import { hostOf, until } from "../waiting/kit.js";
import { asks, inputOf, modelAt, runOf, servedModel } from "./kit.js";

const it = servedModel();

const settings = { maxRetries: 0 };
const errorOf = (end: AGUIEvent): { readonly code: string; readonly message: string } => {
  expect(end.type).toBe(EventType.RUN_ERROR);
  return end as unknown as { code: string; message: string };
};
const refusal = (status: number, message: string, headers: Record<string, string> = {}): ScriptedAnswer => ({
  status,
  headers,
  body: JSON.stringify({ error: { message, type: "error" } }),
});
const HALF = piecesOf({ text: ["Half of an", " answer"] });

describe("issue 16.1: what a model's server does wrong ends the run with what to do", () => {
  test.each<[string, ScriptedAnswer, string, string]>([
    ["no key", refusal(401, "missing key"), "AUTHENTICATION", "API key"],
    ["a key without rights", refusal(403, "not yours"), "AUTHENTICATION", "API key"],
    [
      "a model that is not there",
      refusal(404, "model 'x' not found, try pulling it first"),
      "MODEL_NOT_FOUND",
      "try pulling it first",
    ],
    [
      "too long a conversation",
      refusal(400, "This model's maximum context length is 8192 tokens"),
      "CONTEXT_LENGTH",
      "new thread",
    ],
    [
      "llama.cpp's way to say so",
      refusal(500, "the request exceeds the available context size"),
      "CONTEXT_LENGTH",
      "new thread",
    ],
    ["too many requests", refusal(429, "slow down", { "retry-after": "7" }), "RATE_LIMITED", "in 7 s"],
    ["a failure", refusal(500, "oops"), "PROVIDER_UNAVAILABLE", "500"],
    ["a gateway without a server", { status: 502, body: "<html>Bad gateway</html>" }, "PROVIDER_UNAVAILABLE", "502"],
    ["a refusal for another reason", refusal(422, "no such option"), "INVALID_REQUEST", "no such option"],
    [
      "a page instead of an API",
      { headers: { "content-type": "text/html" }, body: "<html>hello</html>" },
      "INVALID_RESPONSE",
      "text/html",
    ],
    ["a stream of something else", { text: [], raw: "data: {not json\n\n" }, "INVALID_RESPONSE", "base URL"],
    [
      "an error in the middle",
      { text: ["Half"], raw: 'data: {"error":{"message":"overloaded"}}\n\n' },
      "PROVIDER_UNAVAILABLE",
      "overloaded",
    ],
    ["a stream that just ends", { text: ["Half"], finish: null }, "PROVIDER_UNAVAILABLE", "ended before"],
    [
      "a connection cut in the middle of a chunk",
      { text: ["Half of an", " answer"], cutAfter: HALF.slice(0, 2).join("").length + 20 },
      "PROVIDER_UNAVAILABLE",
      "",
    ],
    ["a connection cut before anything", { text: [], cutAfter: 0 }, "PROVIDER_UNAVAILABLE", ""],
  ])("%s", async (_, answer, code, hint) => {
    it.server.script(answer);
    const { end, messages } = await runOf({ model: it.model, settings }, inputOf(asks("hi")));
    const told = errorOf(end);
    expect(told.code).toBe(code);
    expect(told.message).toContain(hint);
    expect(isRetryable(told.code)).toBe(["RATE_LIMITED", "PROVIDER_UNAVAILABLE"].includes(code));
    // What came before is kept.
    if (answer.text?.length) expect(messages.at(-1)?.content).toContain("Half");
  });

  test("no server, or one that does not allow the page: the message asks both", async () => {
    const { end } = await runOf({ model: modelAt("http://127.0.0.1:1/v1"), settings }, inputOf(asks("hi")));
    expect(errorOf(end)).toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
    expect(errorOf(end).message).toContain("CORS");
    // Browsers' words, which have no cause.
    for (const words of ["Failed to fetch", "NetworkError when attempting to fetch resource.", "Load failed"]) {
      expect(failureOf(new TypeError(words), (text) => text, 0)).toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
      expect(failureOf(new TypeError(words), (text) => text, 0).message).toContain("CORS");
    }
  });

  test("the browser's own model says that a conversation is too long", () => {
    const refused = new DOMException("The input is too large.", "QuotaExceededError");
    expect(failureOf(refused, String, 0)).toMatchObject({ code: "CONTEXT_LENGTH" });
  });

  test("the SDK retries what may pass, and the run goes on", async () => {
    it.server.script(
      refusal(429, "slow down", { "retry-after-ms": "1" }),
      refusal(503, "later", { "retry-after-ms": "1" }),
      { text: ["at last"] },
    );
    const { messages } = await runOf({ model: it.model }, inputOf(asks("hi")));
    expect(messages.at(-1)?.content).toBe("at last");
    expect(it.server.requests).toHaveLength(3);
  });

  test("and tells of the last answer when it gives up", async () => {
    it.server.script(refusal(429, "slow down", { "retry-after-ms": "1", "retry-after": "90" }));
    const { end } = await runOf({ model: it.model, settings: { maxRetries: 1 } }, inputOf(asks("hi")));
    expect(errorOf(end)).toMatchObject({ code: "RATE_LIMITED" });
    expect(errorOf(end).message).toContain("in 90 s");
  });

  test.each([
    [429, { "retry-after": "90" }, 90_000],
    [429, { "retry-after": "90", "retry-after-ms": "1500" }, 90_000],
    [503, { "retry-after-ms": "1500" }, 1_500],
    [429, { "retry-after": "soon" }, undefined],
    [401, { "retry-after": "90" }, undefined],
  ])("RUN_ERROR carries the wait that the server asks for: %i %j", async (status, headers, retryAfterMs) => {
    it.server.script(refusal(status, "slow down", headers));
    const { end } = await runOf({ model: it.model, settings }, inputOf(asks("hi")));
    expect((end as { metadata?: unknown }).metadata).toEqual(retryAfterMs && { retryAfterMs });
  });

  test("a date in Retry-After is a wait from now", () => {
    const now = Date.parse("Tue, 24 Nov 2026 12:00:00 GMT");
    const refused = { statusCode: 429, responseHeaders: { "retry-after": "Tue, 24 Nov 2026 12:01:30 GMT" } };
    expect(failureOf(refused, String, now)).toMatchObject({ code: "RATE_LIMITED", retryAfterMs: 90_000 });
  });

  test("a run that goes on with one that was refused for too many requests starts when the server allows it", async () => {
    it.server.script(refusal(429, "slow down", { "retry-after": "3600" }), { text: ["at last"] });
    const assistant = aiAgent({ model: it.model, settings });
    const options = { agents: { assistant }, agentPolicies: { assistant: { recovery: "auto" } } } as const;
    const runtime = hostOf(options).connect();
    const agent = runtime.agent("assistant", { threadId: "t" });
    agent.follow();
    agent.addMessage({ id: "u", role: "user", content: "hi" });
    await agent.runAgent({ runId: "r" });
    const [failed] = await runtime.runner().listRuns("t");
    const earliest = failed!.endedAt! + 3_600_000;
    await until(async () =>
      expect(await runtime.waiting.list("t")).toMatchObject([
        { runId: "r~2", attempt: { of: "r", number: 2 }, reason: { is: "retry", at: earliest } },
      ]),
    );
    expect(it.server.requests).toHaveLength(1);
    await runtime.waiting.retry("t", "r~2");
    await until(() => expect(agent.messages.at(-1)).toMatchObject({ role: "assistant", content: "at last" }));
  });

  test("a failure in a later step keeps the results of the earlier ones, and their usage", async () => {
    const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
    it.server.script({ calls: [{ name: "one", args: {} }], usage }, refusal(500, "oops"));
    const tools = { one: { parameters: {}, execute: () => 1 } };
    const { end, messages } = await runOf({ model: it.model, tools, settings }, inputOf(asks("hi")));
    expect(end).toMatchObject({ type: EventType.RUN_ERROR, usage: [{ inputTokens: 5 }] });
    expect(messages.at(-1)).toMatchObject({ role: "tool", content: "1" });
  });

  test("what the agent's own functions throw ends the run as well", async () => {
    const model = (): never => {
      throw new Error("no model today");
    };
    const { end } = await runOf({ model }, inputOf(asks("hi")));
    expect(errorOf(end)).toEqual(expect.objectContaining({ code: "AGENT_FAILED", message: "no model today" }));
  });

  test("an answer in single bytes, cut anywhere, is the same answer", async () => {
    it.server.script({ text: ["Größe ", "ist 🙂"], calls: [{ name: "page", args: ['{"a":"ü', '"}'] }], inBytes: true });
    const { messages } = await runOf(
      { model: it.model },
      inputOf(asks("hi"), { tools: [{ name: "page", description: "" }] }),
    );
    expect(messages.at(-1)).toMatchObject({
      content: "Größe ist 🙂",
      toolCalls: [{ function: { arguments: '{"a":"ü"}' } }],
    });
  });

  test("a giant answer passes, at a cost that is its size (L17, L19)", async () => {
    const text = Array.from({ length: 1_000 }, (_, at) => `${at} `.repeat(200));
    it.server.script({ text });
    const input = inputOf(asks("hi"));
    // AG-UI's own reducer copies all of it for each delta.
    const fold = new Fold({ messages: input.messages, state: {}, interrupts: [] });
    await aiAgent({ model: it.model })
      .run(input)
      .forEach((event) => void fold.apply(event));
    expect(fold.messages.at(-1)?.content).toBe(text.join(""));
  });
});
