import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { FunctionMiddleware } from "@ag-ui/client";
import { from, map } from "rxjs";
import { describe, expect, test } from "vitest";
import type { EventLimits } from "../../../src/runner/agent/event-limits.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import { agentOf, collect, counter, inputOf, makeRunner, PRESETS, rawAgent, rebuild, replay, user } from "./kit.js";

const nested = (depth: number): unknown => {
  let value: unknown = 0;
  for (let n = 0; n < depth; n++) value = n % 2 === 0 ? [value] : { a: value };
  return value;
};

const SAID: BaseEvent[] = [
  { type: EventType.TEXT_MESSAGE_START, messageId: "said", role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "said", delta: "before" },
  { type: EventType.TEXT_MESSAGE_END, messageId: "said" },
];

const custom = (value: unknown): BaseEvent => ({ type: EventType.CUSTOM, name: "c", value });
const text = (messageId: string, length: number): BaseEvent => ({
  type: EventType.TEXT_MESSAGE_CONTENT,
  messageId,
  delta: "x".repeat(length),
});
const delta = (...patch: unknown[]): BaseEvent => ({ type: EventType.STATE_DELTA, delta: patch });
const add = { op: "add", path: "/a", value: 1 };
const poison = { op: "move", from: "/toString", path: "/x" };
const copies = (count: number): unknown[] =>
  Array.from({ length: count }, (_, n) => ({ op: "copy", from: "", path: `/${n}` }));

/** Runs an agent that emits these, and tells how that ended. */
async function emitting(runner: LocalAgentRunner, events: readonly BaseEvent[], runId = "r", thread = "t") {
  const agent = rawAgent(({ threadId }) =>
    from([
      { type: EventType.RUN_STARTED, threadId, runId },
      ...events,
      { type: EventType.RUN_FINISHED, threadId, runId },
    ]),
  );
  const seen = await collect(runner.run({ threadId: thread, agent, input: inputOf(thread, runId) }));
  return { seen, end: seen.at(-1) as BaseEvent & { code?: string; message?: string } };
}

/** The thread works, and every way of attaching rebuilds the same. */
async function expectWhole(runner: LocalAgentRunner): Promise<void> {
  await collect(runner.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
  expect(await runner.getRun("next")).toMatchObject({ status: "finished" });
  const messages = await runner.getThreadMessages("t");
  const state = await runner.getThreadState("t");
  expect(messages.map(({ id }) => id)).toEqual(expect.arrayContaining(["r-u", "next-u", "next-a"]));
  expect(await rebuild(await replay(runner, "t"))).toEqual({ messages, state });
  const snapshot = runner.connect({ threadId: "t", replay: "snapshot" });
  expect(await rebuild(await collect(snapshot))).toEqual({ messages, state });
}

interface Case {
  readonly limits: EventLimits;
  /** Passes. */
  readonly most: readonly BaseEvent[];
  /** Ends the run. */
  readonly more: readonly BaseEvent[];
  readonly says: RegExp;
}

const activity = (content: unknown): BaseEvent => ({
  type: EventType.ACTIVITY_SNAPSHOT,
  messageId: "plan",
  activityType: "plan",
  content,
});
const change = (...patch: unknown[]): BaseEvent => ({
  type: EventType.ACTIVITY_DELTA,
  messageId: "plan",
  activityType: "plan",
  patch,
});
const started = { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" } as BaseEvent;
const ended = { type: EventType.TEXT_MESSAGE_END, messageId: "m" } as BaseEvent;
const list = (length: number) => Array.from({ length }, (_, n) => ({ text: "x".repeat(100), n }));
const ofSubagent = (deltas: number): BaseEvent[] => {
  const ids = { subagentRunId: "s".repeat(1_000) };
  const said = [started, ...Array.from({ length: deltas }, () => text("m", 0)), ended];
  const owned = said.map((event) => ({ ...event, ...ids }));
  const start = { type: EventType.SUBAGENT_STARTED, name: "s", ...ids };
  return [start, ...owned, { type: EventType.SUBAGENT_FINISHED, ...ids }];
};

const CASES: [string, Case][] = [
  [
    "the depth of an event",
    { limits: { maxDepth: 8 }, most: [custom(nested(7))], more: [custom(nested(8))], says: /maxDepth/ },
  ],
  [
    "the depth that an event may have at most",
    {
      limits: {},
      most: [custom(nested(199))],
      more: [custom(nested(200))],
      says: /200 levels \(eventLimits.maxDepth\)/,
    },
  ],
  ["a depth that would end the host", { limits: {}, most: [], more: [custom(nested(100_000))], says: /maxDepth/ }],
  [
    "the depth of metadata of a delta",
    {
      limits: { maxDepth: 8 },
      most: [started, { ...text("m", 1), metadata: { v: nested(6) } }, ended],
      more: [started, { ...text("m", 1), metadata: { v: nested(7) } }, ended],
      says: /maxDepth/,
    },
  ],
  [
    "the depth of a state that patches build",
    {
      limits: { maxDepth: 8 },
      most: [
        delta({ op: "add", path: "/a", value: { b: { c: {} } } }),
        delta({ op: "add", path: "/a/b/c/d", value: nested(4) }),
      ],
      more: [
        delta({ op: "add", path: "/a", value: { b: { c: {} } } }),
        delta({ op: "add", path: "/a/b/c/d", value: nested(5) }),
      ],
      says: /maxDepth/,
    },
  ],
  [
    "the bytes of a text delta",
    {
      limits: { maxEventBytes: 1_000 },
      most: [started, text("m", 1_000), ended],
      more: [started, text("m", 1_001), ended],
      says: /more than 1000 bytes \(eventLimits.maxEventBytes\)/,
    },
  ],
  [
    "the bytes of any other event",
    // Three names, "CUSTOM", "c", and 8 for each of the four values.
    {
      limits: { maxEventBytes: 4 * 8 + 13 + 7 + 500 },
      most: [custom("x".repeat(500))],
      more: [custom("x".repeat(501))],
      says: /CUSTOM.*maxEventBytes/,
    },
  ],
  [
    "the operations of a patch",
    {
      limits: { maxPatchOperations: 3 },
      most: [delta(add, add, add)],
      more: [delta(add, add, add, add)],
      says: /maxPatchOperations/,
    },
  ],
  [
    "the operations of a patch of an activity",
    {
      limits: { maxPatchOperations: 3 },
      most: [activity({}), change(add, add, add)],
      more: [activity({}), change(add, add, add, add)],
      says: /maxPatchOperations/,
    },
  ],
  [
    "the bytes that a patch copies",
    {
      limits: { maxCopiedBytes: 108 },
      most: [delta({ op: "add", path: "/t", value: "x".repeat(100) }), delta({ op: "copy", from: "/t", path: "/u" })],
      more: [delta({ op: "add", path: "/t", value: "x".repeat(101) }), delta({ op: "copy", from: "/t", path: "/u" })],
      says: /maxCopiedBytes/,
    },
  ],
  ["a patch bomb", { limits: {}, most: [delta(...copies(4))], more: [delta(...copies(26))], says: /maxCopiedBytes/ }],
  [
    "a patch bomb in an activity",
    {
      limits: {},
      most: [activity({}), change(...copies(4))],
      more: [activity({}), change(...copies(26))],
      says: /maxCopiedBytes/,
    },
  ],
  [
    "a state that each event doubles",
    {
      limits: {},
      most: Array.from({ length: 4 }, (_, n) => delta({ op: "copy", from: "", path: `/${n}` })),
      more: [
        { type: EventType.STATE_SNAPSHOT, snapshot: { list: list(100) } } as BaseEvent,
        ...Array.from({ length: 20 }, (_, n) => delta({ op: "copy", from: "", path: `/${n}` })),
      ],
      says: /maxCopiedBytes/,
    },
  ],
  [
    "activities that are made of small events",
    {
      limits: { maxRunBytes: 400_000 },
      most: [activity({ list: list(100) }), change({ op: "copy", from: "/list", path: "/copy" })],
      more: [
        activity({ list: list(100) }),
        ...Array.from({ length: 100 }, (_, n) => change({ op: "copy", from: "/list", path: `/${n % 3}` })),
      ],
      says: /maxRunBytes/,
    },
  ],
  [
    "the bytes of a run",
    {
      limits: { maxRunBytes: 5_000 },
      most: [started, ...Array.from({ length: 4 }, () => text("m", 1_000)), ended],
      more: [started, ...Array.from({ length: 5 }, () => text("m", 1_000)), ended],
      says: /maxRunBytes/,
    },
  ],
  [
    "the bytes of a run in which empty deltas repeat the long id of a subagent",
    { limits: { maxRunBytes: 20_000 }, most: ofSubagent(3), more: ofSubagent(30), says: /maxRunBytes/ },
  ],
  // RUN_STARTED, the three of SAID, the ten, and RUN_FINISHED.
  [
    "the events of a run",
    {
      limits: { maxRunEvents: 15 },
      most: Array.from({ length: 10 }, () => custom(0)),
      more: Array.from({ length: 15 }, () => custom(0)),
      says: /maxRunEvents/,
    },
  ],
];

describe.each(PRESETS)("%s: event limits (L19)", (_name, make) => {
  test.each(CASES)("%s", async (_what, { limits, most, more, says }) => {
    const runner = make({ eventLimits: limits });
    expect((await emitting(runner, [...SAID, ...most], "within", "other")).end.type).toBe(EventType.RUN_FINISHED);
    const { end } = await emitting(runner, [...SAID, ...more]);
    expect(end).toMatchObject({ type: EventType.RUN_ERROR, code: "EVENT_LIMIT" });
    expect(end.message).toMatch(says);
    expect(await runner.getRun("r")).toMatchObject({ status: "errored" });
    expect((await runner.getThreadMessages("t")).find(({ id }) => id === "said")).toMatchObject({ content: "before" });
    await expectWhole(runner);
  });

  test("the bytes of a thread: a run that has no room left ends, and a new thread has room", async () => {
    const runner = make({ eventLimits: { maxThreadBytes: 20_000 } });
    const said = (id: string) =>
      [{ ...started, messageId: id }, text(id, 3_000), { ...ended, messageId: id }] as BaseEvent[];
    const ends: unknown[] = [];
    for (let n = 0; n < 8; n++) ends.push((await emitting(runner, said(`a${n}`), `r${n}`)).end);
    expect(ends.slice(0, 2)).toMatchObject([{ type: EventType.RUN_FINISHED }, { type: EventType.RUN_FINISHED }]);
    expect(ends[7]).toMatchObject({
      code: "EVENT_LIMIT",
      message: expect.stringContaining("maxThreadBytes") as string,
    });
    const agent = agentOf(counter(1));
    await collect(runner.run({ threadId: "other", agent, input: inputOf("other", "new") }));
    expect(await runner.getRun("new")).toMatchObject({ status: "finished" });
  });

  test.each<[string, BaseEvent[]]>([
    ["a patch that moves what objects inherit", [delta(poison)]],
    ["such a patch of an activity", [activity({}), change(poison)]],
    [
      "a patch that copies the length of a list",
      [delta({ op: "add", path: "/l", value: [] }, { op: "copy", from: "/l/length", path: "/x" })],
    ],
    ["an activity that becomes a number", [activity({}), change({ op: "replace", path: "", value: 5 })]],
    ["an activity that becomes a list", [activity({}), change(add, { op: "replace", path: "", value: [] })]],
    ["an activity that is removed", [activity({}), change({ op: "remove", path: "" })]],
  ])("%s ends the run before any reader has it", async (_what, events) => {
    const runner = make();
    const { seen, end } = await emitting(runner, [...SAID, ...events]);
    expect(end).toMatchObject({ type: EventType.RUN_ERROR, code: "INVALID_STREAM" });
    const snapshot = runner.connect({ threadId: "t", replay: "snapshot" });
    expect((await rebuild(await collect(snapshot))).messages).toEqual(await runner.getThreadMessages("t"));
    expect(JSON.stringify([...seen, await runner.getRunEvents("r")])).not.toMatch(/"op":/);
    await expectWhole(runner);
  });

  test("a patch that does not apply anywhere ends nothing", async () => {
    const runner = make();
    const { end } = await emitting(runner, [delta({ op: "replace", path: "/none", value: 1 }), delta(add)]);
    expect(end.type).toBe(EventType.RUN_FINISHED);
    expect(await runner.getThreadState("t")).toEqual({ a: 1 });
  });

  test.each<[string, () => unknown]>([
    ["holds itself", () => Object.assign([] as unknown[], { 0: 1 }) && loop()],
    ["holds a function", () => ({ call: () => 1 })],
    [
      "throws when it is read",
      () =>
        Object.defineProperty({}, "x", {
          enumerable: true,
          get: () => {
            throw new Error("no");
          },
        }),
    ],
    ["never ends", () => endless()],
    ["expands without end", () => Array.from({ length: 40 }).reduce((value) => [value, value], "x" as unknown)],
    [
      "holds itself in a map",
      () => {
        const held = new Map<string, unknown>();
        held.set("x", held);
        return held;
      },
    ],
  ])("an event that %s ends its run, and nothing else", async (_what, value) => {
    const runner = make();
    let runs = 0;
    for (const event of [
      custom(value()),
      { ...custom(1), rawEvent: value() },
      activity({ v: value() }),
      delta({ op: "add", path: "/a", value: value() }),
    ]) {
      const { end } = await emitting(runner, [...SAID, event], `r${++runs}`, "other");
      expect(end.type).toBe(EventType.RUN_ERROR);
    }
    await emitting(runner, [...SAID, activity({ v: value() })]);
    await expectWhole(runner);
  });

  test("an event that a middleware made counts too", async () => {
    const runner = make({ eventLimits: { maxDepth: 10 } });
    const agent = agentOf(counter(3));
    agent.use(
      new FunctionMiddleware((input, next) =>
        next
          .run(input)
          .pipe(
            map((event) =>
              event.type === EventType.TEXT_MESSAGE_END ? { ...event, metadata: { v: nested(20) } } : event,
            ),
          ),
      ),
    );
    const seen = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(seen.at(-1)).toMatchObject({ code: "EVENT_LIMIT" });
    await expectWhole(runner);
  });

  test.each<
    [string, (deep: unknown) => { messages?: Message[]; state?: unknown; persisted?: Message[]; forwarded?: unknown }]
  >([
    ["message", (deep) => ({ messages: [{ ...user("u"), metadata: { deep } } as Message] })],
    ["persisted message", (deep) => ({ persisted: [{ ...user("u"), metadata: { deep } } as Message] })],
    ["state", (deep) => ({ state: { deep } })],
    ["forwarded property", (deep) => ({ forwarded: { deep } })],
  ])("a %s of the input that is too deep or too large is refused, and nothing is started", (_what, parts) => {
    const runner = make({ eventLimits: { maxDepth: 10, maxEventBytes: 5_000 } });
    const start = (value: unknown) => () => {
      const { messages, state, persisted, forwarded } = parts(value);
      runner.run({
        threadId: "t",
        agent: agentOf(counter(1)),
        input: { ...inputOf("t", "r", messages, state), forwardedProps: forwarded ?? {} },
        ...(persisted !== undefined && { persistedInputMessages: persisted }),
      });
    };
    expect(start(nested(5_000))).toThrow(
      expect.objectContaining({ code: "invalid-input", message: expect.stringContaining("maxDepth") as string }),
    );
    if (_what !== "forwarded property") {
      expect(start("x".repeat(5_001))).toThrow(
        expect.objectContaining({ code: "invalid-input", message: expect.stringContaining("maxEventBytes") as string }),
      );
    }
    expect(start("x".repeat(100))).not.toThrow();
  });
});

const loop = (): unknown => {
  const value: Record<string, unknown> = {};
  value["self"] = [value];
  return value;
};

/** Makes more of itself whenever somebody looks. */
const endless = (): unknown =>
  new Proxy({} as Record<string, unknown>, {
    ownKeys: () => ["more"],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 0 }),
    get: () => endless(),
  });

test.each<[string, EventLimits]>([
  ["an unknown limit", { maxEvents: 1 } as EventLimits],
  ["no number", { maxRunBytes: "1" as unknown as number }],
  ["less than one", { maxRunEvents: 0 }],
  ["an event without end", { maxEventBytes: Infinity }],
  ["deeper than every reader goes", { maxDepth: 201 }],
  ["more operations than every reader applies", { maxPatchOperations: 10_001 }],
  ["more copies than every reader makes", { maxCopiedBytes: 1_000_001 }],
])("an option that is %s is refused", (_what, eventLimits) => {
  const [field] = Object.keys(eventLimits);
  expect(() => makeRunner({ eventLimits })).toThrow(
    expect.objectContaining({
      code: "invalid-input",
      message: expect.stringContaining(`eventLimits.${field!}`) as string,
    }),
  );
});
