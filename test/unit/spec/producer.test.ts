import { createServer } from "node:http";
import { EventType, HttpAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { throwError } from "rxjs";
import { describe, expect, test, vi } from "vitest";
import { agentOf, counter, inputOf, rawAgent, silent, user } from "../runner/kit.js";
import { runtimeWith } from "../runtime/kit.js";
import { listening } from "../runtime/node-kit.js";
import { parseEvents } from "../runtime/sse-kit.js";

/** The version that the client of this project speaks. */
const VERSION = "1.0";

/** An agent that keeps what it was given, and may end by asking. */
function attentive(asks: readonly object[] = []) {
  const given: RunAgentInput[] = [];
  const agent = agentOf(async function* (input) {
    given.push(structuredClone({ ...input, messages: [...input.messages] }));
    const { threadId, runId } = input;
    yield* counter(2)(input, {
      signal: new AbortController().signal,
      committed: async () => undefined,
    }) as AsyncGenerator<BaseEvent>;
    if (asks.length > 0 && input.resume === undefined) {
      yield {
        type: EventType.RUN_FINISHED,
        threadId,
        runId,
        outcome: { type: "interrupt", interrupts: asks },
      } as BaseEvent;
    }
  });
  return { given, agent };
}

/** What HTTP answers for a body, and its events. */
async function post(handler: (request: Request) => Promise<Response>, agentId: string, body: unknown) {
  const response = await handler(
    new Request(`http://runtime.test/agent/${agentId}/run`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: typeof body === "string" ? body : JSON.stringify(body),
    }),
  );
  const text = await response.text();
  const type = response.headers.get("content-type") ?? "";
  // What we sent.
  const events = type.startsWith("text/event-stream")
    ? parseEvents(text).events.map(({ data }) => data as BaseEvent)
    : undefined;
  return { status: response.status, type, text, events };
}

const handlerOf = (agents: NonNullable<Parameters<typeof runtimeWith>[0]>["agents"] & object) =>
  createRuntimeHandler({ runtime: runtimeWith({ agents }) });

describe("a stream of ours", () => {
  test("the body ends with the terminal event, frames are one event each and end in LF", async () => {
    const { status, type, text, events } = await post(handlerOf({ a: agentOf(counter(3)) }), "a", inputOf("t", "r"));
    expect([status, type]).toEqual([200, expect.stringMatching(/^text\/event-stream/)]);
    expect(text).not.toContain("\r");
    expect(text.endsWith("\n\n")).toBe(true);
    expect(events![0]).toMatchObject({ type: "RUN_STARTED", threadId: "t", runId: "r" });
    expect(events!.at(-1)).toMatchObject({ type: "RUN_FINISHED", threadId: "t", runId: "r" });
    expect(events!.filter(({ type: of }) => of === EventType.RUN_FINISHED)).toHaveLength(1);
    for (const line of text.split("\n")) expect(line).toMatch(/^$|^data: ?\{.*\}$|^id: |^:/);
  });

  test("what we make ourselves has no field that is null", async () => {
    const handler = handlerOf({
      a: agentOf(counter(1)),
      failing: rawAgent(() => throwError(() => new Error("no"))),
    });
    for (const agentId of ["a", "failing"]) {
      const { events } = await post(handler, agentId, { threadId: agentId, runId: "r", messages: [user("u")] });
      const nulls = events!.flatMap((event) => Object.entries(event).filter(([, value]) => value === null));
      expect(nulls).toEqual([]);
      expect(JSON.stringify(events)).not.toContain("null");
    }
  });

  test("both sides declare their version", async () => {
    const received: RunAgentInput[] = [];
    const { url } = await listening(
      createServer((req, res) => {
        let body = "";
        req.on("data", (piece) => (body += String(piece)));
        req.on("end", () => {
          const input = JSON.parse(body) as RunAgentInput;
          received.push(input);
          const { threadId, runId } = input;
          res.writeHead(200, { "content-type": "text/event-stream" });
          for (const type of ["RUN_STARTED", "RUN_FINISHED"])
            res.write(`data: ${JSON.stringify({ type, threadId, runId })}\n\n`);
          res.end();
        });
      }),
    );
    const handler = handlerOf({ http: new HttpAgent({ url }), own: agentOf(counter(1)) });
    const { events } = await post(handler, "http", { ...inputOf("t", "r"), protocolVersion: VERSION });
    expect(received[0]).toMatchObject({ protocolVersion: VERSION });
    const own = await post(handler, "own", { ...inputOf("t2", "r"), protocolVersion: VERSION });
    for (const [started] of [events!, own.events!])
      expect(started).toMatchObject({ type: "RUN_STARTED", protocolVersion: VERSION });
  });
});

describe("an input", () => {
  test("an input with its required fields only is taken as one with empty lists", async () => {
    const { given, agent } = attentive();
    const { events } = await post(handlerOf({ a: agent }), "a", { threadId: "t", runId: "r", messages: [user("u")] });
    expect(events!.at(-1)).toMatchObject({ type: "RUN_FINISHED" });
    expect(given[0]).toMatchObject({ tools: [], context: [], state: {} });
  });

  test("an input with material that nobody knows runs, and the agent is not given it", async () => {
    const { given, agent } = attentive();
    const content = [
      { type: "text", text: "look" },
      { type: "hologram", value: 1 },
    ];
    const body = {
      ...inputOf("t", "r", [{ id: "u", role: "user", content, future: 1 } as never]), // of a later version
      future: { a: 1 },
      tools: [{ name: "look", description: "looks", parameters: {}, future: 1 }],
    };
    const { status, events } = await post(handlerOf({ a: agent }), "a", body);
    expect([status, events?.at(-1)?.type]).toEqual([200, "RUN_FINISHED"]);
    expect(given[0]!.messages[0]).toMatchObject({ id: "u", content: [{ type: "text", text: "look" }] });
    expect(JSON.stringify(given[0])).not.toMatch(/future|hologram/);
  });

  test.each<[string, unknown]>([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["a thread id that is a number", { ...inputOf("t", "r"), threadId: 7 }],
    ["no messages", { threadId: "t", runId: "r" }],
    ["a message without a role", { ...inputOf("t", "r"), messages: [{ id: "u", content: "x" }] }],
    ["a tool without a name", { ...inputOf("t", "r"), tools: [{ description: "x" }] }],
    ["a resume entry without a status", { ...inputOf("t", "r"), resume: [{ interruptId: "i" }] }],
  ])("a malformed input (%s) is refused before there is a stream", async (_, body) => {
    const { given, agent } = attentive();
    const { status, events } = await post(handlerOf({ a: agent }), "a", body);
    expect(status).toBe(400);
    expect(events).toBeUndefined();
    expect(given).toEqual([]);
  });

  test("forwardedProps reach the agent as they are", async () => {
    const { given, agent } = attentive();
    const forwardedProps = { a: [null, { b: "" }], "ag-ui": 1, deep: { deeper: { deepest: [] } } };
    await post(handlerOf({ a: agent }), "a", { ...inputOf("t", "r"), forwardedProps });
    expect(given[0]!.forwardedProps).toEqual(forwardedProps);
  });

  test("the agent is given the whole thread, whatever its sender has", async () => {
    const { given, agent } = attentive();
    const handler = handlerOf({ a: agent });
    await post(handler, "a", inputOf("t", "r1", [user("u1")]));
    await post(handler, "a", inputOf("t", "r2", [user("u2")]));
    expect(given[1]!.messages.map(({ id }) => id)).toEqual(["u1", "r1-a", "u2"]);
  });

  test("activities stay here", async () => {
    const { given, agent } = attentive();
    const showing = agentOf(async function* () {
      yield { type: EventType.ACTIVITY_SNAPSHOT, messageId: "act", activityType: "x", content: {} } as BaseEvent;
    });
    const handler = handlerOf({ a: agent, showing });
    await post(handler, "showing", inputOf("t", "r1"));
    await post(handler, "a", inputOf("t", "r2"));
    expect(given[0]!.messages.map(({ role }) => role)).toEqual(["user", "user"]);
  });

  test("encrypted values go back to the agent", async () => {
    const { given, agent } = attentive();
    const thinking = agentOf(async function* () {
      yield { type: EventType.REASONING_MESSAGE_START, messageId: "think", role: "reasoning" } as BaseEvent;
      yield { type: EventType.REASONING_MESSAGE_END, messageId: "think" } as BaseEvent;
      yield {
        type: EventType.REASONING_ENCRYPTED_VALUE,
        subtype: "message",
        entityId: "think",
        encryptedValue: "s3al",
      } as BaseEvent;
    });
    const handler = handlerOf({ a: agent, thinking });
    await post(handler, "thinking", inputOf("t", "r1"));
    await post(handler, "a", inputOf("t", "r2"));
    expect(given[0]!.messages).toContainEqual(expect.objectContaining({ id: "think", encryptedValue: "s3al" }));
  });
});

describe("interrupts", () => {
  const asked = [
    { id: "i1", reason: "approval" },
    { id: "i2", reason: "approval" },
  ];
  const entries = (status: "resolved" | "cancelled", ...ids: readonly string[]) =>
    ids.map((interruptId) => ({ interruptId, status }));

  test.each<[string, object[] | undefined]>([
    ["no list", undefined],
    ["an empty list", []],
    ["a list that leaves one out", entries("resolved", "i1")],
  ])("an incomplete resume list (%s) is refused, and nothing is sent or lost", async (_, resume) => {
    const { given, agent } = attentive(asked);
    const handler = handlerOf({ a: agent });
    await post(handler, "a", inputOf("t", "r1"));
    const refused = await post(handler, "a", { ...inputOf("t", "r2"), ...(resume && { resume }) });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.text).toMatch(/i2/);
    expect(given).toHaveLength(1);
    const whole = await post(handler, "a", { ...inputOf("t", "r3", []), resume: entries("resolved", "i1", "i2") });
    expect([whole.status, whole.events?.at(-1)?.type]).toEqual([200, "RUN_FINISHED"]);
    expect(given[1]!.resume).toHaveLength(2);
  });

  test("an expired interrupt is not resolved, but may be abandoned", async () => {
    const { given, agent } = attentive([{ id: "i1", reason: "approval", expiresAt: "2020-01-01T00:00:00Z" }]);
    const handler = handlerOf({ a: agent });
    await post(handler, "a", inputOf("t", "r1"));
    const late = await post(handler, "a", { ...inputOf("t", "r2", []), resume: entries("resolved", "i1") });
    expect(late.status).toBeGreaterThanOrEqual(400);
    expect(given).toHaveLength(1);
    const abandoned = await post(handler, "a", { ...inputOf("t", "r3", []), resume: entries("cancelled", "i1") });
    expect(abandoned.events?.at(-1)).toMatchObject({ type: "RUN_FINISHED" });
  });
});

test("a run that is stopped ends with the cancelled outcome, everything closed", async () => {
  const runtime = runtimeWith({ agents: { silent: agentOf(silent) } });
  const handler = createRuntimeHandler({ runtime });
  const reading = post(handler, "silent", { ...inputOf("t", "r"), protocolVersion: VERSION });
  await vi.waitFor(async () => {
    const stop = await handler(new Request("http://runtime.test/agent/silent/stop/t", { method: "POST" }));
    expect(await stop.json()).toMatchObject({ stopped: true });
  });
  const { events } = await reading;
  expect(events!.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "cancelled" } });
});
