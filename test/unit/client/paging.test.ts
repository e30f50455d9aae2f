import { EventType, type AbstractAgent, type BaseEvent, type Message } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { agentOf, collect, counter, gated, inputOf, user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

const RUNS = 6;

async function paged(messageLimit: number, agents?: Readonly<Record<string, AbstractAgent>>, agentId = "counter") {
  const { runner, hosts } = await hostWith(RUNS, agents);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const agent = runtime.agent(agentId, { threadId: "t", messageLimit });
  return { runner, runtime, agent };
}

const idsOf = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

async function loadAll(agent: LocalAgent): Promise<void> {
  while (agent.hasEarlier) await agent.loadEarlier();
}

test("a page of no messages loses none of those before it (L2)", async () => {
  const { runner, agent } = await paged(4);
  await agent.connectAgent();
  expect(await agent.loadEarlier(0)).toEqual([]);
  expect(agent.hasEarlier).toBe(true);
  await loadAll(agent);
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});

test("an agent's snapshot that rewrites the earlier part: what is shown and loaded is the thread (L2)", async () => {
  const rewrites = agentOf(async function* ({ messages, runId }) {
    const summary: Message = { id: "summary", role: "assistant", content: "what was" };
    const own: Message = { id: `${runId}-a`, role: "assistant", content: "all of it" };
    yield { type: EventType.MESSAGES_SNAPSHOT, messages: [summary, ...messages.slice(-2), own] } as BaseEvent;
  });
  const { runner, runtime, agent } = await paged(4, { rewrites }, "rewrites");
  const follower = runtime.agent("rewrites", { threadId: "t", messageLimit: 4 });
  const reader = runtime.agent("rewrites", { threadId: "t", messageLimit: 4 });
  follower.follow();
  for (const each of [agent, follower, reader]) await each.connectAgent();
  agent.addMessage(user("new-u", "more"));
  await agent.runAgent({ runId: "new" });
  const all = await runner.getThreadMessages("t");
  for (const each of [agent, reader]) {
    // Of what comes behind its cursor, or anew.
    for (let n = 0; n < 2; n++) await each.connectAgent();
    await loadAll(each);
    expect(each.messages).toEqual(all);
  }
  // A follower looks by itself.
  await vi.waitFor(() => expect(follower.messages).toEqual(all));
  expect(follower.hasEarlier).toBe(false);
});

test("an edit behind such a snapshot leaves what stands before the messages that there are (L2)", async () => {
  const cuts = agentOf(async function* (input, context) {
    const { messages, runId } = input;
    if (runId !== "new") return yield* counter(1)(input, context);
    const own: Message = { id: "new-a", role: "assistant", content: "all of it" };
    const snapshot = [...messages.slice(0, 2), ...messages.slice(-2), own];
    yield { type: EventType.MESSAGES_SNAPSHOT, messages: snapshot } as BaseEvent;
  });
  const { runner, agent } = await paged(4, { cuts }, "cuts");
  await agent.connectAgent();
  agent.addMessage(user("new-u", "more"));
  await agent.runAgent({ runId: "new" });
  agent.setMessages(agent.messages.slice(0, -2).concat(user("new-u", "edited")));
  await agent.runAgent({ runId: "edit" });
  expect(idsOf(await runner.getThreadMessages("t"))).toEqual(["r0-u", "r0-a", "r5-a", "new-u", "edit-a"]);
});

test("a page that comes while a snapshot waits for a hook: no message is lost or doubled (L2)", async () => {
  const { runner, runtime, agent } = await paged(2);
  await agent.connectAgent();
  await agent.loadEarlier(2);
  expect(idsOf(agent.messages)).toEqual(["r4-u", "r4-a", "r5-u", "r5-a"]);
  const copy = agent.clone();
  // Another tab's runs, and a branch, so that a snapshot comes.
  const other = runtime.agent("counter", { threadId: "t" });
  await other.connectAgent();
  other.setMessages([...other.messages.slice(0, -1), user("x", "x")]);
  await other.runAgent({ runId: "branch" });
  const { gate, letOn } = gated();
  let waits = false;
  copy.subscribe({
    onRunStartedEvent: async () => {
      waits = true;
      await gate;
    },
  });
  const reading = copy.connectAgent();
  await vi.waitFor(() => expect(waits).toBe(true));
  await copy.loadEarlier(3);
  expect(new Set(idsOf(copy.messages)).size).toBe(copy.messages.length);
  letOn();
  await reading;
  await loadAll(copy);
  expect(idsOf(copy.messages)).toEqual(idsOf(await runner.getThreadMessages("t")));
});

test("an edit in a paged thread keeps activities and reasoning as one in a whole one (L2)", async () => {
  const results: string[][] = [];
  for (const limit of [undefined, 4]) {
    const rich = agentOf(async function* ({ runId }) {
      yield {
        type: EventType.ACTIVITY_SNAPSHOT,
        messageId: `${runId}-act`,
        activityType: "x",
        content: { a: 1 },
      } as BaseEvent;
      yield { type: EventType.REASONING_START, messageId: `${runId}-re` } as BaseEvent;
      yield { type: EventType.REASONING_MESSAGE_START, messageId: `${runId}-re`, role: "reasoning" } as BaseEvent;
      yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId: `${runId}-re`, delta: "hm" } as BaseEvent;
      yield { type: EventType.REASONING_MESSAGE_END, messageId: `${runId}-re` } as BaseEvent;
      yield { type: EventType.REASONING_END, messageId: `${runId}-re` } as BaseEvent;
      yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" } as BaseEvent;
    });
    const { runner, hosts } = await hostWith(0, { rich });
    for (let n = 0; n < 4; n++)
      await collect(runner.run({ threadId: "t", agent: rich.clone(), input: inputOf("t", `r${n}`) }));
    const runtime = connectRuntime({ hosts });
    onTestFinished(() => runtime.close());
    const agent = runtime.agent("rich", { threadId: "t", ...(limit && { messageLimit: limit }) });
    await agent.connectAgent();
    agent.setMessages(
      agent.messages
        .map((m) => (m.id === "r3-u" ? user("r3-u", "edited") : m))
        .slice(0, 1 + agent.messages.findIndex((m) => m.id === "r3-u")),
    );
    await agent.runAgent({ runId: "edit" });
    await loadAll(agent);
    results.push(idsOf(await runner.getThreadMessages("t")));
    expect(idsOf(agent.messages)).toEqual(results.at(-1));
  }
  expect(results[1]).toEqual(results[0]);
});

test("a page may end at a message whose id is the empty string", async () => {
  const { runner, hosts } = await hostWith(1);
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "r1", [user("")]) }));
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const agent = runtime.agent("counter", { threadId: "t", messageLimit: 2 });
  await agent.connectAgent();
  await loadAll(agent);
  expect(idsOf(agent.messages)).toEqual(idsOf(await runner.getThreadMessages("t")));
});

test.each<readonly [string, (messages: readonly Message[]) => readonly Message[]]>([
  ["tells all of them again", (messages) => messages],
  ["lacks most of them", (messages) => messages.slice(-3)],
  [
    "has another text of each",
    (messages) => messages.map((it) => ({ ...it, content: `${it.id}, told again` }) as Message),
  ],
])("pages that come during a run whose snapshot then %s: what is shown is the thread (L2)", async (_, told) => {
  const { gate, letOn } = gated();
  const retells = agentOf(async function* ({ messages, runId }) {
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` } as BaseEvent;
    await gate;
    const own: Message = { id: `${runId}-a`, role: "assistant", content: "retold" };
    yield { type: EventType.MESSAGES_SNAPSHOT, messages: [...told(messages), own] } as BaseEvent;
  });
  const { runner, runtime, agent } = await paged(4, { retells }, "retells");
  const other = (): LocalAgent => runtime.agent("retells", { threadId: "t", messageLimit: 4 });
  const [follower, reader] = [other(), other()];
  follower.follow();
  await agent.connectAgent();
  agent.addMessage(user("new-u", "more"));
  const own = agent.runAgent({ runId: "new" });
  const isShown = (each: LocalAgent) => vi.waitFor(() => expect(idsOf(each.messages)).toContain("new-a"));
  await isShown(agent);
  // A reading of the run that it runs itself, beside.
  const ends = [own, reader.connectAgent(), agent.connectAgent()];
  for (const each of [agent, follower, reader]) {
    await isShown(each);
    await loadAll(each);
    expect(idsOf(each.messages)).toContain("r0-a");
  }
  letOn();
  await Promise.all(ends);
  const all = await runner.getThreadMessages("t");
  expect(agent.messages).toEqual(all);
  expect(reader.messages).toEqual(all);
  await vi.waitFor(() => expect(follower.messages).toEqual(all));
});

test("a page that comes while a hook works stays, whatever messages the hook returns (L2)", async () => {
  const { gate, letOn } = gated();
  const { runner, agent } = await paged(4);
  await agent.connectAgent();
  const began = vi.fn();
  agent.subscribe({
    onRunStartedEvent: async ({ messages }) => {
      began();
      await gate;
      return { messages: [...messages] };
    },
  });
  agent.addMessage(user("new-u", "more"));
  const own = agent.runAgent({ runId: "new" });
  await vi.waitFor(() => expect(began).toHaveBeenCalled());
  await loadAll(agent);
  letOn();
  await own;
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});
