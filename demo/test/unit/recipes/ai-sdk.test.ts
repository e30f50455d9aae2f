import { EventType } from "@ag-ui/core";
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { agentOf, freshDb, gated } from "../../../../test/unit/runner/kit.js";
import { runtimeTransport, uiMessagesOf } from "../../../recipes/ai-sdk.js";

function serving() {
  const { gate, letOn } = gated();
  const poet = agentOf(async function* ({ messages, runId }, { signal }) {
    const content = messages.at(-1)!.content;
    const [thought, answer] = [`${runId}-r`, `${runId}-a`];
    yield { type: EventType.REASONING_START, messageId: thought };
    yield { type: EventType.REASONING_MESSAGE_START, messageId: thought, role: "reasoning" };
    yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId: thought, delta: "hm" };
    yield { type: EventType.REASONING_MESSAGE_END, messageId: thought };
    yield { type: EventType.REASONING_END, messageId: thought };
    yield { type: EventType.TOOL_CALL_START, toolCallId: `${runId}-c`, toolCallName: "look", parentMessageId: answer };
    yield { type: EventType.TOOL_CALL_ARGS, toolCallId: `${runId}-c`, delta: '{"at":' };
    yield { type: EventType.TOOL_CALL_ARGS, toolCallId: `${runId}-c`, delta: "1}" };
    yield { type: EventType.TOOL_CALL_END, toolCallId: `${runId}-c` };
    yield { type: EventType.TOOL_CALL_RESULT, toolCallId: `${runId}-c`, messageId: `${runId}-t`, content: "seen" };
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-b`, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-b`, delta: `${messages.length}: ` };
    if (content === "wait") {
      await Promise.race([gate, new Promise((end) => signal.addEventListener("abort", end, { once: true }))]);
    }
    if (content === "fail") throw new Error("no");
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-b`, delta: JSON.stringify(content) };
    yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-b` };
  });
  const host = serveRuntime({ dbName: freshDb(), stopGraceMs: 50, agents: { poet } });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    letOn();
    await runtime.close();
    await host.close();
  });
  const transport = runtimeTransport(runtime, "poet");
  const ask = (messages: UIMessage[], trigger: "submit-message" | "regenerate-message", messageId?: string) =>
    transport.sendMessages({ chatId: "t", trigger, messageId, messages, abortSignal: undefined });
  const stored = async () => uiMessagesOf((await runtime.threads.messages("t")).messages);
  return { runtime, transport, ask, stored, letOn };
}

const user = (id: string, text: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });

/** What `useChat` makes of a stream. */
async function messageOf(stream: ReadableStream<UIMessageChunk>): Promise<UIMessage> {
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
  return last!;
}

const textOf = ({ parts }: UIMessage): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("");
const kindsOf = ({ parts }: UIMessage): string[] => parts.map(({ type }) => type);

describe("the transport of the AI SDK's chat", () => {
  test("an answer streams; what is stored is the same message", async () => {
    const { ask, stored } = serving();
    const answer = await messageOf(await ask([user("u1", "hello")], "submit-message"));
    expect(kindsOf(answer)).toEqual(["reasoning", "dynamic-tool", "text"]);
    expect(textOf(answer)).toBe('1: "hello"');
    expect(answer.parts[1]).toMatchObject({
      toolName: "look",
      input: { at: 1 },
      output: "seen",
      state: "output-available",
    });
    const [question, again] = await stored();
    expect(question).toEqual(user("u1", "hello"));
    expect([again!.id, kindsOf(again!), textOf(again!)]).toEqual([answer.id, kindsOf(answer), textOf(answer)]);
    expect(again!.parts[1]).toMatchObject({ toolName: "look", input: { at: 1 }, output: "seen" });
  });

  test("an answer is regenerated, a question edited: the thread branches", async () => {
    const { ask, stored } = serving();
    const answer = await messageOf(await ask([user("u1", "one")], "submit-message"));
    await messageOf(await ask([user("u1", "one"), answer, user("u2", "two")], "submit-message"));
    expect((await stored()).map(textOf)).toHaveLength(4);
    // As `regenerate()` asks, without an id.
    const again = await messageOf(await ask([user("u1", "one")], "regenerate-message"));
    expect(again.id).not.toBe(answer.id);
    expect((await stored()).map(textOf)).toEqual(["one", '1: "one"']);
    await messageOf(await ask([user("u1", "uno")], "submit-message", "u1"));
    expect((await stored()).map(textOf)).toEqual(["uno", '1: "uno"']);
  });

  test("a page that comes in the middle reads on; where nothing runs there is nothing to read", async () => {
    const { ask, transport, letOn } = serving();
    expect(await transport.reconnectToStream({ chatId: "t" })).toBeNull();
    const first = messageOf(await ask([user("u1", "wait")], "submit-message"));
    await vi.waitFor(async () => expect(await transport.reconnectToStream({ chatId: "t" })).not.toBeNull());
    const second = messageOf((await transport.reconnectToStream({ chatId: "t" }))!);
    letOn();
    expect(await second).toEqual(await first);
    expect(textOf(await second)).toBe('1: "wait"');
  });

  test("a stop of the page stops the run; a reader that leaves does not (L11)", async () => {
    const { runtime, transport, ask } = serving();
    const isRunning = () => runtime.runner().isRunning({ threadId: "t" });
    const leaving = await ask([user("u1", "wait")], "submit-message");
    await vi.waitFor(async () => expect(await isRunning()).toBe(true));
    await leaving.cancel();
    expect(await isRunning()).toBe(true);
    await runtime.runner().stop({ threadId: "t" });
    await vi.waitFor(async () => expect(await isRunning()).toBe(false));
    const stopping = new AbortController();
    const { signal: abortSignal } = stopping;
    const messages = [user("u2", "wait")];
    const options = { chatId: "t", trigger: "submit-message", messageId: undefined, messages, abortSignal } as const;
    const answer = messageOf(await transport.sendMessages(options));
    await vi.waitFor(async () => expect(await isRunning()).toBe(true));
    stopping.abort();
    await answer;
    await vi.waitFor(async () => expect(await isRunning()).toBe(false));
    expect((await runtime.runner().listRuns("t"))[0]!.status).toBe("stopped");
  });

  test("a run that fails, and one that is refused, fail for the page", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => void vi.restoreAllMocks());
    const { ask, letOn } = serving();
    await expect(messageOf(await ask([user("u1", "fail")], "submit-message"))).rejects.toThrow("no");
    const waiting = messageOf(await ask([user("u2", "wait")], "submit-message"));
    await expect(messageOf(await ask([user("u3", "now")], "submit-message"))).rejects.toThrow("Thread already running");
    letOn();
    await waiting;
  });

  test("files go with a question, and come back", async () => {
    const { ask, stored } = serving();
    const url = "data:image/png;base64,eA==";
    const file = { type: "file", mediaType: "image/png", url } as const;
    await messageOf(
      await ask([{ id: "u1", role: "user", parts: [{ type: "text", text: "see" }, file] }], "submit-message"),
    );
    expect((await stored())[0]!.parts).toEqual([{ type: "text", text: "see" }, file]);
  });
});
