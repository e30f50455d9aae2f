import { EventType, type AbstractAgent, type BaseEvent } from "@ag-ui/client";
import { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FrontendTools } from "../../../src/client/tools/frontend-tools.js";
import { ThreadStore } from "../../../src/client/store/thread-store.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, freshDb, gated } from "../runner/kit.js";
import { callsAre, host, hostOf, runsOf, shows, texts, tool, toolMessages, type Tab } from "./frontend-tools-kit.js";

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

  test("an answer that is no JSON is refused, and the call still waits", async () => {
    const { tab } = host();
    const one = tab(tool("a"));
    await one.store.send("a");
    await callsAre(one, "open");
    const { toolCallId } = one.store.getSnapshot().toolCalls[0]!;
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const refused = { code: "invalid-input", details: { field: "result" } };
    await expect(one.store.answerToolCall(toolCallId, circle)).rejects.toMatchObject(refused);
    await one.store.answerToolCall(toolCallId, "yes");
    await shows(one, "a: yes");
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

  test("interrupts a call that two presses of a button run again: it runs once, and is still this tab's", async () => {
    const { tab } = host();
    const first = tab(tool("a", hanging, { repeatable: false }));
    await first.store.send("a");
    await callsAre(first, "running here");
    const handler = vi.fn((_args: unknown, { signal }: { readonly signal: AbortSignal }) => {
      return new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
    });
    const [second, third] = [tab(tool("a", handler, { repeatable: false })), tab(tool("a"))];
    await callsAre(second, "running");
    await first.close();
    await callsAre(second, "interrupted");
    const { toolCallId } = second.store.getSnapshot().toolCalls[0]!;
    const ran = [second.store.runToolCallAgain(toolCallId), second.store.runToolCallAgain(toolCallId)];
    await ran[1];
    await callsAre(second, "running here");
    await third.store.answerToolCall(toolCallId, "by hand");
    await Promise.all(ran);
    await shows(second, "a: by hand");
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

test("a call whose handler ended while nobody looked is not shown on coming back to the thread", async () => {
  const { gate, letOn } = gated();
  const tools = new FrontendTools();
  tools.add(tool("slow", () => gate.then(() => "done")));
  const store = new ThreadStore(host().connect(), { agentId: "caller", threadId: "t", tools });
  const leave = store.subscribe(() => undefined);
  await store.send("slow");
  await vi.waitFor(() => expect(store.getSnapshot().toolCalls).toMatchObject([{ isHere: true }]));
  leave();
  letOn();
  await vi.waitFor(() => expect(store.agent.messages.at(-1)).toMatchObject({ content: "slow: done" }));
  onTestFinished(store.subscribe(() => undefined));
  await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ status: "ready", toolCalls: [] }));
});
