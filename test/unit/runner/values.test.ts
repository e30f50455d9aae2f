import { EventType, type BaseEvent } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { agentOf, collect, counter, eventsOfFrame, framesUntil, inputOf, PRESETS, user } from "./kit.js";

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
    make: () => {
      let value: unknown = "x";
      for (let n = 0; n < 40; n++) value = [value, value];
      return value;
    },
  },
  "of many bytes": { status: "finished", make: () => new Uint8Array(2_000_000) },
};

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
