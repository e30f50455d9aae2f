import {
  AbstractAgent,
  EventType,
  HttpAgent,
  type AgentSubscriber,
  type BaseEvent,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
} from "@ag-ui/client";
import { from, NEVER, type Observable } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { agentOf, collect, counter, inputOf, makeRunner, rawAgent, rebuild, replay, textOf, user } from "./kit.js";

const nothing: RunAgentResult = { result: undefined, newMessages: [] };
const started = (runId = "r"): BaseEvent => ({ type: EventType.RUN_STARTED, threadId: "t", runId });
const finished = (runId = "r"): BaseEvent => ({ type: EventType.RUN_FINISHED, threadId: "t", runId });
const answer: readonly BaseEvent[] = [
  { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "hello" },
  { type: EventType.TEXT_MESSAGE_END, messageId: "m" },
];
/** Of the agent's own events: that of the state is the runner's. */
const types = (events: readonly BaseEvent[]): string[] =>
  events.map(({ type }) => type).filter((type) => type !== EventType.STATE_SNAPSHOT);

type Work = (
  agent: AbstractAgent,
  tell: (event: BaseEvent) => void,
  params: RunAgentInput,
) => Promise<unknown> | unknown;

/** An agent that tells its subscriber of its events and has no `run` worth the name. */
class Own extends AbstractAgent {
  constructor(private readonly work: Work) {
    super({ agentId: "own" });
  }
  override run(): Observable<BaseEvent> {
    throw new Error("not used");
  }
  override async runAgent(params?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const { messages, state } = this;
    const input = params as RunAgentInput; // as CopilotKit's runner calls it
    const tell = (event: BaseEvent): void => void subscriber?.onEvent?.({ event, messages, state, agent: this, input });
    await this.work(this, tell, input);
    return nothing;
  }
}

const run = (agent: AbstractAgent, runner = makeRunner()): Promise<BaseEvent[]> =>
  collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r", [user("u")], { list: [1] }) }));

describe("an agent with a runAgent of its own is run by it", () => {
  test("its events are those that it tells the subscriber; they are recorded", async () => {
    const runner = makeRunner();
    const agent = new Own((_agent, tell) => {
      for (const event of [started(), ...answer, finished()]) tell(event);
    });
    expect(types(await run(agent, runner))).toEqual([EventType.RUN_STARTED, ...types(answer), EventType.RUN_FINISHED]);
    expect((await rebuild(await replay(runner, "t"))).messages.map(({ id }) => id)).toEqual(["u", "m"]);
  });

  test("it has the thread's messages, state and id, on itself and in what it is called with", async () => {
    const seen: unknown[] = [];
    const agent = new Own(({ messages, state, threadId }, tell, params) => {
      seen.push([messages, state, threadId], [params.messages, params.state, params.threadId], params.runId);
      for (const event of [started(), finished()]) tell(event);
    });
    await run(agent);
    const given = [[user("u")], { list: [1] }, "t"];
    expect(seen).toEqual([given, given, "r"]);
  });

  test.each<readonly [string, Work, object]>([
    ["throws", () => Promise.reject(new Error("boom")), { message: "boom", code: "AGENT_FAILED" }],
    ["says no end", (_agent, tell) => answer.slice(0, 2).forEach((e) => tell(e)), { code: "INVALID_STREAM" }],
    ["says nothing", () => undefined, { code: "INCOMPLETE_STREAM" }],
    ["breaks the protocol", (_a, tell) => [started(), answer[2]!].forEach((e) => tell(e)), { code: "INVALID_STREAM" }],
    [
      "breaks the protocol and goes on",
      (_a, tell) => (tell(answer[0]!), new Promise(() => {})),
      { code: "INVALID_STREAM" },
    ],
  ])("one that %s: errored", async (_does, work, terminal) => {
    const runner = makeRunner();
    expect((await run(new Own(work), runner)).at(-1)).toMatchObject({ type: EventType.RUN_ERROR, ...terminal });
    const next = runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") });
    expect((await collect(next)).at(-1)?.type).toBe(EventType.RUN_FINISHED);
  });

  test("it is stopped as any other (L12)", async () => {
    const runner = makeRunner();
    const agent = new Own((_agent, tell) => {
      [started(), ...answer].forEach((event) => tell(event));
      return new Promise(() => {});
    });
    const events = run(agent, runner);
    await vi.waitFor(async () => expect(await runner.getRunEvents("r")).toHaveLength(5));
    await runner.stop({ threadId: "t" });
    expect((await events).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });

  test("one that hands over to another agent", async () => {
    const inner = rawAgent(({ threadId, runId }) =>
      from([{ ...started(runId), threadId }, ...answer, finished(runId)]),
    );
    class Delegating extends Own {
      override runAgent(params?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
        inner.setMessages(this.messages);
        return inner.runAgent(params, subscriber);
      }
    }
    expect(textOf(await run(new Delegating(() => undefined)))).toBe("hello");
  });
});

/** Agents that call AbstractAgent's. */
abstract class Calling extends AbstractAgent {
  override run({ runId }: RunAgentInput): Observable<BaseEvent> {
    return from([started(runId), ...answer, finished(runId)]);
  }
}

describe("an agent whose runAgent calls AbstractAgent's", () => {
  class HandsOn extends Calling {
    override runAgent(params?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
      return super.runAgent({ ...params, tools: [] }, subscriber);
    }
  }
  class Forgets extends Calling {
    override runAgent(params?: RunAgentParameters): Promise<RunAgentResult> {
      return super.runAgent(params);
    }
  }
  class Changes extends Calling {
    override runAgent(params?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
      const onEvent: AgentSubscriber["onEvent"] = (told) => {
        const { event } = told;
        const loud = { ...event, ...(event["delta"] !== undefined && { delta: "HELLO" }) } as BaseEvent;
        return subscriber?.onEvent?.({ ...told, event: loud });
      };
      return super.runAgent(params, { ...subscriber, onEvent });
    }
  }

  test.each([
    ["with the subscriber", HandsOn, "hello"],
    ["without it", Forgets, "hello"],
    ["with one that changes what it is told", Changes, "HELLO"],
  ] as const)("%s", async (_how, Class, text) => {
    const events = await run(new Class());
    expect(textOf(events)).toBe(text);
    expect(types(events)).toEqual([EventType.RUN_STARTED, ...types(answer), EventType.RUN_FINISHED]);
  });

  test.each([HandsOn, Forgets, Changes])("its own subscribers see what it does: %s", async (Class) => {
    const agent = new Class();
    const seen: number[] = [];
    agent.subscribe({ onMessagesChanged: ({ messages }) => void seen.push(messages.length) });
    expect(types(await run(agent))).toEqual([EventType.RUN_STARTED, ...types(answer), EventType.RUN_FINISHED]);
    expect(seen).toContain(2);
  });

  test("twice, for two runs of the stream", async () => {
    class Twice extends Calling {
      override async runAgent(params?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
        await super.runAgent({ ...params, runId: "before" }, subscriber);
        return super.runAgent(params, subscriber);
      }
    }
    const events = await run(new Twice());
    expect(types(events)).toEqual([EventType.RUN_STARTED, ...types(answer), ...types(answer), EventType.RUN_FINISHED]);
    expect(events.at(-1)).toMatchObject({ runId: "r" });
  });

  test("HttpAgent's, which only adds the abort, is run as it always was", async () => {
    const calls: unknown[] = [];
    class Asking extends HttpAgent {
      override run(): Observable<BaseEvent> {
        return NEVER;
      }
      protected override prepareRunAgentInput(params?: RunAgentParameters): RunAgentInput {
        calls.push(params);
        return super.prepareRunAgentInput(params);
      }
    }
    const runner = makeRunner();
    const events = run(new Asking({ url: "http://127.0.0.1:9" }), runner);
    await vi.waitFor(() => expect(calls).toHaveLength(1));
    expect(calls[0]).not.toHaveProperty("messages");
    await runner.stop({ threadId: "t" });
    await events;
  });
});
