import { EventType, HttpAgent, type BaseEvent } from "@ag-ui/client";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { serve } from "../runtime/node-kit.js";
import { agentOf, collect, counter, gated, inputOf, makeRunner } from "./kit.js";

const started: BaseEvent = { type: EventType.RUN_STARTED, threadId: "t", runId: "r" };
const finished: BaseEvent = { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" };
const answer: readonly BaseEvent[] = [
  { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta: "so far" },
];
const call: readonly BaseEvent[] = [
  { type: EventType.TOOL_CALL_START, toolCallId: "c", toolCallName: "look" },
  { type: EventType.TOOL_CALL_ARGS, toolCallId: "c", delta: "{" },
];

const sse = (events: readonly BaseEvent[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");

type Answering = (response: ServerResponse, request: IncomingMessage) => unknown;

/** A server's answer, from its first events on. */
const streaming =
  (events: readonly BaseEvent[], then: Answering): Answering =>
  (response, request) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(sse(events), () => void then(response, request));
  };

async function agentThatAnswers(answering: Answering): Promise<HttpAgent> {
  const { url } = await serve((request, response) => {
    request.resume().on("end", () => void answering(response, request));
  });
  return new HttpAgent({ url });
}

/** Rejections that nobody handles end a Node process. */
function unhandled(): unknown[] {
  const seen: unknown[] = [];
  const note = (error: unknown): void => void seen.push(error);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  return seen;
}

const types = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);
const end = (response: ServerResponse): unknown => response.end();
const destroy = (response: ServerResponse): unknown => response.destroy();

describe("a server that ends its stream without a terminal event: the run is errored (L18)", () => {
  test.each<readonly [string, Answering, readonly string[]]>([
    ["in the middle of an answer", streaming([started, ...answer], end), ["RUN_STARTED", "TEXT_MESSAGE_END"]],
    ["by a broken connection", streaming([started, ...answer], destroy), ["RUN_STARTED", "TEXT_MESSAGE_END"]],
    [
      "in the middle of an event",
      streaming([started, ...answer], (response) => response.end('data: {"type":"TEXT_MES')),
      ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"],
    ],
    ["in a tool call", streaming([started, ...call], end), ["TOOL_CALL_ARGS", "TOOL_CALL_END"]],
    ["in a tool call, by a broken connection", streaming([started, ...call], destroy), ["TOOL_CALL_END"]],
    ["after RUN_STARTED", streaming([started], end), ["RUN_STARTED"]],
    ["at once", streaming([], end), ["RUN_STARTED"]],
    ["with a page", (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Hello</p>"), []],
  ])("%s", async (_when, answering, has) => {
    const rejections = unhandled();
    const runner = makeRunner();
    const agent = await agentThatAnswers(answering);
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(events.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "INCOMPLETE_STREAM" });
    expect(types(events)).toEqual(expect.arrayContaining([...has]));
    expect(types(events)).not.toContain(EventType.TOOL_CALL_RESULT);
    expect(await runner.getRun("r")).toMatchObject({ status: "errored" });
    const next = runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", "next") });
    expect((await collect(next)).at(-1)?.type).toBe(EventType.RUN_FINISHED);
    expect(rejections).toEqual([]);
  });

  test.each<readonly [string, Answering]>([
    ["breaks", destroy],
    ["ends in the middle of an event", (response) => response.end('data: {"type":"CUS')],
  ])("a connection that %s after RUN_FINISHED takes nothing back", async (_does, then) => {
    const rejections = unhandled();
    const runner = makeRunner();
    const agent = await agentThatAnswers(streaming([started, finished], then));
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(types(events)).toEqual([EventType.RUN_STARTED, EventType.RUN_FINISHED]);
    expect(rejections).toEqual([]);
  });
});

test.each<readonly [string, Answering, string]>([
  ["refuses", (response) => response.writeHead(503).end("busy"), "AGENT_FAILED"],
  [
    "sends what is no event",
    streaming([started, finished], (response) => response.end("data: [DONE]\n\n")),
    "AGENT_FAILED",
  ],
  ["sends what AG-UI does not allow", streaming([started, { ...answer[1]!, messageId: "?" }], end), "INVALID_STREAM"],
  [
    "reports its own failure",
    streaming([started, { type: EventType.RUN_ERROR, message: "no", code: "MINE" }], end),
    "MINE",
  ],
])("a server that %s: the code says so", async (_does, answering, code) => {
  const agent = await agentThatAnswers(answering);
  // What comes behind RUN_FINISHED is heard as long.
  const runner = makeRunner({ stopGraceMs: 60_000 });
  const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
  expect(events.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code });
});

describe("a run of a server's agent that is asked to end is no failure of the agent (L12)", () => {
  /** A run whose server never comes to an end by itself. */
  async function held(options: Parameters<typeof makeRunner>[0] = {}) {
    const rejections = unhandled();
    const { gate: closed, letOn } = gated();
    const agent = await agentThatAnswers(
      streaming([started, ...answer], (response) => void response.once("close", letOn)),
    );
    const runner = makeRunner({ stopGraceMs: 2_000, ...options });
    const events = collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    await vi.waitFor(async () => expect((await runner.getRunEvents("r")).length).toBeGreaterThanOrEqual(3));
    return { runner, events, closed, rejections };
  }

  test.each(["runner.stop", "another runner's stop", "close"] as const)("by %s: stopped", async (way) => {
    const { runner, events, closed, rejections } = await held();
    const other = makeRunner({ dbName: runner.dbName });
    if (way === "runner.stop") expect(await runner.stop({ threadId: "t", runId: "r" })).toBe(true);
    else if (way === "close") await runner.close();
    else expect(await other.stop({ threadId: "t" })).toBe(true);
    const last = (await events).at(-1);
    expect(last).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } });
    await vi.waitFor(async () => expect(await other.getRun("r")).toMatchObject({ status: "stopped" }));
    await closed;
    expect(rejections).toEqual([]);
  });

  test("by its time limit: errored, RUN_TIMEOUT", async () => {
    const { events, rejections } = await held({ maxRunMs: 300 });
    expect((await events).at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: "RUN_TIMEOUT" });
    expect(rejections).toEqual([]);
  });
});
