import { EventType } from "@ag-ui/core";
import {
  AbstractChat,
  readUIMessageStream,
  type ChatState,
  type ChatStatus,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { agentOf, collect, freshDb, gated, inputOf } from "../../../../test/unit/runner/kit.js";
import { runtimeTransport, uiMessagesIn } from "../../../recipes/ai-sdk.js";

function serving() {
  const { gate, letOn } = gated();
  const poet = agentOf(async function* ({ messages, runId }, { signal }) {
    const content = messages.at(-1)!.content;
    const [thought, answer] = [`${runId}-r`, `${runId}-a`];
    const told = String(content);
    if (told.startsWith("data")) yield { type: EventType.CUSTOM, name: "found", value: 3 };
    if (told === "data alone") return;
    for (const role of told === "transcribe" ? (["user", "system", "developer"] as const) : []) {
      yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-${role}`, role };
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-${role}`, delta: role };
      yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-${role}` };
    }
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
    if (told.endsWith("wait")) {
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
  const stored = () => uiMessagesIn(runtime, "t");
  return { runtime, transport, ask, stored, letOn };
}

const user = (id: string, text: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });

/** What `useChat` makes of a stream. */
async function messageOf(stream: ReadableStream<UIMessageChunk>): Promise<UIMessage> {
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
  return last!;
}

/** What a page shows of a chat. */
class Shown implements ChatState<UIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined;
  constructor(public messages: UIMessage[]) {}
  readonly pushMessage = (message: UIMessage) => void (this.messages = [...this.messages, message]);
  readonly popMessage = () => void (this.messages = this.messages.slice(0, -1));
  readonly replaceMessage = (index: number, message: UIMessage) =>
    void (this.messages = this.messages.with(index, structuredClone(message)));
  readonly snapshot = <T>(thing: T): T => structuredClone(thing);
}

/** A page's chat, as `useChat` has it. */
class Page extends AbstractChat<UIMessage> {}

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

  test("what an agent writes down for others than itself is no part of its answer", async () => {
    const { ask } = serving();
    const answer = await messageOf(await ask([user("u1", "transcribe")], "submit-message"));
    expect(kindsOf(answer)).toEqual(["reasoning", "dynamic-tool", "text"]);
    expect(textOf(answer)).toBe('1: "transcribe"');
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

  test("a page that reads on anew does not stop the run; a stop of it does", async () => {
    const { runtime, transport, ask, letOn } = serving();
    const statusOf = async () => (await runtime.runner().listRuns("t"))[0]!.status;
    /** Asks, and reads on in another page, twice: as `useChat` does under StrictMode, which stops a chat of its own, too. */
    const readTwice = async (id: string, stops: boolean) => {
      await (await ask([user(id, "wait")], "submit-message")).cancel();
      const chat = new Page({ id: "t", transport, state: new Shown(await uiMessagesIn(runtime, "t")) });
      const ends = [chat.resumeStream()];
      if (stops) ends.push(chat.stop());
      ends.push(chat.resumeStream());
      await vi.waitFor(() => expect(chat.status).toBe("streaming"));
      expect(await statusOf()).toBe("running");
      return { chat, ends: Promise.all(ends) };
    };
    for (const [id, stops] of [
      ["u1", false],
      ["u2", true],
    ] as const) {
      const { chat, ends } = await readTwice(id, stops);
      await chat.stop();
      await ends;
      await vi.waitFor(async () => expect(await statusOf()).toBe("stopped"));
    }
    const { chat, ends } = await readTwice("u3", true);
    letOn();
    await ends;
    expect(textOf(chat.messages.at(-1)!)).toContain('"wait"');
    expect(await statusOf()).toBe("finished");
  });

  test("a page that is opened in the middle of an answer shows it once, also if data came before", async () => {
    const { runtime, transport, ask, letOn } = serving();
    await (await ask([user("u1", "data and wait")], "submit-message")).cancel();
    await vi.waitFor(async () => expect(await uiMessagesIn(runtime, "t")).toHaveLength(2));
    const chat = new Page({ id: "t", transport, state: new Shown(await uiMessagesIn(runtime, "t")) });
    const end = chat.resumeStream();
    await vi.waitFor(() => expect(chat.status).toBe("streaming"));
    letOn();
    await end;
    expect(chat.messages.map(textOf)).toEqual(["data and wait", '1: "data and wait"']);
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

  test("data before the answer belong to it, and give it no other id; alone they come with the end", async () => {
    const { ask, stored } = serving();
    const answer = await messageOf(await ask([user("u1", "data")], "submit-message"));
    expect(kindsOf(answer)).toEqual(["data-found", "reasoning", "dynamic-tool", "text"]);
    expect((await stored())[1]!.id).toBe(answer.id);
    const alone = await messageOf(await ask([user("u2", "data alone")], "submit-message"));
    expect(alone.parts).toEqual([{ type: "data-found", data: 3 }]);
  });

  test("a thread is read whole, however long it is", async () => {
    const { runtime, stored } = serving();
    const messages = Array.from({ length: 1_100 }, (_, n) => ({ id: `u${n}`, role: "user" as const, content: `${n}` }));
    await collect(
      runtime.runner().run({ threadId: "t", agent: { agentId: "poet" }, input: inputOf("t", "r", messages) }),
    );
    const all = await stored();
    expect(all).toHaveLength(1_101);
    expect([textOf(all[0]!), textOf(all[1_099]!)]).toEqual(["0", "1099"]);
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
