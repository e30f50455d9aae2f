import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FrontendTools, type FrontendTool, type ToolCallContext } from "../../../src/client/tools/frontend-tools.js";
import { runFrontendTools } from "../../../src/client/tools/run-frontend-tools.js";
import { agentOf, freshDb, gated } from "../runner/kit.js";
import { caller, callsAre, host, runsOf, shows, texts, tool, toolMessages } from "./frontend-tools-kit.js";

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

test("a run with results of tools that asks a person is answered under its own id", async () => {
  const asking = agentOf(async function* ({ threadId, runId, messages, resume }): AsyncGenerator<BaseEvent> {
    if (resume !== undefined) return;
    if (messages.at(-1)?.role === "tool") {
      const interrupts = [{ id: "ask", reason: "confirm" }];
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
      return;
    }
    yield { type: EventType.TOOL_CALL_START, toolCallId: "call", toolCallName: "a" } as BaseEvent;
    yield { type: EventType.TOOL_CALL_END, toolCallId: "call" } as BaseEvent;
  });
  const one = host({ caller: asking }).tab(tool("a", () => "x"));
  await one.store.send("a");
  const { agent } = one.store;
  await vi.waitFor(() => expect(agent.pendingInterrupts).toHaveLength(1), 10_000);
  const { runId } = (await runsOf(one))[0]!;
  await agent.runAgent({ runId, resume: [{ interruptId: "ask", status: "resolved" }] });
  const runs = (await runsOf(one)).map((run) => [run.runId === runId, run.status]);
  expect(runs).toEqual([
    [true, "finished"],
    [true, "finished"],
    [false, "finished"],
  ]);
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
    await vi.waitFor(() => {
      expect(texts(other).length).toBe(question.length > 1 ? 2 : 1);
      // Each tab is told for itself.
      expect(asking.store.getSnapshot().run.is).toBe("idle");
    }, 10_000);
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
