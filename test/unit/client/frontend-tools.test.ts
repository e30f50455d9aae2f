import { EventType, type AbstractAgent, type BaseEvent, type Message } from "@ag-ui/client";
import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import { FrontendTools, type FrontendTool, type ToolCallContext } from "../../../src/client/tools/frontend-tools.js";
import { runFrontendTools } from "../../../src/client/tools/run-frontend-tools.js";
import { ThreadStore } from "../../../src/client/store/thread-store.js";
import { serveRuntime, type RuntimeHost } from "../../../src/worker/serve-runtime.js";
import { agentOf, freshDb, gated } from "../runner/kit.js";

/** Calls the tools that the question names ("a b": two calls, "no tools": none); then says what they gave. */
const caller = () =>
  agentOf(async function* ({ messages, runId, tools }): AsyncGenerator<BaseEvent> {
    const last = messages.at(-1)!;
    const parentMessageId = `${runId}-m`;
    if (last.content === "no tools") return;
    if (last.role === "user") {
      const names = String(last.content).split(" ");
      for (const [at, name] of names.entries()) {
        const toolCallId = `${runId}-${at}`;
        yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: name, parentMessageId } as BaseEvent;
        yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: `{"n":${at}}` } as BaseEvent;
        yield { type: EventType.TOOL_CALL_END, toolCallId } as BaseEvent;
      }
      return;
    }
    const results = messages.flatMap((message) => (message.role === "tool" ? [String(message.content)] : []));
    const offered = tools.map(({ name }) => name).join("+");
    yield { type: EventType.TEXT_MESSAGE_START, messageId: parentMessageId, role: "assistant" } as BaseEvent;
    const delta = `${offered}: ${results.join(", ")}`;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: parentMessageId, delta } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId: parentMessageId } as BaseEvent;
  });

function host(agents: Readonly<Record<string, AbstractAgent>> = { caller: caller() }, dbName = freshDb()) {
  return hostOf(serveRuntime({ dbName, stopGraceMs: 50, agents }));
}

function hostOf(served: RuntimeHost) {
  onTestFinished(() => served.close());
  const connect = (): RuntimeConnection => {
    const runtime = connectRuntime({ hosts: { page: async () => served.connect() } });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  /** A tab that shows the thread and offers these tools. */
  const tab = (...offered: readonly FrontendTool[]) => {
    const runtime = connect();
    const tools = new FrontendTools();
    for (const tool of offered) tools.add(tool);
    const store = new ThreadStore(runtime, { agentId: "caller", threadId: "t", tools });
    onTestFinished(store.subscribe(() => undefined));
    return { runtime, tools, store, close: () => runtime.close() };
  };
  return { served, connect, tab };
}

type Tab = ReturnType<ReturnType<typeof host>["tab"]>;

const tool = (name: string, handler?: FrontendTool["handler"], more: Partial<FrontendTool> = {}): FrontendTool => ({
  name,
  description: name,
  parameters: { type: "object" },
  ...(handler !== undefined && { handler }),
  ...more,
});

const texts = ({ store }: Tab): string[] =>
  store
    .getSnapshot()
    .messages.flatMap(({ role, content }: Message) => (role === "assistant" && content ? [String(content)] : []));
const toolMessages = ({ store }: Tab): Message[] => store.getSnapshot().messages.filter(({ role }) => role === "tool");
const shows = (tab: Tab, text: string): Promise<void> => vi.waitFor(() => expect(texts(tab)).toEqual([text]), 10_000);
const calls = ({ store }: Tab) =>
  store.getSnapshot().toolCalls.map(({ status, isHere }) => `${status}${isHere ? " here" : ""}`);
const callsAre = (tab: Tab, ...expected: string[]): Promise<void> =>
  vi.waitFor(() => expect(calls(tab)).toEqual(expected), 10_000);
const runsOf = async ({ runtime }: Tab) => runtime.runner().listRuns("t");

describe("a call of a front-end tool", () => {
  test("is run once, in one of the tabs that offer it; its result goes on once, and is shown in all", async () => {
    const { tab } = host();
    let count = 0;
    const handler = (args: unknown) => ({ args, count: ++count });
    const tabs = [tab(tool("a", handler)), tab(tool("a", handler)), tab()] as const;
    await tabs[0].store.send("a");
    for (const one of tabs) await shows(one, 'a: {"args":{"n":0},"count":1}');
    expect(count).toBe(1);
    for (const one of tabs) {
      expect(toolMessages(one)).toMatchObject([{ content: '{"args":{"n":0},"count":1}' }]);
      await callsAre(one);
    }
    expect(await runsOf(tabs[0])).toMatchObject([{ status: "finished" }, { status: "finished" }]);
  });

  test("is run by a tab that comes to offer it after the reload of the one that asked", async () => {
    const { tab } = host();
    const first = tab();
    first.tools.add(tool("a"));
    await first.store.send("a");
    await callsAre(first, "open");
    await first.close();
    const second = tab();
    await callsAre(second, "open");
    second.tools.add(tool("a", () => "late"));
    await shows(second, "a: late");
  });

  test("two calls of one run, in two tabs: the agent goes on when both have their results", async () => {
    const { tab } = host();
    const { gate, letOn } = gated();
    const [a, b] = [tab(tool("a", () => "one")), tab(tool("b", async () => (await gate, "two")))];
    a.tools.add(tool("b"));
    await a.store.send("a b");
    await callsAre(a, "answered", "running");
    await callsAre(b, "answered", "running here");
    expect(texts(a)).toEqual([]);
    letOn();
    for (const one of [a, b]) {
      await vi.waitFor(() => expect(texts(one)).toHaveLength(1), 10_000);
      expect(texts(one)[0]).toMatch(/: one, two$/);
    }
    expect(await runsOf(a)).toHaveLength(2);
  });

  test("a handler that throws, and arguments that are no JSON, are results that say so", async () => {
    const broken = agentOf(async function* ({ messages, runId }): AsyncGenerator<BaseEvent> {
      if (messages.at(-1)!.role !== "user") return;
      yield { type: EventType.TOOL_CALL_START, toolCallId: runId, toolCallName: "a" } as BaseEvent;
      yield { type: EventType.TOOL_CALL_ARGS, toolCallId: runId, delta: "{" } as BaseEvent;
      yield { type: EventType.TOOL_CALL_END, toolCallId: runId } as BaseEvent;
    });
    const handler = vi.fn();
    const one = host({ caller: broken }).tab(tool("a", handler));
    await one.store.send("go");
    await vi.waitFor(() =>
      expect(toolMessages(one)).toMatchObject(
        [{ content: /^Error: /, error: /JSON/ }].map(() => ({ error: expect.stringMatching(/JSON/) })),
      ),
    );
    expect(handler).not.toHaveBeenCalled();
    const other = host().tab(
      tool("a", () => {
        throw new Error("no camera");
      }),
    );
    await other.store.send("a");
    await shows(other, "a: Error: no camera");
    expect(toolMessages(other)).toMatchObject([{ content: "Error: no camera", error: "no camera" }]);
  });

  test("without a handler somebody is asked, in any tab: one answer counts, the other is told", async () => {
    const { tab } = host();
    const [a, b] = [tab(tool("a")), tab(tool("a"))];
    await a.store.send("a");
    await callsAre(a, "open");
    await callsAre(b, "open");
    const { toolCallId } = b.store.getSnapshot().toolCalls[0]!;
    const answers = await Promise.allSettled([
      a.store.answerToolCall(toolCallId, "yes"),
      b.store.answerToolCall(toolCallId, { no: true }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const [refused] = answers.filter((answer) => answer.status === "rejected");
    expect(refused).toMatchObject({ reason: { code: "call-over" } });
    const said = answers[0].status === "fulfilled" ? "a: yes" : 'a: {"no":true}';
    for (const one of [a, b]) await shows(one, said);
  });

  test("an answer of a person takes the place of a handler, whose signal aborts", async () => {
    const { tab } = host();
    const aborted = vi.fn();
    const [a, b] = [
      tab(
        tool("a", (_args, { signal }) => {
          signal.addEventListener("abort", aborted);
          return new Promise(() => undefined);
        }),
      ),
      tab(tool("a")),
    ];
    await a.store.send("a");
    await callsAre(b, "running");
    await b.store.answerToolCall(b.store.getSnapshot().toolCalls[0]!.toolCallId, "by hand");
    for (const one of [a, b]) await shows(one, "a: by hand");
    await vi.waitFor(() => expect(aborted).toHaveBeenCalled());
  });
});

describe("a tab that dies in the middle of a handler", () => {
  const hanging = () => new Promise<never>(() => undefined);

  test("leaves the call to another one that offers the tool", async () => {
    const { tab } = host();
    const first = tab(tool("a", hanging));
    await first.store.send("a");
    await callsAre(first, "running here");
    const second = tab(tool("a", () => "second"));
    await callsAre(second, "running");
    await first.close();
    await shows(second, "a: second");
  });

  test("interrupts a call that must not run twice, until somebody has it run again", async () => {
    const { tab } = host();
    const first = tab(tool("a", hanging, { repeatable: false }));
    await first.store.send("a");
    await callsAre(first, "running here");
    const handler = vi.fn(() => "again");
    const [second, third] = [tab(tool("a", handler, { repeatable: false })), tab()];
    await callsAre(second, "running");
    await first.close();
    await callsAre(second, "interrupted");
    await callsAre(third, "interrupted");
    expect(handler).not.toHaveBeenCalled();
    const { toolCallId } = third.store.getSnapshot().toolCalls[0]!;
    await expect(third.store.runToolCallAgain(toolCallId)).rejects.toMatchObject({ code: "call-over" });
    await second.store.runToolCallAgain(toolCallId);
    for (const one of [second, third]) await shows(one, "a: again");
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test("or until somebody gives the result", async () => {
    const { tab } = host();
    const first = tab(tool("a", hanging, { repeatable: false }));
    await first.store.send("a");
    await callsAre(first, "running here");
    await first.close();
    const second = tab(tool("a"));
    await callsAre(second, "interrupted");
    await second.store.answerToolCall(second.store.getSnapshot().toolCalls[0]!.toolCallId, "done by hand");
    await shows(second, "a: done by hand");
  });

  test("after its result was recorded: another tab goes on with it", async () => {
    const { tab, connect } = host();
    const first = tab();
    first.tools.add(tool("a"));
    await first.store.send("a");
    await callsAre(first, "open");
    const { toolCallId } = first.store.getSnapshot().toolCalls[0]!;
    const alone = connect();
    await alone.toolCalls.answer({ threadId: "t", toolCallId, token: "1", by: "user", content: "kept" });
    await first.close();
    const second = tab(tool("a"));
    await shows(second, "a: kept");
  });
});

test("handlers are told when the thread has gone on without their calls", async () => {
  const { tab } = host();
  const aborted = vi.fn();
  const [a, b] = [
    tab(
      tool("a", (_args, { signal }) => {
        signal.addEventListener("abort", aborted);
        return new Promise(() => undefined);
      }),
    ),
    tab(tool("b", () => "b")),
  ];
  await a.store.send("a");
  await callsAre(b, "running");
  // Of this one no call is left that a list could tell of.
  await b.store.send("no tools");
  await vi.waitFor(() => expect(aborted).toHaveBeenCalledTimes(1));
});

test("the agent that called goes on, in whichever tab, whatever agent that tab runs by default", async () => {
  const ran: string[] = [];
  const named = (name: string): AbstractAgent =>
    agentOf(async function* (input): AsyncGenerator<BaseEvent> {
      ran.push(name);
      if (input.messages.at(-1)!.role !== "user") return;
      yield { type: EventType.TOOL_CALL_START, toolCallId: input.runId, toolCallName: "a" } as BaseEvent;
      yield { type: EventType.TOOL_CALL_END, toolCallId: input.runId } as BaseEvent;
    });
  const { tab } = host({ caller: named("caller"), critic: named("critic") });
  const [a, b] = [tab(tool("a")), tab(tool("a"))];
  await a.store.send("go", { agentId: "critic" });
  await callsAre(b, "open");
  await b.store.answerToolCall(b.store.getSnapshot().toolCalls[0]!.toolCallId, "x");
  await vi.waitFor(async () => expect((await runsOf(a)).map(({ status }) => status)).toEqual(["finished", "finished"]));
  expect(ran).toEqual(["critic", "critic"]);
});

test("results come in the same order in every tab, before what is sent with them", async () => {
  const { tab } = host();
  const tabs = [
    tab(
      tool("a", () => "1"),
      tool("b", () => "2"),
      tool("c"),
    ),
    tab(),
  ] as const;
  await tabs[0].store.send("a b c");
  await callsAre(tabs[0], "answered", "answered", "open");
  await tabs[0].store.send("a");
  const roles = ({ store }: Tab) =>
    store
      .getSnapshot()
      .messages.slice(0, -1)
      .map(({ role, id }) => `${role} ${id}`);
  for (const one of tabs) await vi.waitFor(() => expect(toolMessages(one)).toHaveLength(3), 10_000);
  for (const one of tabs) await vi.waitFor(() => expect(one.store.getSnapshot().run.is).toBe("idle"));
  expect(roles(tabs[0])).toEqual(roles(tabs[1]));
});

test("a run that went on and failed goes on again with the results: no handler runs twice", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  let failures = 1;
  const failing = agentOf(async function* ({ messages, runId }): AsyncGenerator<BaseEvent> {
    if (messages.at(-1)!.role === "tool") {
      if (failures-- > 0) throw new Error("no network");
      return;
    }
    yield { type: EventType.TOOL_CALL_START, toolCallId: runId, toolCallName: "a" } as BaseEvent;
    yield { type: EventType.TOOL_CALL_END, toolCallId: runId } as BaseEvent;
  });
  const handler = vi.fn(() => "paid");
  const one = host({ caller: failing }).tab(tool("a", handler, { repeatable: false }));
  await one.store.send("go");
  await vi.waitFor(() =>
    expect(one.store.getSnapshot().run).toMatchObject({ is: "idle", last: { status: "errored" } }),
  );
  // The run tells of itself.
  expect(one.store.getSnapshot().error).toBeUndefined();
  await one.store.retry();
  await vi.waitFor(() =>
    expect(one.store.getSnapshot().run).toMatchObject({ is: "idle", last: { status: "finished" } }),
  );
  expect(handler).toHaveBeenCalledTimes(1);
  expect(toolMessages(one)).toHaveLength(1);
});

test("a question whose agent had results of tools of its own is run again from the question", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const asked: number[] = [];
  const failing = agentOf(async function* ({ messages, runId }): AsyncGenerator<BaseEvent> {
    asked.push(messages.length);
    yield { type: EventType.TOOL_CALL_START, toolCallId: runId, toolCallName: "its-own" } as BaseEvent;
    yield { type: EventType.TOOL_CALL_END, toolCallId: runId } as BaseEvent;
    yield {
      type: EventType.TOOL_CALL_RESULT,
      messageId: `${runId}-r`,
      toolCallId: runId,
      content: "done",
    } as BaseEvent;
    if (asked.length === 1) throw new Error("no network");
  });
  const one = host({ caller: failing }).tab(tool("a"));
  await one.store.send("go");
  await vi.waitFor(() =>
    expect(one.store.getSnapshot().run).toMatchObject({ is: "idle", last: { status: "errored" } }),
  );
  await one.store.retry();
  await vi.waitFor(() => expect(asked).toEqual([1, 1]));
});

test.each(["supersede", "queue", "throw"] as const)(
  "a run that goes on with results replaces no live run (%s)",
  async (onConcurrentRun) => {
    const { gate, letOn } = gated();
    const slow = agentOf(async function* (): AsyncGenerator<BaseEvent> {
      await gate;
      yield* [];
    });
    const runner = new IndexedDBAgentRunner({ dbName: freshDb(), onConcurrentRun });
    const { connect } = hostOf(serveRuntime({ runner, agents: { slow } }));
    const agent = connect().agent("slow", { threadId: "t" });
    agent.addMessage({ id: "1", role: "user", content: "go" });
    const running = agent.runAgent();
    await vi.waitFor(async () => expect(await connect().runner().isRunning({ threadId: "t" })).toBe(true));
    const refused = connect().agent("slow", { threadId: "t" }).runAfterToolCalls("next");
    await expect(refused).rejects.toMatchObject({ code: "call-over" });
    letOn();
    await running;
    expect(await connect().runner().listRuns("t")).toMatchObject([{ status: "finished" }]);
  },
);

describe("a thread whose calls wait", () => {
  test("goes on without them with the next message; a late result is refused", async () => {
    const { tab } = host();
    const { gate, letOn } = gated();
    const one = tab(
      tool("a", async () => (await gate, "late")),
      tool("b", () => "b"),
    );
    await one.store.send("a");
    await callsAre(one, "running here");
    await one.store.send("b");
    await shows(one, "a+b: b");
    letOn();
    await vi.waitFor(() => expect(one.store.getSnapshot().run.is).toBe("idle"));
    await one.store.send("b");
    await vi.waitFor(() => expect(texts(one)).toEqual(["a+b: b", "a+b: b, b"]), 10_000);
    expect(toolMessages(one)).toHaveLength(2);
  });

  test("gives results that are there to a message that comes before all are", async () => {
    const { tab } = host();
    const one = tab(
      tool("a", () => "kept"),
      tool("b"),
    );
    await one.store.send("a b");
    await callsAre(one, "answered", "open");
    await one.store.send("a");
    await vi.waitFor(() => expect(toolMessages(one).map(({ content }) => content)).toEqual(["kept", "kept"]), 10_000);
    const roles = one.store.getSnapshot().messages.map(({ role }) => role);
    expect(roles.slice(0, 4)).toEqual(["user", "assistant", "tool", "user"]);
  });

  test("keeps a result for the next message if the tool says so", async () => {
    const { tab } = host();
    const one = tab(tool("a", () => "kept", { followUp: false }));
    await one.store.send("a");
    await callsAre(one, "answered");
    await one.store.send("a");
    await vi.waitFor(() => expect(toolMessages(one)).toHaveLength(1));
    expect(await runsOf(one)).toHaveLength(2);
  });

  test("is the same after a restart of the host", async () => {
    const dbName = freshDb();
    const { tab, served } = host({ caller: caller() }, dbName);
    const first = tab(
      tool("a", () => "a"),
      tool("b"),
    );
    await first.store.send("a b");
    await callsAre(first, "answered", "open");
    await served.close();
    const second = host({ caller: caller() }, dbName).tab(
      tool("a", () => "never"),
      tool("b"),
    );
    await callsAre(second, "answered", "open");
    await second.store.answerToolCall(second.store.getSnapshot().toolCalls[1]!.toolCallId, "b");
    await shows(second, "a+b: a, b");
  });

  test("a result that the sender brings itself has precedence", async () => {
    const { tab } = host();
    const one = tab(tool("a", () => "ours", { followUp: false }));
    await one.store.send("a");
    await callsAre(one, "answered");
    const { toolCallId } = one.store.getSnapshot().toolCalls[0]!;
    const { agent } = one.store;
    agent.addMessage({ id: "own", role: "tool", toolCallId, content: "own" });
    await agent.runAgent();
    await vi.waitFor(() => expect(toolMessages(one)).toMatchObject([{ content: "own" }]));
  });

  test("only calls that wait are claimed and answered", async () => {
    const { tab } = host();
    const one = tab(tool("a"));
    await one.store.send("a");
    await callsAre(one, "open");
    const { toolCalls } = one.runtime;
    const { toolCallId } = one.store.getSnapshot().toolCalls[0]!;
    const named = { threadId: "t", toolCallId, token: "mine" };
    expect(await toolCalls.claim(named)).toBe(true);
    expect(await toolCalls.claim(named)).toBe(true);
    expect(await toolCalls.claim({ ...named, token: "other" })).toBe(false);
    const answer = { ...named, by: "handler", content: "x" } as const;
    await expect(toolCalls.answer({ ...answer, token: "other" })).rejects.toMatchObject({ code: "call-over" });
    await expect(toolCalls.answer({ ...answer, toolCallId: "none" })).rejects.toMatchObject({ code: "call-over" });
    await expect(toolCalls.claim({ ...named, threadId: "none" })).rejects.toMatchObject({ code: "call-over" });
    await expect(toolCalls.claim({ ...named, token: "" })).rejects.toMatchObject({ code: "invalid-input" });
    await expect(one.store.agent.runAfterToolCalls("another")).rejects.toMatchObject({ code: "call-over" });
    await toolCalls.answer(answer);
    await toolCalls.answer(answer);
    await shows(one, "a: x");
  });
});

test("a LocalAgent without a store runs the tools of its page", async () => {
  const runtime = host().connect();
  const agent = runtime.agent("caller", { threadId: "t" });
  const tools = new FrontendTools();
  tools.add(tool("a", () => "plain"));
  onTestFinished(agent.follow());
  onTestFinished(runFrontendTools(runtime, agent, tools));
  agent.addMessage({ id: "1", role: "user", content: "a" });
  await agent.runAgent({ tools: tools.definitions("caller") });
  await vi.waitFor(
    () => expect(agent.messages.at(-1)).toMatchObject({ role: "assistant", content: "a: plain" }),
    10_000,
  );
  expect(agent.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
});

test("an agent that is set to another thread runs the calls of that one; a handler that goes on gives its result to its own", async () => {
  const { connect } = host();
  const runtime = connect();
  const tools = new FrontendTools();
  const { gate, letOn } = gated();
  const seen: string[] = [];
  const signals: AbortSignal[] = [];
  tools.add(
    tool("a", async (_args, { threadId, signal }) => {
      seen.push(threadId);
      signals.push(signal);
      if (threadId === "first") await gate;
      return `of ${threadId}`;
    }),
  );
  const agent = runtime.agent("caller", { threadId: "first" });
  onTestFinished(runFrontendTools(runtime, agent, tools));
  /** As a front end does that has one agent for all threads. */
  const ask = async (threadId: string): Promise<void> => {
    agent.threadId = threadId;
    agent.setMessages([]);
    const unfollow = agent.follow();
    onTestFinished(unfollow);
    agent.addMessage({ id: `${threadId}-q`, role: "user", content: "a" });
    await agent.runAgent({ tools: tools.definitions("caller") });
    await vi.waitFor(() => expect(seen).toContain(threadId), 10_000);
    unfollow();
  };
  const resultsIn = async (threadId: string) =>
    (await runtime.threads.messages(threadId)).messages.flatMap(({ role, content }) =>
      role === "tool" ? [content] : [],
    );
  await ask("first");
  await ask("second");
  await vi.waitFor(async () => expect(await resultsIn("second")).toEqual(["of second"]), 10_000);
  letOn();
  await vi.waitFor(() => expectAnswered(), 10_000);
  expect(seen).toEqual(["first", "second"]);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);

  async function expectAnswered(): Promise<void> {
    const waiting = await new Promise<readonly { readonly status: string }[]>((resolve, reject) => {
      const watching = runtime.toolCalls.watch("first").subscribe({ next: (now) => resolve(now.calls), error: reject });
      onTestFinished(() => watching.unsubscribe());
    });
    expect(waiting).toMatchObject([{ status: "answered" }]);
  }
});

test("of two tabs that offer a tool, the one that asked runs it", async () => {
  const { tab } = host();
  const ran: string[] = [];
  const offering = (name: string): FrontendTool => tool("a", () => ran.push(name));
  const [asking, other] = [tab(offering("asking")), tab(offering("other"))];
  for (const question of ["a", "a a"]) {
    await asking.store.send(question);
    await vi.waitFor(() => expect(texts(other).length).toBe(question.length > 1 ? 2 : 1), 10_000);
  }
  expect(ran).toEqual(["asking", "asking", "asking"]);
});

test("a result that the page shows before it is recorded is the one that is recorded", async () => {
  const { connect, tab } = host();
  const runtime = connect();
  const agent = runtime.agent("caller", { threadId: "t" });
  const tools = new FrontendTools();
  const ids: string[] = [];
  const show = (_args: unknown, { toolCallId, resultId }: ToolCallContext): string => {
    ids.push(resultId);
    agent.addMessage({ id: resultId, role: "tool", toolCallId, content: "early" });
    return "early";
  };
  tools.add(tool("a", show));
  onTestFinished(agent.follow());
  onTestFinished(runFrontendTools(runtime, agent, tools));
  agent.addMessage({ id: "1", role: "user", content: "a" });
  await agent.runAgent({ tools: tools.definitions("caller") });
  const other = tab();
  await shows(other, "a: early");
  expect(toolMessages(other)).toMatchObject([{ id: ids[0], content: "early" }]);
  await vi.waitFor(() =>
    expect(agent.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]),
  );
});

test("a result has the id that its handler was told", async () => {
  const { tab } = host();
  let id: string | undefined;
  const one = tab(tool("a", (_args, { resultId }) => (id = resultId)));
  await one.store.send("a");
  await vi.waitFor(() => expect(toolMessages(one)).toMatchObject([{ id }]), 10_000);
  expect(id).toBeDefined();
});

test("a tool is offered until it is taken back; one of an agent's own comes before one of all", () => {
  const tools = new FrontendTools();
  const names = (agentId: string) =>
    tools.definitions(agentId).map(({ name, description }) => `${name} ${description}`);
  const remove = tools.add(tool("a"));
  const replaced = tools.add({
    ...tool("a", () => "x", { repeatable: false, followUp: false }),
    description: "second",
  });
  remove();
  expect(tools.definitions("one")).toEqual([{ name: "a", description: "second", parameters: { type: "object" } }]);
  tools.add({ ...tool("a"), description: "own", agentId: "one" });
  expect([names("one"), names("two")]).toEqual([["a own"], ["a second"]]);
  replaced();
  expect([names("one"), names("two")]).toEqual([["a own"], []]);
  expect(() => tools.add({ ...tool(""), name: "" })).toThrow(expect.objectContaining({ code: "invalid-input" }));
});
