import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { agentOf, gated, user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

const ids = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

/** A thread of two turns, the second of which asks; `holding` waits in the middle of its answer. */
async function asked() {
  const { gate, letOn } = gated();
  const speaking = (runId: string): BaseEvent[] => [
    { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" } as BaseEvent,
    { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta: "half " } as BaseEvent,
  ];
  const asking = agentOf(async function* ({ threadId, runId }) {
    yield* speaking(runId);
    yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` } as BaseEvent;
    const interrupts = [{ id: "ask", reason: "sure?" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
  });
  const holding = agentOf(async function* ({ runId }) {
    yield* speaking(runId);
    await gate;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta: "and half" } as BaseEvent;
  });
  const { runner, hosts } = await hostWith(1, { asking, holding });
  onTestFinished(letOn);
  const connection = () => {
    const runtime = connectRuntime({ hosts });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  const first = connection().agent("asking", { threadId: "t" });
  first.addMessage(user("may"));
  await first.runAgent({ runId: "asks" });
  return { agent: connection().agent("asking", { threadId: "t" }), first, runner, letOn };
}

const THREAD = ["r0-u", "r0-a", "may", "asks-a"];

/** What the agent shows must be the thread, with the open question. */
function mustShow(agent: LocalAgent, thread: readonly string[] = THREAD): void {
  expect(ids(agent.messages)).toEqual(thread);
  expect(agent.pendingInterrupts.map(({ id }) => id)).toEqual(["ask"]);
}

describe("readings of a thread with an open interrupt that overlap", () => {
  test("connect, detach, connect in one tick, as React's StrictMode does: both settle, and the thread is there", async () => {
    const { agent } = await asked();
    const one = agent.connectAgent();
    const detached = agent.detachActiveRun();
    const two = agent.connectAgent();
    await Promise.all([one, detached, two]);
    mustShow(agent);
  });

  test("again, once the question is known: both settle", async () => {
    const { agent } = await asked();
    await agent.connectAgent();
    const one = agent.connectAgent();
    const detached = agent.detachActiveRun();
    const two = agent.connectAgent();
    await Promise.all([one, detached, two]);
    mustShow(agent);
  });

  test("many at once settle, and so does a later one", async () => {
    const { agent } = await asked();
    await agent.connectAgent();
    await Promise.all([agent.connectAgent(), agent.connectAgent(), agent.connectAgent()]);
    mustShow(agent);
    agent.setMessages([]);
    await agent.connectAgent();
    mustShow(agent);
  });

  test("with messages cleared before each, as CopilotKit does", async () => {
    const { agent } = await asked();
    await agent.connectAgent();
    agent.setMessages([]);
    const one = agent.connectAgent();
    const detached = agent.detachActiveRun();
    agent.setMessages([]);
    const two = agent.connectAgent();
    await Promise.all([one, detached, two]);
    mustShow(agent);
  });

  test("one that is detached in the middle of a live run, and another one after it", async () => {
    const { agent, first, letOn } = await asked();
    first.agentId = "holding";
    first.addMessage(user("go"));
    const resume = [{ interruptId: "ask", status: "resolved" as const }];
    const run = first.runAgent({ runId: "held", resume });
    const one = agent.connectAgent();
    await vi.waitFor(() => expect(ids(agent.messages)).toContain("held-a"));
    await agent.detachActiveRun();
    await one;
    agent.setMessages([]);
    const two = agent.connectAgent();
    await vi.waitFor(() => expect(ids(agent.messages)).toContain("held-a"));
    letOn();
    await Promise.all([run, two]);
    expect(ids(agent.messages)).toEqual([...THREAD, "go", "held-a"]);
    expect(agent.messages.at(-1)?.content).toBe("half and half");
  });
});

describe("a following agent whose messages are cleared", () => {
  test("is given the thread by connectAgent()", async () => {
    const { agent } = await asked();
    onTestFinished(agent.follow());
    agent.setMessages([]);
    await agent.connectAgent();
    mustShow(agent);
    agent.setMessages([]);
    await agent.connectAgent();
    mustShow(agent);
  });

  test("also with follow() before or between overlapping readings", async () => {
    const { agent } = await asked();
    const before = agent.follow();
    agent.setMessages([]);
    const one = agent.connectAgent();
    const detached = agent.detachActiveRun();
    agent.setMessages([]);
    const two = agent.connectAgent();
    await Promise.all([one, detached, two]);
    mustShow(agent);
    before();
    agent.setMessages([]);
    const three = agent.connectAgent();
    const during = agent.follow();
    agent.setMessages([]);
    await Promise.all([three, agent.connectAgent()]);
    mustShow(agent);
    during();
    agent.setMessages([]);
    await agent.connectAgent();
    mustShow(agent);
  });

  test("in the middle of a live run: connectAgent() brings all, and the run goes on", async () => {
    const { agent, first, letOn } = await asked();
    onTestFinished(agent.follow());
    await agent.connectAgent();
    first.agentId = "holding";
    first.addMessage(user("go"));
    const resume = [{ interruptId: "ask", status: "resolved" as const }];
    const run = first.runAgent({ runId: "held", resume });
    await vi.waitFor(() => expect(ids(agent.messages)).toContain("held-a"));
    agent.setMessages([]);
    const reading = agent.connectAgent();
    await vi.waitFor(() => expect(ids(agent.messages)).toEqual([...THREAD, "go", "held-a"]));
    letOn();
    await Promise.all([run, reading]);
    expect(ids(agent.messages)).toEqual([...THREAD, "go", "held-a"]);
    expect(agent.messages.at(-1)?.content).toBe("half and half");
  });

  test("keeps a message that was not sent yet behind the thread", async () => {
    const { agent } = await asked();
    onTestFinished(agent.follow());
    await agent.connectAgent();
    agent.setMessages([user("draft")]);
    await agent.connectAgent();
    expect(ids(agent.messages)).toEqual([...THREAD, "draft"]);
  });
});
