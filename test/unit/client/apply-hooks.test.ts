import { EventType, Middleware, type AbstractAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { tap, type Observable } from "rxjs";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { hookOf } from "../../../src/client/apply/hooks.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, freshDb, gated, user } from "../runner/kit.js";
import { RUN_ID, THREAD_ID } from "../run/streams.js";
import { EVENT_HOOKS, hookOfType, Ours, outcomeOf, packed, Reference, subscribersOf } from "./apply-kit.js";

beforeEach(() => void vi.spyOn(console, "error").mockImplementation(() => undefined));

afterEach(() => vi.restoreAllMocks());

const WORDS = ["one ", "two ", "", "three "];

const run: readonly BaseEvent[] = [
  { type: EventType.RUN_STARTED, threadId: THREAD_ID, runId: RUN_ID },
  { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" },
  ...WORDS.map((delta): BaseEvent => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta })),
  { type: EventType.TEXT_MESSAGE_END, messageId: "m" },
  { type: EventType.RUN_FINISHED, threadId: THREAD_ID, runId: RUN_ID },
];

const START = { messages: [], state: {} };

/** An agent in a host that says {@link WORDS}, all in one chunk; waits in the middle where the gate is closed. */
function hosted(gate?: Promise<void>): () => LocalAgent {
  const host = serveRuntime({
    dbName: freshDb(),
    agents: {
      speaker: agentOf(async function* (input) {
        const messageId = `${input.runId}-a`;
        yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
        for (const delta of WORDS) yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta } as BaseEvent;
        await gate;
        for (const delta of WORDS) yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta } as BaseEvent;
      }),
    },
  });
  const connected: { close: () => Promise<void> }[] = [];
  onTestFinished(async () => {
    await Promise.all(connected.map((runtime) => runtime.close()));
    await host.close();
  });
  return () => {
    const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
    connected.push(runtime);
    return runtime.agent("speaker", { threadId: "t" });
  };
}

const deltasOf = (agent: LocalAgent): string[] => {
  const deltas: string[] = [];
  agent.subscribe({ onTextMessageContentEvent: ({ event }) => void deltas.push(event.delta) });
  return deltas;
};

test("hooks are found by the names that the client gives them", () => {
  expect(
    Object.values(EventType)
      .map(hookOf)
      .filter((name) => !name.endsWith("ChunkEvent")),
  ).toEqual(EVENT_HOOKS);
});

test("who follows a run with a hook for each delta is given those that the agent emitted (L2)", async () => {
  const { gate, letOn } = gated();
  const connect = hosted(gate);
  const [runner, follower] = [connect(), connect()];
  const own = deltasOf(runner);
  const followed = deltasOf(follower);
  onTestFinished(follower.follow());
  await follower.connectAgent();
  runner.addMessage(user("u"));
  const running = runner.runAgent();
  await vi.waitFor(() => expect(followed).toEqual(WORDS));
  letOn();
  await running;
  expect(own).toEqual([...WORDS, ...WORDS]);
  await vi.waitFor(() => expect(followed).toEqual([...WORDS, ...WORDS]));
});

test("a subscriber that comes in the middle of a run is told from then on, each delta too", async () => {
  const { gate, letOn } = gated();
  const agent = hosted(gate)();
  agent.addMessage(user("u"));
  const running = agent.runAgent();
  await vi.waitFor(() => expect(agent.messages.at(-1)?.content).toBe(WORDS.join("")));
  const deltas = deltasOf(agent);
  const told = { changed: vi.fn(), finalized: vi.fn() };
  agent.subscribe({ onMessagesChanged: told.changed, onRunFinalized: told.finalized });
  letOn();
  await running;
  expect(deltas).toEqual(WORDS);
  expect(told.changed).toHaveBeenCalled();
  expect(told.finalized).toHaveBeenCalledOnce();
});

test("a middleware is given the events that the agent emitted", async () => {
  const agent = hosted()();
  const deltas: unknown[] = [];
  class Watcher extends Middleware {
    run(input: RunAgentInput, next: AbstractAgent): Observable<BaseEvent> {
      return this.runNext(input, next).pipe(
        tap((event) => {
          if (event.type === EventType.TEXT_MESSAGE_CONTENT) deltas.push(event["delta"]);
        }),
      );
    }
  }
  agent.use(new Watcher());
  agent.addMessage(user("u"));
  await agent.runAgent();
  expect(deltas).toEqual([...WORDS, ...WORDS]);
  expect(agent.messages.at(-1)!.content).toBe([...WORDS, ...WORDS].join(""));
});

test("deltas that nobody wants for themselves are one change", async () => {
  const agent = new Ours(START, packed(run));
  const contents: unknown[] = [];
  agent.subscribe({ onMessagesChanged: ({ messages }) => void contents.push(messages.at(-1)!.content) });
  await agent.runAgent({ runId: RUN_ID });
  expect(contents).toEqual(["", WORDS.join("")]);
});

test("who stops an event keeps it from those behind", async () => {
  const agent = new Ours(START, packed(run));
  const behind = vi.fn();
  agent.subscribe({ onTextMessageEndEvent: () => ({ stopPropagation: true }) });
  agent.subscribe({ onTextMessageEndEvent: behind, onRunFinishedEvent: behind });
  await agent.runAgent({ runId: RUN_ID });
  expect(behind).toHaveBeenCalledOnce();
});

test("a hook can drop some of the deltas that were joined", async () => {
  const agent = new Ours(START, packed(run));
  agent.subscribe({ onTextMessageContentEvent: ({ event }) => ({ stopPropagation: event.delta === "two " }) });
  await agent.runAgent({ runId: RUN_ID });
  expect(agent.messages.at(-1)!.content).toBe("one three ");
});

test.each(["onEvent", hookOfType(EventType.TEXT_MESSAGE_CONTENT), "onMessagesChanged", "onNewMessage"])(
  "what %s throws does what it does in the default stage",
  async (name) => {
    for (const error of [new Error("no"), new TypeError("no")]) {
      const thrower = (log: unknown[]) => [
        { ...subscribersOf([{ hooks: ["onRunFailed", "onRunFinalized"], actions: ["calm"] }])(log)[0] },
        {
          [name]: () => {
            log.push(name);
            throw error;
          },
        },
      ];
      const single = run.map((event) => ({ event }));
      expect(await outcomeOf(new Ours(START, single), thrower)).toEqual(
        await outcomeOf(new Reference(START, run), thrower),
      );
    }
  },
);
