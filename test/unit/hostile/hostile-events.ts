import { EventType } from "@ag-ui/client";
import fc from "fast-check";

/** Makes what an agent emits. Drawn as data, so that a case that fails can be read; made anew for each run. */
export interface Hostile {
  readonly says: string;
  readonly make: () => unknown;
}

const hostile = (says: string, make: () => unknown): Hostile => ({ says, make });

const NAMES = ["toString", "__proto__", "constructor", "prototype", "hasOwnProperty", "valueOf", "length", "then"];
const POINTERS = [
  "",
  "/",
  "/a",
  "/a/b",
  "/list",
  "/list/-",
  "/list/0",
  "/list/00",
  "/list/-1",
  "/list/1e0",
  "/list/99999999",
  "/text/0",
  "/a~1b",
  "/a~2",
  "no slash",
  ...NAMES.flatMap((name) => [`/${name}`, `/a/${name}`, `/list/${name}`, `/text/${name}`]),
  "/constructor/prototype/polluted",
  "/__proto__/polluted",
  "/a/__proto__/polluted",
];
const OPS = ["add", "remove", "replace", "move", "copy", "test", "merge"];

const pointer = fc.constantFrom(...POINTERS);
const value = fc.oneof(
  fc.constantFrom<unknown>(null, 0, "", "polluted", [], {}, { list: [1], a: { b: 1 } }),
  fc.constantFrom(...NAMES).map((name) => JSON.parse(`{"${name}":{"polluted":true}}`) as unknown),
);
const operation = fc.record(
  { op: fc.constantFrom(...OPS), path: pointer, from: pointer, value },
  { requiredKeys: ["op", "path"] },
);

/** Twice as much with each operation. */
const doubling = fc
  .integer({ min: 1, max: 40 })
  .map((times) => [
    { op: "add", path: "/bomb", value: ["x".repeat(100)] },
    ...Array.from({ length: times }, () => ({ op: "copy", from: "/bomb", path: "/bomb/-" })),
  ]);
const wide = fc
  .integer({ min: 1, max: 3_000 })
  .map((count) => Array.from({ length: count }, (_, n) => ({ op: "add", path: `/w${n}`, value: n })));

const patches = fc.oneof(
  { weight: 5, arbitrary: fc.array(operation, { maxLength: 5 }) },
  { weight: 2, arbitrary: doubling },
  wide,
);

const nested = (depth: number): unknown => {
  let inner: unknown = 1;
  for (let level = 0; level < depth; level++) inner = level % 2 === 0 ? [inner] : { d: inner };
  return inner;
};
const deep = fc.integer({ min: 1, max: 6_000 });
const size = fc.integer({ min: 1, max: 40_000 });

const delta = patches.map((patch) =>
  hostile(`STATE_DELTA of ${patch.length}`, () => ({ type: EventType.STATE_DELTA, delta: structuredClone(patch) })),
);
const activity = patches.map((patch) =>
  hostile(`ACTIVITY_DELTA of ${patch.length}`, () => ({
    type: EventType.ACTIVITY_DELTA,
    messageId: "act",
    activityType: "x",
    patch: structuredClone(patch),
  })),
);
const snapshots = fc
  .tuple(deep, fc.constantFrom("state", "custom", "raw", "metadata", "activity", "parts"))
  .map(([depth, where]) =>
    hostile(`${where} ${depth} deep`, () => {
      const it = nested(depth);
      switch (where) {
        case "state":
          return { type: EventType.STATE_SNAPSHOT, snapshot: it };
        case "custom":
          return { type: EventType.CUSTOM, name: "deep", value: it };
        case "raw":
          return { type: EventType.RAW, event: it };
        case "metadata":
          return { type: EventType.STEP_STARTED, stepName: `s${depth}`, metadata: { it } };
        case "activity":
          return { type: EventType.ACTIVITY_SNAPSHOT, messageId: "act", activityType: "x", content: { it } };
        default:
          return {
            type: EventType.MESSAGES_SNAPSHOT,
            messages: [{ id: "q", role: "user", content: [{ type: "text", text: "x", metadata: { it } }] }],
          };
      }
    }),
  );
const large = size.map((length) =>
  hostile(`a delta of ${length}`, () => ({
    type: EventType.TEXT_MESSAGE_CHUNK,
    messageId: "large",
    delta: "y".repeat(length),
  })),
);

class Thing {
  readonly inner = 1;
  readonly absent = undefined;
}

/** What is no JSON; readers in this process, in a tab and over HTTP would see it as something else. */
const ODD: Readonly<Record<string, () => unknown>> = {
  "a date": () => new Date(0),
  "a map": () => new Map([["inner", 1]]),
  "a set": () => new Set([1]),
  "a pattern": () => /x/,
  "a boxed text": () => Object("boxed") as unknown,
  "an instance": () => new Thing(),
  "an object with toJSON": () => ({ inner: 1, toJSON: () => ({ inner: [new Date(0), undefined] }) }),
  "no number": () => ({ inner: NaN, list: [Infinity, -0] }),
  "an absent field": () => ({ inner: undefined }),
  bytes: () => ({ inner: new Uint8Array(3) }),
  "toJSON that throws": () => ({
    toJSON: () => {
      throw new Error("no JSON");
    },
  }),
  "toJSON that makes much": () => ({ toJSON: () => "z".repeat(40_000) }),
};

/** What is no event, or none that can be stored. */
const STRANGE: readonly Hostile[] = [
  hostile("null", () => null),
  hostile("undefined", () => undefined),
  hostile("a string", () => "RUN_FINISHED"),
  hostile("a number", () => 7),
  hostile("a list", () => []),
  hostile("an empty object", () => ({})),
  hostile("an unknown type", () => ({ type: "NO_SUCH_EVENT", value: 1 })),
  hostile("a type that is an object", () => ({ type: { toString: () => "RUN_ERROR" } })),
  hostile("an id that is a number", () => ({ type: EventType.TEXT_MESSAGE_START, messageId: 7, role: "assistant" })),
  hostile("an id that is a prototype", () => ({
    type: EventType.TEXT_MESSAGE_CHUNK,
    messageId: "__proto__",
    delta: "x",
  })),
  hostile("an empty id", () => ({ type: EventType.TEXT_MESSAGE_CHUNK, messageId: "", delta: "x" })),
  hostile("a function", () => ({ type: EventType.CUSTOM, name: "f", value: () => 1 })),
  hostile("a symbol", () => ({ type: EventType.CUSTOM, name: "s", value: Symbol("s") })),
  hostile("a big integer", () => ({ type: EventType.CUSTOM, name: "n", value: 1n })),
  hostile("a map and a date", () => ({ type: EventType.CUSTOM, name: "m", value: [new Map([[1, 2]]), new Date(0)] })),
  hostile("itself", () => {
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    return { type: EventType.STATE_SNAPSHOT, snapshot: cyclic };
  }),
  hostile("a getter that throws", () => ({
    type: EventType.CUSTOM,
    name: "g",
    get value() {
      throw new Error("no value");
    },
  })),
  hostile("a type that throws", () => ({
    get type() {
      throw new Error("no type");
    },
  })),
  hostile("a proxy that throws", () => ({
    type: EventType.CUSTOM,
    name: "p",
    value: new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("no keys");
        },
      },
    ),
  })),
  ...Object.entries(ODD).flatMap(([says, make]) => [
    hostile(`${says} in the state`, () => ({
      type: EventType.STATE_SNAPSHOT,
      snapshot: { list: [make()], a: make() },
    })),
    hostile(`${says} in a patch`, () => ({
      type: EventType.STATE_DELTA,
      delta: [
        { op: "add", path: "/odd", value: make() },
        { op: "remove", path: "/odd/inner" },
        { op: "add", path: "/list/-", value: make() },
      ],
    })),
    hostile(`${says} in messages`, () => ({
      type: EventType.MESSAGES_SNAPSHOT,
      messages: [{ id: "q", role: "user", content: "x", name: undefined, metadata: { it: make() } }],
    })),
    hostile(`${says} as an activity`, () => ({
      type: EventType.ACTIVITY_SNAPSHOT,
      messageId: "act",
      activityType: "x",
      content: make(),
    })),
    hostile(`${says} in a custom event`, () => ({ type: EventType.CUSTOM, name: "odd", value: [make()] })),
    hostile(`${says} in a question`, () => ({
      type: EventType.RUN_FINISHED,
      threadId: "t",
      runId: "r",
      result: make(),
      outcome: { type: "interrupt", interrupts: [{ id: "i", reason: "a", metadata: { it: make() } }] },
    })),
  ]),
  hostile("toJSON", () => ({ type: EventType.CUSTOM, name: "j", value: { toJSON: () => ({ polluted: true }) } })),
  hostile("a prototype as a field", () => ({
    type: EventType.STATE_SNAPSHOT,
    snapshot: JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}') as unknown,
  })),
  hostile("metadata of a prototype", () => ({
    type: EventType.TEXT_MESSAGE_CHUNK,
    messageId: "meta",
    delta: "x",
    metadata: JSON.parse('{"__proto__":{"polluted":true}}') as unknown,
  })),
  hostile("messages with one id", () => ({
    type: EventType.MESSAGES_SNAPSHOT,
    messages: [
      { id: "d", role: "assistant", content: "one" },
      { id: "d", role: "assistant", content: "two" },
    ],
  })),
  hostile("no messages at all", () => ({ type: EventType.MESSAGES_SNAPSHOT, messages: [] })),
  hostile("another run", () => ({ type: EventType.RUN_STARTED, threadId: "t", runId: "another" })),
  hostile("an end", () => ({ type: EventType.RUN_FINISHED, threadId: "t", runId: "r" })),
  hostile("a failure", () => ({ type: EventType.RUN_ERROR, message: "failed" })),
  hostile("a failure without a message", () => ({ type: EventType.RUN_ERROR })),
  hostile("an end with two questions of one id", () => ({
    type: EventType.RUN_FINISHED,
    threadId: "t",
    runId: "r",
    outcome: {
      type: "interrupt",
      interrupts: [
        { id: "i", reason: "a" },
        { id: "i", reason: "b" },
      ],
    },
  })),
  hostile("a result for nobody", () => ({
    type: EventType.TOOL_CALL_RESULT,
    messageId: "res",
    toolCallId: "nobody",
    content: "x",
  })),
  hostile("a call that stays open", () => ({ type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "ask" })),
  hostile("a message that stays open", () => ({
    type: EventType.TEXT_MESSAGE_START,
    messageId: "open",
    role: "assistant",
  })),
  hostile("the end of nothing", () => ({ type: EventType.STEP_FINISHED, stepName: "none" })),
];

/** What is well formed, so that there is something to lose. */
const GOOD: readonly Hostile[] = [
  hostile("text", () => ({ type: EventType.TEXT_MESSAGE_CHUNK, messageId: "good", delta: "good " })),
  hostile("state", () => ({
    type: EventType.STATE_SNAPSHOT,
    snapshot: { list: [1], a: { b: 1 }, text: "abc", "a/b": 1 },
  })),
  hostile("an activity", () => ({
    type: EventType.ACTIVITY_SNAPSHOT,
    messageId: "act",
    activityType: "x",
    content: { list: [1], a: { b: 1 }, text: "abc" },
  })),
  hostile("custom", () => ({ type: EventType.CUSTOM, name: "c", value: { n: 1 } })),
];

export const hostileEvents: fc.Arbitrary<Hostile[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...GOOD) },
    { weight: 4, arbitrary: delta },
    { weight: 2, arbitrary: activity },
    { weight: 2, arbitrary: snapshots },
    { weight: 2, arbitrary: large },
    { weight: 4, arbitrary: fc.constantFrom(...STRANGE) },
  ),
  { maxLength: 12 },
);

/** What an agent throws in the end, or how else it leaves. */
export const THROWN: readonly Hostile[] = [
  hostile("an error", () => new Error("broke")),
  hostile("nothing", () => undefined),
  hostile("null", () => null),
  hostile("a string", () => "broke"),
  hostile("an object without a prototype", () => Object.create(null) as object),
  hostile("an error whose message throws", () =>
    Object.defineProperty(new Error("x"), "message", {
      get: () => {
        throw new Error("no message");
      },
    }),
  ),
  hostile("an error with a long message", () => new Error("m".repeat(1_000_000))),
  hostile("a proxy that cannot be looked at", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  }),
  hostile("an AbortError", () => new DOMException("aborted", "AbortError")),
];
