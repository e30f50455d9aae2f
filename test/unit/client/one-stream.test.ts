import { EventType, type AbstractAgent, type BaseEvent, type Message } from "@ag-ui/client";
import { expect, onTestFinished, test, vi } from "vitest";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, collect, counter, freshDb, gated, inputOf, makeRunner, user } from "../runner/kit.js";

const original = MessagePort.prototype.postMessage;

/** Which chunks are posted from now on, in whatever port: the index of their run and their first seq. */
function chunksPosted(): string[] {
  const chunks: string[] = [];
  const post = vi.spyOn(MessagePort.prototype, "postMessage");
  post.mockImplementation(function (this: MessagePort, message: Frame | null, ...rest: unknown[]) {
    if (message?.type === "chunk") chunks.push(`${message.chunk.runIndex}:${message.chunk.firstSeq}`);
    return Reflect.apply(original, this, [message, ...rest]) as void;
  });
  onTestFinished(() => post.mockRestore());
  return chunks;
}

/** That each was posted once, of these runs. */
function mustBeOnce(chunks: readonly string[], runs: readonly number[]): void {
  expect([...new Set(chunks.map((chunk) => Number(chunk.split(":")[0])))]).toEqual(runs);
  expect(chunks).toEqual([...new Set(chunks)]);
}

function following(agents: Readonly<Record<string, AbstractAgent>> = {}) {
  const runner = makeRunner({ dbName: freshDb() });
  const host = serveRuntime({ agents: { counter: agentOf(counter(20)), ...agents }, runner });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return { agent: runtime.agent("counter", { threadId: "t" }), runner, runtime };
}

/** Waits in the middle of its answer. */
const holding = (gate: Promise<void>): AbstractAgent =>
  agentOf(async function* ({ runId }) {
    const messageId = `${runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    await gate;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "all" };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
  });

const other = (runner: ReturnType<typeof makeRunner>, runId: string): Promise<unknown> =>
  collect(runner.run({ threadId: "t", agent: agentOf(counter(3)), input: inputOf("t", runId) }));

const shows = (agent: LocalAgent, id: string): Promise<void> =>
  vi.waitFor(() => expect(agent.messages.at(-1)?.id).toBe(id));

/** What a subscriber hears from now on. */
function heard(agent: LocalAgent): string[] {
  const events: string[] = [];
  const { unsubscribe } = agent.subscribe({
    onEvent: ({ event }) => void events.push(`${event.type} ${String((event as BaseEvent)["runId"] ?? "")}`.trim()),
  });
  onTestFinished(unsubscribe);
  return events;
}

const ends = (events: readonly string[]): string[] =>
  events.filter((event) => event.startsWith("RUN_FINISHED")).map((event) => event.split(" ")[1]!);

test("an agent that follows its thread and runs in it is sent each chunk once, its own and others' (L2)", async () => {
  const { agent, runner } = following();
  onTestFinished(agent.follow());
  await agent.connectAgent();
  const chunks = chunksPosted();
  const events = heard(agent);
  for (const runId of ["a", "b"]) {
    agent.addMessage(user(`${runId}-m`));
    await agent.runAgent({ runId });
  }
  await other(runner, "foreign");
  await shows(agent, "foreign-a");
  await vi.waitFor(() => expect(ends(events)).toContain("foreign"));
  agent.addMessage(user("c-m"));
  await agent.runAgent({ runId: "c" });
  mustBeOnce(chunks, [0, 1, 2, 3]);
  expect(ends(events)).toEqual(["a", "b", "foreign", "c"]);
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});

test("an agent that begins to follow in the middle of its own run is sent each chunk once (L2)", async () => {
  const { gate, letOn } = gated();
  const { agent, runner, runtime } = following({ counter: holding(gate) });
  onTestFinished(letOn);
  agent.addMessage(user("m"));
  const chunks = chunksPosted();
  const events = heard(agent);
  const run = agent.runAgent({ runId: "a" });
  await shows(agent, "a-a");
  onTestFinished(agent.follow());
  // Whatever it had asked for is there by then.
  await runtime.threads.list();
  letOn();
  await run;
  await agent.connectAgent();
  mustBeOnce(chunks, [0]);
  await other(runner, "foreign");
  await shows(agent, "foreign-a");
  await vi.waitFor(() => expect(ends(events)).toEqual(["a", "foreign"]));
  mustBeOnce(chunks, [0, 1]);
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});

test("a reading and a follower that begins beside it bring the thread once (L2)", async () => {
  const { gate, letOn } = gated();
  const { agent, runner, runtime } = following();
  onTestFinished(letOn);
  await other(runner, "before");
  const live = collect(runner.run({ threadId: "t", agent: holding(gate), input: inputOf("t", "live") }));
  const reading = agent.connectAgent();
  await shows(agent, "live-a");
  const chunks = chunksPosted();
  const events = heard(agent);
  onTestFinished(agent.follow());
  await runtime.threads.list();
  letOn();
  await Promise.all([reading, agent.connectAgent(), live]);
  mustBeOnce(chunks, [1]);
  expect(ends(events)).toEqual(["live"]);
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
});

test("a run that is started and awaited at the end of a followed one stands behind it, each message once (L2)", async () => {
  const { agent, runner } = following();
  onTestFinished(agent.follow());
  await agent.connectAgent();
  let own: Promise<unknown> | undefined;
  agent.subscribe({
    onRunFinishedEvent: async () => {
      if (own !== undefined) return;
      agent.addMessage(user("own-m"));
      await (own = agent.runAgent({ runId: "own" }));
    },
  });
  await other(runner, "foreign");
  await vi.waitFor(() => expect(own).toBeDefined());
  await own;
  await other(runner, "later");
  await shows(agent, "later-a");
  await vi.waitFor(async () => expect(agent.messages).toEqual(await runner.getThreadMessages("t")));
  expect(agent.messages.map(({ id }) => id)).toEqual([
    "foreign-u",
    "foreign-a",
    "own-m",
    "own-a",
    "later-u",
    "later-a",
  ]);
});

test("an agent that was refused, since another run is live, goes on to follow that one (L2, L5)", async () => {
  const { gate, letOn } = gated();
  const { agent, runner } = following();
  onTestFinished(letOn);
  onTestFinished(agent.follow());
  await agent.connectAgent();
  const live = collect(runner.run({ threadId: "t", agent: holding(gate), input: inputOf("t", "live") }));
  // Both before and after it is told of the run.
  await expect(agent.runAgent()).rejects.toMatchObject({ code: "thread-busy" });
  await shows(agent, "live-a");
  await expect(agent.runAgent()).rejects.toMatchObject({ code: "thread-busy" });
  letOn();
  await live;
  await vi.waitFor(async () => expect(agent.messages).toEqual(await runner.getThreadMessages("t")));
});

test("a following agent shows nothing of the branch that its own edit left (L2, L20)", async () => {
  const thinking = agentOf(async function* ({ runId }) {
    const content = { runId };
    yield { type: EventType.ACTIVITY_SNAPSHOT, messageId: `${runId}-act`, activityType: "PLAN", content };
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` };
  });
  const { agent, runner } = following({ counter: thinking });
  onTestFinished(agent.follow());
  agent.addMessage(user("m"));
  await agent.runAgent({ runId: "a" });
  const asked = agent.messages.find(({ id }) => id === "m")!;
  agent.setMessages(agent.messages.map((it) => (it === asked ? { ...asked, content: "other" } : it) as Message));
  await agent.runAgent({ runId: "b" });
  await agent.connectAgent();
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
  expect(agent.messages.map(({ id }) => id)).not.toContain("a-act");
});
