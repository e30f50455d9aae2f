import {
  AbstractAgent,
  EventType,
  type AgentStateMutation,
  type AgentSubscriber,
  type BaseEvent,
  type Message,
  type RunAgentInput,
  type RunAgentParameters,
} from "@ag-ui/client";
import { from, map, Observable, of } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import type { OpenConstructs } from "../../../src/run/types.js";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import { runAgent } from "../../../src/runner/agent/agent-pipeline.js";
import { inputOf, rawAgent, user } from "./kit.js";

const input: RunAgentInput = inputOf("t", "r", [user("u1"), user("u2")], { list: [1] });
const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
const finished: BaseEvent = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" };
const say = (messageId: string, delta: string): BaseEvent[] => [
  { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta },
  { type: EventType.TEXT_MESSAGE_END, messageId },
];

/** The events that the host is handed. */
async function run(agent: AbstractAgent, given = input): Promise<BaseEvent[]> {
  const accepted: BaseEvent[] = [];
  const tracker = new OpenConstructTracker(new Set());
  const open = (): OpenConstructs | undefined => tracker.snapshot();
  const next = (event: BaseEvent): void => {
    tracker.note(event);
    accepted.push(event);
  };
  await runAgent(agent, given, {
    messages: () => given.messages,
    take: (event) => event,
    next,
    open,
    knows: () => false,
    makeId: () => "made-up",
    said: () => undefined,
    dropped: () => undefined,
  });
  return accepted;
}

const types = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);

describe("what the agent is given", () => {
  test("the thread's messages and state, in the input and on itself, its own to change", async () => {
    const before = structuredClone(input);
    const seen: unknown[] = [];
    const agent = rawAgent((its) => {
      seen.push(structuredClone(its.messages), structuredClone(agent.messages), agent.state, its.state);
      (its.messages[0] as { content: string }).content = "changed";
      its.messages.push(user("mine"));
      agent.messages = [];
      (its.state as { list: number[] }).list.push(2);
      return of(started, finished);
    });
    await run(agent);
    expect(seen.slice(0, 2)).toEqual([input.messages, input.messages]);
    expect(seen[2]).toEqual({ list: [1] });
    expect(input).toEqual(before);
  });

  test("nobody copies the history that nobody reads", async () => {
    let reads = 0;
    const messages = new Proxy(input.messages, {
      get: (target, key, receiver): unknown => {
        if (key === "map" || key === Symbol.iterator || typeof key === "string") reads++;
        return Reflect.get(target, key, receiver);
      },
    });
    await run(
      rawAgent(() => of(started, finished)),
      { ...input, messages },
    );
    expect(reads).toBe(0);
    await run(
      rawAgent((its) => of(started, ...say("m", String(its.messages.length)), finished)),
      { ...input, messages },
    );
    expect(reads).toBeGreaterThan(0);
  });

  test("an input that is spread, cloned or sent has the messages", async () => {
    const seen: unknown[] = [];
    const agent = rawAgent((its) => {
      seen.push(
        { ...its }.messages,
        structuredClone(its).messages,
        (JSON.parse(JSON.stringify(its)) as RunAgentInput).messages,
      );
      return of(started, finished);
    });
    await run(agent);
    expect(seen).toEqual([input.messages, input.messages, input.messages]);
  });

  test("no activity messages, which are the reader's own", async () => {
    let given: readonly Message[] = [];
    const agent = rawAgent((its) => {
      given = its.messages;
      return of(started, finished);
    });
    const activity: Message = { id: "a", role: "activity", activityType: "plan", content: {} };
    await run(agent, { ...input, messages: [user("u"), activity] });
    expect(given.map(({ id }) => id)).toEqual(["u"]);
  });
});

describe("hooks keep their meaning", () => {
  test("subscribers see messages and state grow, event by event", async () => {
    const texts: unknown[] = [];
    const states: unknown[] = [];
    const subscriber: AgentSubscriber = {
      onTextMessageContentEvent: ({ textMessageBuffer, event }) => void texts.push(textMessageBuffer + event.delta),
      onMessagesChanged: ({ messages }) => void texts.push(messages.length),
      onStateChanged: ({ state }) => void states.push(state),
    };
    const agent = rawAgent(() =>
      of(
        started,
        ...say("m", "hello"),
        { type: EventType.STATE_DELTA, delta: [{ op: "add", path: "/list/-", value: 2 }] } as BaseEvent,
        finished,
      ),
    );
    agent.subscribe(subscriber);
    const events = await run(agent);
    expect(texts).toContain("hello");
    expect(texts).toContain(3);
    expect(states).toEqual([{ list: [1, 2] }]);
    expect(types(events)).toEqual([
      EventType.RUN_STARTED,
      ...types(say("m", "hello")),
      EventType.STATE_DELTA,
      EventType.RUN_FINISHED,
    ]);
  });

  test("a subscriber that is told of a failure may take it for a success", async () => {
    const silence = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const failing = (): AbstractAgent =>
      rawAgent(
        () =>
          new Observable((subscriber) => {
            subscriber.next(started);
            subscriber.error(new Error("boom"));
          }),
      );
    const agent = failing();
    const failures: string[] = [];
    agent.subscribe({
      onRunFailed: ({ error }) => {
        failures.push(error.message);
        const mutation: AgentStateMutation = { stopPropagation: true };
        return mutation;
      },
    });
    await run(agent);
    expect(failures).toEqual(["boom"]);
    await expect(run(failing())).rejects.toThrow("boom");
    silence.mockRestore();
  });

  test("middlewares see the whole input and change what is recorded; theirs too is mended and verified", async () => {
    const agent = rawAgent(() => of(started, ...say("m", "hello"), finished));
    const inputs: RunAgentInput[] = [];
    agent.use((its, next) => {
      inputs.push(structuredClone(its));
      const shouted = (event: BaseEvent): BaseEvent =>
        event.type === EventType.TEXT_MESSAGE_CONTENT
          ? { ...event, delta: String(event["delta"]).toUpperCase() }
          : event;
      return next.run(its).pipe(map(shouted)) as ReturnType<typeof next.run>;
    });
    // Loses the end of every message.
    agent.use((its, next) => {
      const events$ = next.run(its) as unknown as Observable<BaseEvent>;
      return new Observable<BaseEvent>((subscriber) =>
        events$.subscribe({
          next: (event) => event.type !== EventType.TEXT_MESSAGE_END && subscriber.next(event),
          error: (error: unknown) => subscriber.error(error),
          complete: () => subscriber.complete(),
        }),
      ) as unknown as ReturnType<typeof next.run>;
    });
    const events = await run(agent);
    expect(inputs.map(({ messages, runId }) => [messages, runId])).toEqual([[input.messages, "r"]]);
    expect(types(events)).toEqual([EventType.RUN_STARTED, ...types(say("m", "")), EventType.RUN_FINISHED]);
    expect(events[2]).toMatchObject({ delta: "HELLO" });
  });

  test("a class that brings its own stages keeps them", async () => {
    const calls: string[] = [];
    class Own extends AbstractAgent {
      override run(): Observable<BaseEvent> {
        return from([started, finished]);
      }
      override async runAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber) {
        calls.push("runAgent");
        return super.runAgent(parameters, subscriber);
      }
      protected override prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput {
        calls.push(`prepare ${this.messages.length}`);
        return super.prepareRunAgentInput(parameters);
      }
      protected override async onFinalize(its: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void> {
        calls.push(`finalize ${this.messages.length}`);
        return super.onFinalize(its, subscribers);
      }
    }
    await run(new Own());
    expect(calls).toEqual(["runAgent", "prepare 2", "finalize 2"]);
  });
});

describe("what agents commonly get wrong about a run's course is mended", () => {
  const step = (type: EventType, stepName = "s"): BaseEvent => ({ type, stepName });

  test("exact repeats of RUN_STARTED and of a step event are dropped", async () => {
    const [begin, end] = [step(EventType.STEP_STARTED), step(EventType.STEP_FINISHED)];
    const agent = rawAgent(() => of(started, started, begin, begin, end, end, begin, end, started, finished));
    expect(types(await run(agent))).toEqual([
      EventType.RUN_STARTED,
      EventType.STEP_STARTED,
      EventType.STEP_FINISHED,
      EventType.STEP_STARTED,
      EventType.STEP_FINISHED,
      EventType.RUN_FINISHED,
    ]);
  });

  test("one object that is emitted again with other contents is no repeat", async () => {
    const agent = rawAgent(
      () =>
        new Observable((subscriber) => {
          subscriber.next(started);
          const event: BaseEvent = { type: EventType.STEP_STARTED, stepName: "one" };
          subscriber.next(event);
          Object.assign(event, { stepName: "two" });
          subscriber.next(event);
          subscriber.next(finished);
          subscriber.complete();
        }),
    );
    const steps = (await run(agent)).filter(({ type }) => type === EventType.STEP_FINISHED);
    expect(steps.map((event) => event["stepName"])).toEqual(["two", "one"]);
  });

  test("another RUN_STARTED in a run is a breach", async () => {
    const agent = rawAgent(() => of(started, { ...started, runId: "other" } as BaseEvent, finished));
    await expect(run(agent)).rejects.toThrow(/RUN_STARTED/);
  });
});
