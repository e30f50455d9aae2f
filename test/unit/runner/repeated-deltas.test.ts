import { EventType, type BaseEvent, type DebugLogger } from "@ag-ui/client";
import fc from "fast-check";
import { concat, from, of, throwError } from "rxjs";
import { expect, test, vi } from "vitest";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import { runAgent } from "../../../src/runner/agent/agent-pipeline.js";
import { InvalidStream } from "../../../src/runner/agent/valid-stream.js";
import { RepeatedDeltas } from "../../../src/runner/agent/repeated-deltas.js";
import { hostileEvents, type Hostile } from "../hostile/hostile-events.js";
import { times } from "../property.js";
import { inputOf, rawAgent } from "./plain-kit.js";

interface Outcome {
  readonly events: readonly BaseEvent[];
  readonly dropped: readonly string[];
  readonly error?: string;
}

/** What the pipeline makes of a stream. An agent that is debugged has each event checked. */
async function outcomeOf(make: () => readonly unknown[], isDebugged: boolean): Promise<Outcome> {
  const tracker = new OpenConstructTracker(new Set());
  const events: BaseEvent[] = [];
  const dropped: string[] = [];
  const agent = rawAgent(() => from(make()) as never); // hostile on purpose
  if (isDebugged) agent.debugLogger = SILENT;
  const host = {
    messages: () => [],
    take: (event: BaseEvent) => event,
    next: (event: BaseEvent) => {
      tracker.note(event);
      events.push(event);
    },
    open: () => tracker.snapshot(),
    knows: () => false,
    makeId: () => "made-up",
    said: () => undefined,
    dropped: (message: string) => void dropped.push(message),
  };
  try {
    await runAgent(agent, inputOf("t", "r"), host);
    return { events, dropped };
  } catch (error) {
    return { events, dropped, error: error instanceof InvalidStream ? `rejected: ${error.message}` : String(error) };
  }
}

const SILENT = { enabled: true, event: () => undefined, lifecycle: () => undefined } as unknown as DebugLogger;

function textOf(outcome: Outcome): string {
  const events = outcome.events.map((event) => {
    try {
      return JSON.stringify(event);
    } catch (error) {
      return String(error);
    }
  });
  return JSON.stringify({ ...outcome, events });
}

const IDS = ["a", "b", ""];
const NAMED = [
  [EventType.TEXT_MESSAGE_START, "messageId", { role: "assistant" }],
  [EventType.TEXT_MESSAGE_CONTENT, "messageId", {}],
  [EventType.TEXT_MESSAGE_END, "messageId", {}],
  [EventType.TEXT_MESSAGE_CHUNK, "messageId", { role: "assistant" }],
  [EventType.TEXT_MESSAGE_CHUNK, "messageId", {}],
  [EventType.REASONING_START, "messageId", {}],
  [EventType.REASONING_MESSAGE_START, "messageId", { role: "reasoning" }],
  [EventType.REASONING_MESSAGE_CONTENT, "messageId", {}],
  [EventType.REASONING_MESSAGE_END, "messageId", {}],
  [EventType.REASONING_MESSAGE_CHUNK, "messageId", {}],
  [EventType.REASONING_END, "messageId", {}],
  [EventType.TOOL_CALL_START, "toolCallId", { toolCallName: "f" }],
  [EventType.TOOL_CALL_ARGS, "toolCallId", {}],
  [EventType.TOOL_CALL_END, "toolCallId", {}],
  [EventType.TOOL_CALL_CHUNK, "toolCallId", { toolCallName: "f" }],
  [EventType.TOOL_CALL_CHUNK, "toolCallId", {}],
  [EventType.STEP_STARTED, "stepName", {}],
  [EventType.STEP_FINISHED, "stepName", {}],
] as const;

/** What a delta may be without being the plain one. */
const ODD: readonly ((event: Record<string, unknown>) => unknown)[] = [
  (event) => event,
  (event) => ({ ...event, timestamp: 1 }),
  (event) => ({ ...event, timestamp: "1" }),
  (event) => ({ ...event, metadata: { a: 1 } }),
  (event) => ({ ...event, rawEvent: { a: 1 } }),
  (event) => ({ ...event, subagentRunId: "s" }),
  (event) => ({ ...event, future: 1 }),
  (event) => ({ ...event, delta: undefined }),
  (event) => ({ ...event, delta: 1 }),
  (event) => ({ ...event, delta: null }),
  (event) => Object.assign(new Date(0), event),
  (event) => Object.assign(Object.create({ delta: "inherited" }) as object, { ...event, delta: "" }),
  ({ delta: _delta, ...rest }) => Object.assign(Object.create({ delta: "inherited" }) as object, rest),
  ({ delta: _delta, ...rest }) => rest,
];

const deltas = fc
  .record({
    named: fc.constantFrom(...NAMED),
    id: fc.constantFrom(...IDS),
    text: fc.constantFrom("x", "y", "", "\ud800"),
    odd: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, fc.nat(ODD.length - 1)),
    again: fc.nat(3),
  })
  .map(({ named: [type, field, more], id, text, odd, again }): Hostile[] =>
    Array.from({ length: 1 + again }, (_, at) => ({
      says: `${type} ${id} ${odd} ${text}`,
      make: () => ODD[at === 0 ? 0 : odd]!({ type, [field]: id, delta: text, ...more }),
    })),
  );

/** Messages and calls that are opened first, so that what follows is mostly valid. */
const opened = (type: EventType, field: string, more: object): Hostile[] =>
  ["a", "b"].map((id) => ({ says: `${type} ${id}`, make: () => ({ type, [field]: id, ...more }) }));
const openings = fc.constantFrom<Hostile[]>(
  [],
  opened(EventType.TEXT_MESSAGE_START, "messageId", { role: "assistant" }),
  opened(EventType.TOOL_CALL_START, "toolCallId", { toolCallName: "f" }),
  opened(EventType.REASONING_MESSAGE_START, "messageId", { role: "reasoning" }),
);

const streams = fc
  .tuple(openings, fc.array(fc.oneof({ weight: 8, arbitrary: deltas }, hostileEvents), { maxLength: 12 }), fc.boolean())
  .map(([first, parts, finishes]) => (): unknown[] => [
    { type: EventType.RUN_STARTED, threadId: "t", runId: "r" },
    ...[...first, ...parts.flat()].map(({ make }) => make()),
    ...(finishes ? [{ type: EventType.RUN_FINISHED, threadId: "t", runId: "r" }] : []),
  ]);

test("what comes out is what the checks of the client make of each event", async () => {
  vi.spyOn(console, "warn").mockReturnValue(undefined); // the client's, of what it strips
  vi.spyOn(console, "error").mockReturnValue(undefined);
  let long = 0;
  await fc.assert(
    fc.asyncProperty(streams, async (make) => {
      const [short, whole] = [await outcomeOf(make, false), await outcomeOf(make, true)];
      // As text: what hostile events hold is not always equal to itself.
      expect(textOf(short)).toBe(textOf(whole));
      long += short.events.length;
    }),
    times(1_500),
  );
  expect(long).toBeGreaterThan(0);
});

const START = { type: EventType.TEXT_MESSAGE_START, messageId: "a", role: "assistant" };
const delta = (text: string) => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "a", delta: text });

/** How many of the events went through checks that let everything pass. */
function checksOf(events: readonly unknown[]): number {
  const repeated = new RepeatedDeltas();
  let checked = 0;
  const passed: unknown[] = [];
  from(events as BaseEvent[])
    .pipe(repeated.around((_, made) => void passed.push(made)))
    .subscribe((event) => {
      checked++;
      repeated.leave(event);
      passed.push(event);
    });
  expect(passed).toEqual(events);
  return checked;
}

test("of deltas that follow one another the first is checked", () => {
  expect(checksOf([START, ...["1", "2", "3", "4"].map(delta)])).toBe(2);
});

test("each other event, and the first delta behind it, is checked", () => {
  const step = { type: EventType.STEP_STARTED, stepName: "s" };
  expect(checksOf([START, delta("1"), delta("2"), step, delta("3"), delta("4"), { ...delta("5"), timestamp: 1 }])).toBe(
    5,
  );
});

test("where checks answer later, nothing overtakes", async () => {
  const repeated = new RepeatedDeltas();
  const order: string[] = [];
  const late: BaseEvent[] = [];
  from([delta("1"), delta("1"), delta("1")] as BaseEvent[])
    .pipe(repeated.around(() => void order.push("passed")))
    .subscribe((event) => late.push(event));
  for (const event of late) repeated.leave(event);
  expect([order, late.length]).toEqual([[], 3]);
});

test("what its taker throws ends the stream, as an error behind the checks does", () => {
  const repeated = new RepeatedDeltas();
  const errors: unknown[] = [];
  const taken = (): never => {
    throw new Error("no room");
  };
  concat(
    of(...([delta("1"), delta("2"), delta("3")] as BaseEvent[])),
    throwError(() => new Error("late")),
  )
    .pipe(repeated.around(taken))
    .subscribe({ next: (event) => repeated.leave(event), error: (error: unknown) => errors.push(String(error)) });
  expect(errors).toEqual(["Error: no room"]);
});
