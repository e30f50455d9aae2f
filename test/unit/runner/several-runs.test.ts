import {
  AbstractAgent,
  EventType,
  type AgentSubscriber,
  type BaseEvent,
  type RunAgentParameters,
  type RunAgentResult,
} from "@ag-ui/client";
import { concat, from, NEVER, Observable, Subject, takeUntil, throwError } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import type { Logger } from "../../../src/platform/log.js";
import type { EventLimits } from "../../../src/runner/agent/event-limits.js";
import { collect, inputOf, makeRunner, rawAgent, rebuild, replay, textOf, user } from "./kit.js";

const started = (runId = "r"): BaseEvent => ({ type: EventType.RUN_STARTED, threadId: "t", runId });
const finished = (runId = "r", more: object = {}): BaseEvent => ({
  type: EventType.RUN_FINISHED,
  threadId: "t",
  runId,
  ...more,
});
const failed = (message = "late"): BaseEvent => ({ type: EventType.RUN_ERROR, message });
const answer = (messageId = "m", delta = "answer"): BaseEvent[] => [
  { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta },
  { type: EventType.TEXT_MESSAGE_END, messageId },
];
const restated: BaseEvent = {
  type: EventType.MESSAGES_SNAPSHOT,
  messages: [{ id: "old", role: "user", content: "once" }, user("r-u")],
};
const types = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);

/** Hands its events to whoever runs it, without a pipeline. */
class OwnRunAgent extends AbstractAgent {
  constructor(private readonly stream: readonly BaseEvent[]) {
    super();
  }

  run(): Observable<BaseEvent> {
    return from(this.stream);
  }

  override async runAgent(_parameters?: RunAgentParameters, subscriber: AgentSubscriber = {}): Promise<RunAgentResult> {
    for (const event of this.stream) {
      await subscriber.onEvent?.({ event } as Parameters<NonNullable<AgentSubscriber["onEvent"]>>[0]); // all that is read
    }
    return { result: undefined, newMessages: [] };
  }
}

/** What is recorded of a stream that comes event by event, and is as `after` says then. */
async function recorded(
  stream: readonly BaseEvent[],
  after: Observable<BaseEvent> = from([]),
): Promise<{ events: BaseEvent[]; status: string | undefined; messages: unknown[] }> {
  // What comes behind RUN_FINISHED is heard as long.
  const runner = makeRunner({ stopGraceMs: 1_000 });
  const slowly = new Observable<BaseEvent>((subscriber) => {
    void (async () => {
      for (const event of stream) {
        await new Promise((resolve) => setImmediate(resolve));
        subscriber.next(event);
      }
      after.subscribe(subscriber);
    })();
  });
  const events = await collect(runner.run({ threadId: "t", agent: rawAgent(() => slowly), input: inputOf("t", "r") }));
  const { messages } = await rebuild(await replay(runner, "t"));
  expect((await rebuild(events)).messages).toEqual(messages);
  return { events, status: (await runner.getRun("r"))?.status, messages: messages.map(({ id }) => id) };
}

describe("a stream of several runs is recorded as the one that was asked for (L3, L7)", () => {
  test("an earlier run that is restated before it", async () => {
    const { events, status, messages } = await recorded([
      started("old"),
      restated,
      finished("old"),
      started(),
      ...answer(),
      finished("r", { result: 1 }),
    ]);
    expect(types(events)).toEqual([
      EventType.RUN_STARTED,
      EventType.MESSAGES_SNAPSHOT,
      ...types(answer()),
      EventType.RUN_FINISHED,
    ]);
    expect(events.at(-1)).toMatchObject({ runId: "r", result: 1 });
    expect({ status, messages }).toEqual({ status: "finished", messages: ["r-u", "old", "m"] });
  });

  test("an earlier run that had failed, with something open", async () => {
    const open = answer("broken").slice(0, 2);
    const { events, status, messages } = await recorded([
      started("old"),
      ...open,
      { type: EventType.STEP_STARTED, stepName: "s" },
      failed("then"),
      started(),
      { type: EventType.STEP_STARTED, stepName: "s" },
      { type: EventType.STEP_FINISHED, stepName: "s" },
      ...answer(),
      finished(),
    ]);
    expect(textOf(events)).toBe("answeranswer");
    expect({ status, messages }).toEqual({ status: "finished", messages: ["r-u", "broken", "m"] });
  });

  test("messages that only a later run's input has stand where that run begins (L2)", async () => {
    const image = { type: "image", source: { type: "data", value: "AA==", mimeType: "image/png" } };
    const named = (runId: string, messages: readonly unknown[]): BaseEvent => ({
      ...started(runId),
      input: { ...inputOf("t", runId), messages },
    });
    const asks = {
      id: "asks",
      role: "assistant",
      toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
    };
    const seen = { id: "seen", role: "user", content: [{ type: "text", text: "see" }, image] };
    const { messages, status, events } = await recorded([
      named("r0", [user("u0")]),
      ...answer("a0"),
      finished("r0"),
      named("r1", [
        user("u0"),
        { id: "a0", role: "assistant", content: "answer" },
        asks,
        { id: "res", role: "tool", toolCallId: "c", content: "1" },
        user("u1"),
        user("u1"),
        { id: "bad", role: "poet" },
      ]),
      ...answer("a1"),
      failed(),
      named("r", [user("u1"), seen, user("r-u"), user("u2", "")]),
      ...answer("a2"),
      finished(),
    ]);
    expect({ status, messages }).toEqual({
      status: "finished",
      messages: ["u0", "r-u", "a0", "asks", "res", "u1", "a1", "seen", "u2", "a2"],
    });
    expect((await rebuild(events)).messages.find(({ id }) => id === "seen")).toEqual(seen);
  });

  test("a failure to begin, and then the run", async () => {
    const { events, status } = await recorded([failed("first"), started(), ...answer(), finished()]);
    expect(types(events)).toEqual([EventType.RUN_STARTED, ...types(answer()), EventType.RUN_FINISHED]);
    expect(status).toBe("finished");
  });

  test("the last of them is cut off: errored", async () => {
    const { events, status } = await recorded([started("old"), finished("old"), started(), ...answer().slice(0, 2)]);
    expect(events.at(-1)).toMatchObject({ code: "INCOMPLETE_STREAM" });
    expect(status).toBe("errored");
  });

  test("an interrupt of the earlier one is over", async () => {
    const outcome = { type: "interrupt", interrupts: [{ id: "i", reason: "confirm" }] };
    const { events } = await recorded([started("old"), finished("old", { outcome }), started(), finished()]);
    expect(events.filter((event) => event["outcome"] !== undefined)).toEqual([]);
  });

  test("a stop between them stops the run", async () => {
    const runner = makeRunner({ stopGraceMs: 60_000 });
    const stream = concat(from([started("old"), restated, finished("old")]), NEVER);
    const stopped$ = new Subject<void>();
    const agent = Object.assign(
      rawAgent(() => stream.pipe(takeUntil(stopped$))),
      { abortRun: () => stopped$.next() },
    );
    const events = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await runner.getRunEvents("r")).toHaveLength(2));
    expect(await runner.stop({ threadId: "t" })).toBe(true);
    expect((await events).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });
});

describe("after RUN_FINISHED", () => {
  test.each([
    ["RUN_ERROR fails the run", [failed()], { type: EventType.RUN_ERROR, message: "late" }, "errored"],
    ["any other event is rejected", answer("late"), { type: EventType.RUN_ERROR, code: "INVALID_STREAM" }, "errored"],
    ["another end is rejected", [finished("r", { result: 2 })], { code: "INVALID_STREAM" }, "errored"],
    ["the same end again is dropped", [finished()], { type: EventType.RUN_FINISHED }, "finished"],
    ["what AG-UI does not know is dropped", [{ type: "NEW" } as never], { type: EventType.RUN_FINISHED }, "finished"],
  ] as const)("%s; what came before is kept", async (_what, late, terminal, expected) => {
    vi.spyOn(console, "warn").mockReturnValue();
    const { events, status, messages } = await recorded([started(), ...answer(), finished(), ...late]);
    expect(events.at(-1)).toMatchObject(terminal);
    expect(types(events).slice(0, -1)).toEqual([EventType.RUN_STARTED, ...types(answer())]);
    expect({ status, messages }).toEqual({ status: expected, messages: ["r-u", "m"] });
  });

  test("an agent that throws has failed", async () => {
    const late = throwError(() => new Error("boom"));
    const { events } = await recorded([started(), ...answer(), finished()], late);
    expect(events.at(-1)).toMatchObject({ message: "boom", code: "AGENT_FAILED" });
  });

  test("an agent that says RUN_ERROR and throws has said why", async () => {
    const late = throwError(() => new Error("boom"));
    const { events } = await recorded([started(), failed("mine")], late);
    expect(events.at(-1)).toMatchObject({ message: "mine" });
  });

  test("an agent that never completes does not hold the thread (L7)", async () => {
    const { events, status } = await recorded([started(), ...answer(), finished()], NEVER);
    expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
    expect(status).toBe("finished");
  });

  test("an agent that never completes and names another run does not either", async () => {
    const { events } = await recorded([started("x"), ...answer(), finished("x")], NEVER);
    expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "r" });
  });

  test("a stop comes too late", async () => {
    const runner = makeRunner({ stopGraceMs: 60_000 });
    const stream = concat(from([started(), ...answer(), finished()]), NEVER);
    const events = collect(runner.run({ threadId: "t", agent: rawAgent(() => stream), input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect(await runner.getRunEvents("r")).not.toHaveLength(0));
    await runner.stop({ threadId: "t" });
    expect((await events).at(-1)).not.toHaveProperty("outcome");
    expect(await runner.getRun("r")).toMatchObject({ status: "finished" });
  });
});

describe("after RUN_ERROR nothing but another run is taken, and what the agent said stands (L7)", () => {
  const mine = { ...failed("mine"), code: "MINE" };
  const deep = { type: EventType.CUSTOM, name: "deep", value: [[[[[[1]]]]]] };
  const big = { type: EventType.CUSTOM, name: "big", value: 1n };

  test.each<[string, readonly unknown[], RegExp | undefined]>([
    ["a message", answer("late"), /TEXT_MESSAGE_START.* comes after RUN_ERROR/],
    ["RUN_FINISHED", [finished()], /RUN_FINISHED.* comes after RUN_ERROR/],
    ["another failure", [failed("another")], /RUN_ERROR.* comes after RUN_ERROR/],
    ["what is no event", ["?"], /not an AG-UI event/],
    ["what cannot be stored", [big], /BigInt/],
    ["more than may be sent", [deep], /maxDepth/],
    ["the same failure again", [mine], undefined],
  ])("%s", async (_what, late, warning) => {
    for (const end of [[], [finished()]]) {
      const stream = [started(), ...answer(), ...end, mine, ...late] as BaseEvent[]; // an agent may emit anything
      for (const agent of [rawAgent(() => from(stream)), new OwnRunAgent(stream)]) {
        const [warn, error] = [vi.fn<Logger["warn"]>(), vi.fn<Logger["error"]>()];
        const runner = makeRunner({ logger: { error, warn }, eventLimits: { maxDepth: 5 } });
        const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
        expect(types(events)).toEqual([EventType.RUN_STARTED, ...types(answer()), EventType.RUN_ERROR]);
        expect(events.at(-1)).toMatchObject({ message: "mine", code: "MINE" });
        expect(await runner.getRun("r")).toMatchObject({ status: "errored" });
        expect(error.mock.calls).toEqual([[expect.stringContaining("MINE: mine")]]);
        expect(warn.mock.calls).toEqual(warning === undefined ? [] : [[expect.stringMatching(warning)]]);
      }
    }
  });

  test("another run", async () => {
    const { events, status } = await recorded([started("old"), mine, started(), ...answer(), finished()]);
    expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
    expect(status).toBe("finished");
  });
});

test.each<[string, BaseEvent, EventLimits, string]>([
  ["is more than the run may have", failed("mine"), { maxRunEvents: 4 }, "EVENT_LIMIT"],
  ["holds what is no object in JSON", { ...failed("mine"), metadata: new Date(0) }, {}, "INVALID_STREAM"],
])(
  "a failure that %s ends its run, also where the stream goes on without a word (L7)",
  async (_what, end, limits, code) => {
    const stream = [started(), ...answer(), end];
    const openEnded = rawAgent(() => concat(from(stream), NEVER));
    for (const agent of [openEnded, rawAgent(() => from(stream)), new OwnRunAgent(stream)]) {
      const runner = makeRunner({ eventLimits: limits });
      const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
      expect(types(events)).toEqual([EventType.RUN_STARTED, ...types(answer()), EventType.RUN_ERROR]);
      expect(events.at(-1)).toMatchObject({ code });
    }
  },
);

test("an agent that says that its run was cancelled was stopped", async () => {
  const outcome = { type: "cancelled" };
  const { events, status } = await recorded([started(), finished("r", { outcome, usage: [] })]);
  expect(events.at(-1)).toMatchObject({ outcome, usage: [] });
  expect(status).toBe("stopped");
});
