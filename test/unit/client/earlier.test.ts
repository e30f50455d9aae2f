import { AbstractAgent, EventType, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";
import { from, type Observable } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { EarlierMessages } from "../../../src/client/earlier-messages.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { agentOf, counter, gated, user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

const RUNS = 6;

async function pagedOn(messageLimit: number, agents?: Readonly<Record<string, AbstractAgent>>, agentId = "counter") {
  const { runner, hosts } = await hostWith(RUNS, agents);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  return { runner, runtime, agent: runtime.agent(agentId, { threadId: "t", messageLimit }) };
}

/** Its RUN_STARTED has the input, as that of an agent on a server may. */
class StartsWithInput extends AbstractAgent {
  override run(input: RunAgentInput): Observable<BaseEvent> {
    const { threadId, runId } = input;
    const messageId = `${runId}-a`;
    return from([
      { type: EventType.RUN_STARTED, threadId, runId, input } as BaseEvent,
      { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent,
      { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent,
      { type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent,
    ]);
  }
}

const idsOf = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

async function loadAll(agent: LocalAgent): Promise<void> {
  while (agent.hasEarlier) await agent.loadEarlier();
}

describe("an agent with a messageLimit", () => {
  test("that is set to another thread does not get a page of the one before", async () => {
    const { agent } = await pagedOn(5);
    await agent.connectAgent();
    const loading = agent.loadEarlier(3);
    agent.threadId = "other";
    agent.setMessages([]);
    expect(await loading).toHaveLength(3);
    expect(agent.messages).toEqual([]);
  });

  test("begins with the last messages, and loads the others page by page, each once (L16)", async () => {
    const { runner, agent } = await pagedOn(5);
    await agent.connectAgent();
    const all = await runner.getThreadMessages("t");
    expect(agent.messages).toEqual(all.slice(-5));
    expect(agent.hasEarlier).toBe(true);
    const told: string[][] = [];
    agent.subscribe({ onMessagesChanged: ({ messages }) => void told.push(idsOf(messages)) });
    // Asked twice at once, as by somebody who scrolls.
    const [page, same] = await Promise.all([agent.loadEarlier(3), agent.loadEarlier(3)]);
    expect(page).toEqual(all.slice(-8, -5));
    expect(same).toBe(page);
    expect(told).toEqual([idsOf(all.slice(-8))]);
    await loadAll(agent);
    expect(agent.messages).toEqual(all);
    expect(await agent.loadEarlier()).toEqual([]);
  });

  test("has nothing to load of a short thread, nor of an unknown one", async () => {
    const { agent, runtime } = await pagedOn(100);
    await agent.connectAgent();
    expect(agent.messages.length).toBe(2 * RUNS);
    expect(agent.hasEarlier).toBe(false);
    const other = runtime.agent("counter", { threadId: "unknown", messageLimit: 2 });
    await other.connectAgent();
    expect(other.hasEarlier).toBe(false);
    expect(await other.loadEarlier()).toEqual([]);
  });

  test("is refused where its limit is none", async () => {
    const { runtime } = await pagedOn(1);
    for (const messageLimit of [0, -1, 1.5, Number.NaN, Infinity]) {
      const message = "messageLimit must be a whole number, at least 1";
      const refused = { code: "invalid-input", details: { field: "messageLimit" }, message };
      expect(() => runtime.agent("counter", { threadId: "t", messageLimit })).toThrow(expect.objectContaining(refused));
    }
  });

  test("sends what is new alone, and its agent is given the whole thread", async () => {
    const given: string[][] = [];
    const spy = agentOf(async function* (input, context) {
      given.push(idsOf(input.messages));
      yield* counter(1)(input, context);
    });
    const { runner, agent } = await pagedOn(2, { spy }, "spy");
    await agent.connectAgent();
    agent.addMessage(user("new-u", "more"));
    const { newMessages } = await agent.runAgent({ runId: "new" });
    const all = idsOf(await runner.getThreadMessages("t"));
    expect(given).toEqual([all.slice(0, -1)]);
    expect(idsOf(newMessages)).toEqual([all.at(-1)]);
    expect(idsOf(agent.messages)).toEqual(all.slice(-4));
  });

  test("branches where one of its messages was edited; what stands before them stays", async () => {
    const { runner, agent } = await pagedOn(4);
    await agent.connectAgent();
    const before = await runner.getThreadMessages("t");
    const edited = user("r5-u", "other words");
    agent.setMessages([...agent.messages.slice(0, 2), edited]);
    await agent.runAgent({ runId: "edit" });
    const after = await runner.getThreadMessages("t");
    expect(after.slice(0, -1)).toEqual([...before.slice(0, -2), edited]);
    expect(idsOf(agent.messages)).toEqual(idsOf(after.slice(-4)));
    await loadAll(agent);
    expect(agent.messages).toEqual(after);
  });

  test("loads what stands before its first message also where that one was edited (L2)", async () => {
    const { runner, agent } = await pagedOn(4);
    await agent.connectAgent();
    agent.setMessages([user("edited", "other words")]);
    await agent.runAgent({ runId: "edit" });
    expect(idsOf(agent.messages)).toEqual(["edited", "edit-a"]);
    expect((await agent.loadEarlier(3)).length).toBe(3);
    await loadAll(agent);
    expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
    expect(agent.messages.length).toBe(2 * RUNS - 4 + 2);
  });

  test("takes a page in while a run goes on, and keeps it (L2)", async () => {
    const { gate, letOn } = gated();
    const waits = agentOf(async function* (input) {
      const messageId = `${input.runId}-a`;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "half" } as BaseEvent;
      await gate;
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: " and half" } as BaseEvent;
    });
    const { runner, runtime, agent } = await pagedOn(3, { waits }, "waits");
    const follower = runtime.agent("waits", { threadId: "t", messageLimit: 3 });
    follower.follow();
    await agent.connectAgent();
    agent.addMessage(user("new-u", "more"));
    const running = agent.runAgent({ runId: "new" });
    for (const each of [agent, follower]) {
      await vi.waitFor(() => expect(each.messages.at(-1)?.content).toBe("half"));
      await each.loadEarlier(4);
    }
    letOn();
    const { newMessages } = await running;
    expect(idsOf(newMessages)).toEqual(["new-a"]);
    const all = await runner.getThreadMessages("t");
    expect(agent.messages).toEqual(all.slice(-9));
    await vi.waitFor(() => expect(follower.messages.at(-1)?.content).toBe("half and half"));
    // It attached before the run or in it.
    expect(follower.messages).toEqual(all.slice(-follower.messages.length));
    for (const each of [agent, follower]) {
      await loadAll(each);
      expect(each.messages).toEqual(all);
    }
  });

  test("keeps its order where an agent tells the whole thread in a snapshot, or in its RUN_STARTED (L2)", async () => {
    const snapshot = agentOf(async function* ({ messages, runId }) {
      const own: Message = { id: `${runId}-a`, role: "assistant", content: "all of it" };
      yield { type: EventType.MESSAGES_SNAPSHOT, messages: [...messages, own] } as BaseEvent;
    });
    const started = new StartsWithInput();
    for (const agentId of ["snapshot", "started"]) {
      const { runner, runtime, agent } = await pagedOn(3, { snapshot, started }, agentId);
      const follower = runtime.agent(agentId, { threadId: "t", messageLimit: 3 });
      follower.follow();
      for (const each of [agent, follower]) await each.connectAgent();
      agent.addMessage(user("new-u", "more"));
      await agent.runAgent({ runId: "new" });
      const all = await runner.getThreadMessages("t");
      expect(all.length).toBe(2 * RUNS + 2);
      await vi.waitFor(() => expect(follower.messages.at(-1)?.id).toBe("new-a"));
      for (const each of [agent, follower]) {
        expect(each.messages).toEqual(all.slice(-5));
        await loadAll(each);
        expect(each.messages).toEqual(all);
      }
    }
  });

  test("is told where the page that it asks for is not in the thread any more", async () => {
    const { runner, agent, runtime } = await pagedOn(2);
    await agent.connectAgent();
    const other = runtime.agent("counter", { threadId: "t" });
    await other.connectAgent();
    other.setMessages([user("r0-u", "all anew")]);
    await other.runAgent({ runId: "anew" });
    await expect(agent.loadEarlier()).rejects.toMatchObject({ code: "invalid-input", details: { field: "before" } });
    // And has the thread as it is, once it is connected again.
    await agent.connectAgent();
    expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
  });

  test("its clone loads what it lacks by itself", async () => {
    const { runner, agent } = await pagedOn(4);
    await agent.connectAgent();
    const copy = agent.clone();
    await loadAll(copy);
    expect(copy.messages).toEqual(await runner.getThreadMessages("t"));
    expect(agent.messages.length).toBe(4);
  });
});

test("a page that comes after a snapshot took its place is not put anywhere", async () => {
  const earlier = new EarlierMessages();
  earlier.begin("b");
  const { gate, letOn } = gated();
  const put = vi.fn<() => void>();
  const loading = earlier.load(async () => {
    await gate;
    return { messages: [user("a")], earlier: false };
  }, put);
  earlier.begin("c");
  letOn();
  expect(await loading).toEqual([]);
  expect(put).not.toHaveBeenCalled();
  expect(earlier.before).toBe("c");
});
