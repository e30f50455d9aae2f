import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { agentOf, collect, counter, eventsOfFrame, framesUntil, inputOf, PRESETS, user } from "./kit.js";

function doubled(): unknown {
  let value: unknown = "x";
  for (let n = 0; n < 40; n++) value = [value, value];
  return value;
}

/**
 * Values that are not JSON, as careless agents put them into their events, and how their run ends: what has no end, or
 * far more bytes as text than in memory, goes beyond the limits of an event.
 */
const VALUES: Readonly<Record<string, { readonly make: () => unknown; readonly status: "finished" | "errored" }>> = {
  "that holds itself": {
    status: "errored",
    make: () => {
      const loop: { self?: unknown; list: unknown[] } = { list: [] };
      loop.self = loop;
      loop.list.push(loop);
      return loop;
    },
  },
  "that holds one value in many places": {
    status: "errored",
    make: () => doubled(),
  },
  "of bytes": { status: "finished", make: () => new Uint8Array(20_000) },
  "of many bytes": { status: "errored", make: () => new Uint8Array(2_000_000) },
  "of one field of many bytes": { status: "finished", make: () => ({ toJSON: () => "x".repeat(2 ** 23) }) },
  "whose JSON is larger than an event": { status: "errored", make: () => ({ toJSON: () => "x".repeat(2 ** 25) }) },
  "whose JSON holds one value in many places": { status: "errored", make: () => ({ toJSON: doubled }) },
  "whose JSON is too deep": {
    status: "errored",
    make: () => ({ toJSON: () => JSON.parse("[".repeat(300) + "]".repeat(300)) as unknown }),
  },
  "whose JSON has no end": {
    status: "errored",
    make: () => {
      const toJSON = (): object => ({ inner: { toJSON } });
      return { toJSON };
    },
  },
  "whose toJSON throws": {
    status: "errored",
    make: () => ({
      toJSON: () => {
        throw new Error("no JSON");
      },
    }),
  },
};

class Point {
  readonly #secret = 1;
  constructor(
    readonly x: number,
    readonly next?: Point,
  ) {}
  get sum(): number {
    return this.x + this.#secret;
  }
}

class Money {
  readonly self = this;
  constructor(readonly cents: bigint) {}
  toJSON(): object {
    return { cents: String(this.cents) };
  }
}

/** What is no JSON, and has a JSON form. */
const FORMS: readonly [string, () => unknown][] = [
  ["a Date", () => new Date(0)],
  ["an invalid Date", () => new Date(NaN)],
  ["a Map", () => new Map([["a", 1]])],
  ["a Set", () => new Set([1, 2])],
  ["a RegExp", () => /x/g],
  ["an Error", () => new TypeError("x")],
  ["boxed values", () => [Object(1), Object("text"), Object(true)]],
  ["an instance of a class", () => new Point(1, new Point(2))],
  ["an instance with toJSON", () => new Money(7n)],
  ["a plain object with toJSON", () => ({ hidden: 1, toJSON: () => [1, { two: 2 }] })],
  ["a URL", () => new URL("https://example.test/x")],
  ["numbers that are none in JSON", () => [NaN, Infinity, -Infinity, -0]],
  ["a list with holes", () => [1, , undefined, 2]], // eslint-disable-line no-sparse-arrays
  ["a list of a class", () => new (class extends Array<number> {})(1, 2, 3)],
  ["fields that are undefined", () => ({ a: undefined, b: { c: undefined } })],
  ["an object without a prototype", () => Object.assign(Object.create(null) as object, { when: new Date(0) })],
];

const BIG = { is: 7n };
const BYTES = { are: new Uint8Array(2) };
const activity = (content: object): BaseEvent => ({
  type: EventType.ACTIVITY_SNAPSHOT,
  messageId: "act",
  activityType: "x",
  content,
});
const snapshot = (value: object): BaseEvent => ({ type: EventType.STATE_SNAPSHOT, snapshot: value });
const patch = (value: object): BaseEvent => ({
  type: EventType.STATE_DELTA,
  delta: [{ op: "add", path: "/v", value }],
});
const messages = (message: object): BaseEvent => ({
  type: EventType.MESSAGES_SNAPSHOT,
  messages: [{ id: "m", ...message }],
});
const interrupt = (metadata: object): BaseEvent => ({
  type: EventType.RUN_FINISHED,
  threadId: "t",
  runId: "r",
  outcome: { type: "interrupt", interrupts: [{ id: "i", reason: "x", metadata }] },
});
const begun = (metadata: object): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_START,
  messageId: "m",
  role: "assistant",
  metadata,
});

describe.each(PRESETS)("%s", (_name, makeRunner) => {
  test.each<[string, BaseEvent]>([
    ["a BigInt in the state", snapshot(BIG)],
    ["a BigInt in a patch", patch(BIG)],
    ["a BigInt in an activity", activity(BIG)],
    ["a BigInt in metadata", begun(BIG)],
    ["a BigInt in a custom event", { type: EventType.CUSTOM, name: "c", value: BIG }],
    ["a BigInt as the result", { type: EventType.RUN_FINISHED, threadId: "t", runId: "r", result: 7n }],
    ["a BigInt in its object", snapshot({ is: Object(7n) })],
    ["a BigInt in its object, in a custom event", { type: EventType.CUSTOM, name: "c", value: Object(7n) }],
    ["a date as an activity", activity(new Date(0))],
    ["a date as metadata", begun(new Date(0))],
    ["a date as the metadata of an interrupt", interrupt(new Date(0))],
    ["a date as an activity of a snapshot", messages({ role: "activity", activityType: "x", content: new Date(0) })],
    ["a date as metadata in a snapshot", messages({ role: "user", content: "x", metadata: new Date(0) })],
    ["bytes in the state", snapshot(BYTES)],
    ["bytes in a patch", patch(BYTES)],
    ["bytes in an activity", activity(BYTES)],
    ["bytes in metadata", begun(BYTES)],
  ])(
    "%s would fail readers over HTTP, or tabs: it ends its run, and the thread goes on (L19)",
    async (_what, event) => {
      const runner = makeRunner();
      const agent = agentOf(async function* () {
        yield event;
      });
      const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
      expect(events.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "INVALID_STREAM" });
      await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
      const told = (await framesUntil(runner, { threadId: "t" })).flatMap(eventsOfFrame);
      expect(JSON.parse(JSON.stringify(told))).toEqual(told);
      expect(told.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "next" });
    },
  );

  test.each(FORMS)(
    "%s is recorded as what JSON makes of it, so that all readers rebuild the same (L2)",
    async (_, make) => {
      const runner = makeRunner();
      const values: unknown[] = [];
      const value = (): unknown => {
        const made = make();
        values.push([made, JSON.stringify(made)]);
        return made;
      };
      const agent = agentOf(async function* () {
        yield { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
        yield snapshot({ v: value(), list: [] });
        yield {
          type: EventType.STATE_DELTA,
          delta: [
            { op: "remove", path: "/v" },
            { op: "add", path: "/list/-", value: { patched: value() } },
          ],
        };
        yield messages({ role: "user", content: "x", metadata: { it: value() } });
        yield activity({ it: value() });
        yield begun({ it: value() });
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "x", metadata: { it: value() } };
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "y", unknown: value() };
        yield { type: EventType.TEXT_MESSAGE_END, messageId: "m" };
        yield { type: EventType.CUSTOM, name: "c", value: { it: value() } };
        yield { type: EventType.RAW, event: { it: value() } };
        yield { type: EventType.RUN_FINISHED, threadId: "t", runId: "r", result: { it: value() } };
      });
      const live = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
      const readings = {
        live: await live,
        all: (await framesUntil(runner, { threadId: "t", replay: "events" })).flatMap(eventsOfFrame),
        shown: (await framesUntil(runner, { threadId: "t" })).flatMap(eventsOfFrame),
        messages: await runner.getThreadMessages("t"),
        state: await runner.getThreadState("t"),
      };
      expect(readings.live.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
      for (const reading of Object.values(readings)) {
        expect(structuredClone(reading)).toStrictEqual(JSON.parse(JSON.stringify(reading)));
      }
      const form: unknown = JSON.parse(JSON.stringify({ it: make() }));
      const { it } = form as { readonly it: unknown };
      expect(readings.state).toStrictEqual({ list: [{ patched: it }] });
      expect(readings.messages).toContainEqual(expect.objectContaining({ role: "activity", content: form }));
      expect(readings.live.at(-1)).toHaveProperty("result", form);
      // The agent's own objects are as they were.
      expect(values.map((pair) => JSON.stringify((pair as unknown[])[0]))).toEqual(
        values.map((pair) => (pair as unknown[])[1]),
      );
    },
  );

  test("a Map where a record must be is one in JSON, and an object with toJSON what that makes", async () => {
    const runner = makeRunner();
    const agent = agentOf(async function* () {
      yield activity(new Map([[1, 2]]));
      yield begun({ cyclic: 1, toJSON: () => ({ made: true }) });
    });
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
    expect(events).toContainEqual(expect.objectContaining({ type: EventType.ACTIVITY_SNAPSHOT, content: {} }));
    expect(events).toContainEqual(expect.objectContaining({ messageId: "m", metadata: { made: true } }));
  });

  test.each(FORMS)("%s in the state of a request is recorded as what JSON makes of it, too", async (_, make) => {
    const runner = makeRunner();
    const state = { it: make() };
    const message = { ...user("u"), metadata: { it: make() } };
    const input = { ...inputOf("t", "r", [message]), state };
    const events = await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input }));
    expect(structuredClone(events)).toStrictEqual(JSON.parse(JSON.stringify(events)));
    expect(await runner.getThreadState("t")).toStrictEqual(JSON.parse(JSON.stringify(state)));
    expect((await runner.getThreadMessages("t"))[0]).toStrictEqual(JSON.parse(JSON.stringify(message)));
  });

  test.each(["state", "message"])("a field of a request's %s that is undefined is left out", async (which) => {
    const runner = makeRunner();
    const state = { count: 1, ...(which === "state" && { gone: undefined }) };
    const message = user("u");
    if (which === "message") Reflect.set(message, "name", undefined);
    let given: unknown;
    const agent = agentOf(async function* (input) {
      given = [structuredClone(input.state), structuredClone(input.messages[0])];
      yield* [];
    });
    const events = await collect(
      runner.run({ threadId: "t", agent, input: { ...inputOf("t", "r", [message]), state } }),
    );
    expect(given).toStrictEqual([{ count: 1 }, user("u")]);
    expect(structuredClone(events[0])).toStrictEqual(JSON.parse(JSON.stringify(events[0])));
    expect(await runner.getThreadState("t")).toStrictEqual({ count: 1 });
    expect((await runner.getThreadMessages("t"))[0]).toStrictEqual(user("u"));
  });

  test("an activity that a patch makes a date would fail readers over HTTP, too", async () => {
    const runner = makeRunner();
    const agent = agentOf(async function* () {
      yield activity({});
      const whole = [{ op: "replace", path: "", value: new Date(0) }];
      yield { type: EventType.ACTIVITY_DELTA, messageId: "act", activityType: "x", patch: whole };
    });
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(events.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "INVALID_STREAM" });
    expect(await runner.getThreadMessages("t")).toContainEqual(
      expect.objectContaining({ role: "activity", content: {} }),
    );
  });

  test.each<[string, object]>([
    ["input.messages[0]", { messages: [{ ...user("u"), metadata: new Date(0) }] }],
    ["input.state", { state: BIG }],
    ["input.state", { state: BYTES }],
    ["input.messages[0]", { messages: [{ ...user("u"), metadata: BIG }] }],
    ["input.forwardedProps", { forwardedProps: BIG }],
  ])("a request whose %s has no JSON is refused", (field, hostile) => {
    const input = { ...inputOf("t", "r"), ...hostile };
    const run = { threadId: "t", agent: agentOf(counter(1)), input };
    expect(() => makeRunner().run(run)).toThrow(expect.objectContaining({ code: "invalid-input", details: { field } }));
  });

  test.each(Object.keys(VALUES))(
    "an event with a value %s starves nobody, and the thread goes on (L7)",
    async (name) => {
      const runner = makeRunner();
      const { make, status } = VALUES[name]!;
      const value = make();
      const agent = agentOf(async function* (input, context) {
        yield { type: EventType.CUSTOM, name: "odd", value } as BaseEvent;
        yield { type: EventType.RAW, event: value } as BaseEvent;
        yield* counter(3)(input, context);
      });
      await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
      expect(await runner.getRun("r")).toMatchObject({ status });
      await collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") }));
      const events = (await framesUntil(runner, { threadId: "t", replay: "events" })).flatMap(eventsOfFrame);
      expect(events.filter(({ type }) => type === EventType.CUSTOM).length).toBe(status === "finished" ? 1 : 0);
      expect(events.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, runId: "next" });
    },
  );
});
