import { EventType } from "@ag-ui/core";
import { EventSchema, RunAgentInputSchema } from "@ag-ui/core/schemas";
import type { BaseEvent, Message, MessagesSnapshotEvent } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { closingEvents } from "../../../src/run/finalize.js";
import { livePrelude } from "../../../src/run/live-prelude.js";
import { emptyPrelude } from "../../../src/run/prelude.js";
import { RunView } from "../../../src/run/run-view.js";
import { sseResponse } from "../../../src/runtime/http/sse.js";
import { lostTo } from "../../../src/wire/lost.js";
import { eventMapper, isNewer, messageMapper, upgradeInput } from "../../../src/wire/protocol-versions.js";
import { times } from "../property.js";
import { RUN_ID, streams, THREAD_ID } from "../run/streams.js";
import { readBy, sentBy, type Reading } from "./http-clients.js";
import { CASES, newMessages } from "./version-cases.js";

const toOld = eventMapper(undefined)!;
const asOldHas = messageMapper(undefined)!;

async function* inOneBatch(events: readonly BaseEvent[]) {
  yield events.map((event) => ({ event }));
}

const answer = (events: readonly BaseEvent[], map?: (event: BaseEvent) => BaseEvent): Response =>
  sseResponse(inOneBatch(events), { keepAliveMs: 0, map });

/** What a client of 0.0.59 can have of it. */
const known = ({ messages, state, outcomes, ...rest }: Reading): Reading => ({
  ...rest,
  messages: messages.map(asOldHas),
  state: state || {},
  outcomes: outcomes.map((outcome) => (outcome === "cancelled" ? "success" : outcome)),
});

/** Random runs to their end. */
const runs = fc
  .record({
    stream: streams(25),
    status: fc.constantFrom(...(["finished", "stopped", "superseded", "errored", "broken"] as const)),
  })
  .map(({ stream: { base, events }, status }) => {
    const held = { messages: base.messages.map(apart), state: base.state };
    const distinct = events.map(apartIn);
    const view = new RunView({ ...structuredClone(held), interrupts: [] });
    for (const event of structuredClone(distinct)) view.apply(event);
    let ids = 0;
    const end = { status, threadId: THREAD_ID, runId: RUN_ID, ids: () => `made-up-${ids++}` };
    return { held, events: [...distinct, ...closingEvents(view.open.snapshot(), end)] };
  });

describe("a client of 0.0.59", () => {
  test.each(CASES)("has of $name what a client of 1.0 has", async ({ events }) => {
    const truth = await readBy("1.0.0", answer(events));
    expect(truth.failed).toBeUndefined();
    expect(await readBy("0.0.59", answer(events, toOld))).toEqual(known(truth));
  });

  test.each(CASES.filter(({ unmapped }) => unmapped === "rejects"))("rejects $name as it is", async ({ events }) => {
    expect(await readBy("0.0.59", answer(events))).toHaveProperty("failed");
  });

  test.each(CASES.filter(({ unmapped }) => unmapped === "misreads"))("misreads $name as it is", async ({ events }) => {
    const heard = await readBy("0.0.59", answer(events));
    expect(heard.failed).toBeUndefined();
    expect(heard.state).toEqual({ old: 1 });
  });

  test.each(CASES.filter(({ unmapped }) => unmapped === undefined))("takes $name as it is", async ({ events }) => {
    expect(await readBy("0.0.59", answer(events))).toEqual(known(await readBy("1.0.0", answer(events))));
  });

  test("is shown a stop as an end, not as a failure (L12)", async () => {
    const events: BaseEvent[] = [
      { type: EventType.RUN_STARTED, threadId: "t", runId: "r" },
      ...closingEvents(undefined, { status: "stopped", threadId: "t", runId: "r", ids: () => "x" }),
    ];
    const heard = await readBy("0.0.59", answer(events, toOld));
    expect(heard.failed).toBeUndefined();
    expect(heard.outcomes).toEqual(["success"]);
  });

  test("rebuilds of random runs what a client of 1.0 rebuilds (L2, L3)", async () => {
    await fc.assert(
      fc.asyncProperty(runs, async ({ held, events }) => {
        const before = structuredClone(events);
        const truth = await readBy("1.0.0", answer(events), held);
        expect(truth.failed).toBeUndefined();
        expect(await readBy("0.0.59", answer(events, toOld), held)).toEqual(known(truth));
        expect(events).toEqual(before);
      }),
      times(150),
    );
  });

  test("that attaches to a random run by snapshot rebuilds what a client of 1.0 rebuilds (L2, L3)", async () => {
    await fc.assert(
      fc.asyncProperty(runs, fc.nat(30), async ({ held, events }, at) => {
        const cut = Math.min(at, events.length - 2) + 1;
        const view = new RunView({ ...structuredClone(held), interrupts: [] });
        for (const event of structuredClone(events.slice(0, cut))) view.apply(event);
        const prelude = structuredClone(livePrelude(view).events);
        // A reasoning that the run itself took away while it was open: such a reader cannot be made to forget it.
        const shown = prelude.findLastIndex(({ type }) => type === EventType.MESSAGES_SNAPSHOT);
        fc.pre(!prelude.slice(0, shown).some(({ type }) => type === EventType.REASONING_MESSAGE_START));
        fc.pre(!isBare((prelude[shown] as MessagesSnapshotEvent).messages));
        const heard = [...prelude, ...events.slice(cut)];
        const { messages, state, interrupts } = known(await readBy("1.0.0", answer(events), held));
        const attached = await readBy("0.0.59", answer(heard, toOld));
        expect(attached.failed).toBeUndefined();
        expect(attached).toMatchObject({ messages, state, interrupts });
      }),
      times(150),
    );
  });
});

describe("a prelude that makes readers forget", () => {
  const held: Message[] = [
    { id: "u", role: "user", content: "go" },
    { id: "a", role: "assistant", content: "gone" },
  ];

  test("leaves a client of 0.0.59 without messages (L2)", async () => {
    const heard = await readBy("0.0.59", answer(emptyPrelude("t", "r"), toOld), { messages: held });
    expect(heard.failed).toBeUndefined();
    expect(heard.messages).toEqual([]);
  });

  test("would show it a placeholder as it is", async () => {
    const heard = await readBy("0.0.59", answer(emptyPrelude("t", "r")), { messages: held });
    expect(heard.messages).toEqual([{ id: "forget-r", role: "reasoning", content: "" }]);
  });

  test.each([
    [{ id: "r", role: "reasoning", content: "hm" }],
    [{ id: "r", role: "reasoning", content: "", metadata: { k: 1 } }],
    [{ id: "p", role: "activity", activityType: "plan", content: {} }],
    [{ id: "u", role: "user", content: "" }],
  ] as const)("is not taken for the only message of a thread: %j", async (message) => {
    const metadata = { "@ag-ui/client": { authoritativeActivityTypes: null } };
    const snapshot = { type: EventType.MESSAGES_SNAPSHOT, messages: [message], metadata };
    expect(toOld(snapshot)).toEqual(snapshot);
  });
});

describe("the cases", () => {
  test("are valid in 1.0, have all event types, and each entry of the table has one that needs it", () => {
    const all = CASES.flatMap(({ events }) => events);
    for (const event of all) expect(EventSchema.safeParse(event).error).toBeUndefined();
    expect(new Set(all.map(({ type }) => type))).toEqual(new Set(Object.values(EventType)));
    const needed = CASES.filter(({ unmapped }) => unmapped !== undefined).flatMap(({ events }) => events);
    const rewritten = needed.filter((event) => toOld(event) !== event).map(({ type }) => type);
    expect([...new Set(rewritten)].sort()).toEqual([
      "MESSAGES_SNAPSHOT",
      "RUN_FINISHED",
      "RUN_STARTED",
      "STATE_DELTA",
      "STATE_SNAPSHOT",
      "TOOL_CALL_RESULT",
    ]);
  });
});

describe("the mapper", () => {
  test.each([undefined, "0", "0.9", "0.10", "0.0.59"])("takes %j for a version before 1.0", (version) => {
    expect(eventMapper(version)).toBeDefined();
    expect(messageMapper(version)).toBeDefined();
    expect(isNewer(version)).toBe(false);
  });

  test.each<[string, boolean]>([
    ["1.0", false],
    ...["1.1", "1.10", "2.0", "10.3"].map((version): [string, boolean] => [version, true]),
    // What nobody can interpret is handled like a newer one.
    ...["draft", "latest", "", "1", "1.0.0", "v1.0", " 1.0", "1.0\n", "00.1", "0x1"].map(
      (version): [string, boolean] => [version, true],
    ),
  ])("has nothing to map for %j", (version, newer) => {
    expect(eventMapper(version)).toBeUndefined();
    expect(messageMapper(version)).toBeUndefined();
    expect(isNewer(version)).toBe(newer);
  });

  test("tells what it cannot hand on, and nothing else", () => {
    const lost: string[] = [];
    const map = eventMapper(undefined, (what) => lost.push(what))!;
    const ids = { threadId: "t", runId: "r" };
    const file = { type: "image", source: { type: "file", value: "f" } };
    const told = (event: object): readonly string[] => {
      lost.length = 0;
      map(event as BaseEvent);
      return [...lost];
    };
    expect(told({ type: EventType.RUN_STARTED, ...ids, protocolVersion: "1.0" })).toEqual([]);
    expect(told({ type: EventType.RUN_FINISHED, ...ids, outcome: { type: "success" } })).toEqual([]);
    expect(told({ type: EventType.RUN_FINISHED, ...ids, outcome: { type: "cancelled" } })).toHaveLength(1);
    const snapshot = (content: unknown) => ({
      type: EventType.MESSAGES_SNAPSHOT,
      messages: [{ id: "u", role: "user", content }],
    });
    expect(told(snapshot([{ type: "text", text: "t", id: "part" }]))).toEqual([]);
    expect(told(snapshot([file]))).toHaveLength(1);
    const result = (content: unknown) => ({
      type: EventType.TOOL_CALL_RESULT,
      messageId: "m",
      toolCallId: "c",
      content,
    });
    expect(told(result([{ type: "text", text: "t" }]))).toEqual([]);
    expect(told(result([file]))).toHaveLength(1);
  });

  test("warns of each thing once, however many readers lack it", () => {
    const warned: string[] = [];
    const lost = lostTo({ error: () => undefined, warn: (message) => warned.push(message) });
    for (const what of ["one", "other", "one"]) lost(what);
    expect(warned.map((message) => /one|other/.exec(message)?.[0])).toEqual(["one", "other"]);
  });

  test.each(CASES)("never changes $name itself, and nothing twice", ({ events }) => {
    const frozen = deepFreeze(structuredClone(events) as BaseEvent[]);
    const once = frozen.map(toOld);
    expect(once.map(toOld)).toEqual(once);
  });

  test("leaves a type that is no event's alone", () => {
    const event = { type: "constructor" } as unknown as BaseEvent;
    expect(toOld(event)).toBe(event);
  });

  test("gives a version to no stream that has another one", () => {
    const event = { type: EventType.RUN_STARTED, threadId: "t", runId: "r", protocolVersion: "1.0" };
    expect(toOld({ ...event, input: { threadId: "t", runId: "r", messages: [], protocolVersion: "1.0" } })).toEqual({
      type: EventType.RUN_STARTED,
      threadId: "t",
      runId: "r",
      input: { threadId: "t", runId: "r", messages: [], tools: [], context: [], forwardedProps: {}, state: {} },
    });
  });

  test("keeps of parts what such a reader can hold", () => {
    expect(newMessages.map(asOldHas).map(({ content }) => content)).toEqual([
      "one two",
      [
        { type: "text", text: "read" },
        { type: "binary", mimeType: "application/pdf", id: "file-1", filename: "a.pdf" },
      ],
    ]);
  });
});

describe("what a client of 0.0.59 sends", () => {
  const image = { type: "image", source: { type: "data", value: "AA==", mimeType: "image/png" } };

  test("is an input of 1.0", async () => {
    const tools = [{ name: "f", description: "d", parameters: { type: "object" } }];
    const context = [{ description: "d", value: "v" }];
    const resume = [{ interruptId: "i", status: "resolved" as const, payload: { ok: true } }];
    const messages: Message[] = [{ id: "u", role: "user", content: "go" }];
    const sent = await sentBy("0.0.59", { messages, state: { a: 1 } }, { tools, context, resume });
    expect(sent).not.toHaveProperty("protocolVersion");
    expect(RunAgentInputSchema.parse(sent)).toEqual(sent);
    expect(upgradeInput(sent)).toEqual(sent);
  });

  test("is its history as it was given, so that nothing looks edited", async () => {
    const messages = newMessages;
    const events = [
      { type: EventType.RUN_STARTED, threadId: "t", runId: "r" },
      { type: EventType.MESSAGES_SNAPSHOT, messages },
      { type: EventType.RUN_FINISHED, threadId: "t", runId: "r" },
    ];
    const had = await readBy("0.0.59", answer(events, toOld));
    const sent = upgradeInput(await sentBy("0.0.59", had, {}));
    const parsed = RunAgentInputSchema.parse(sent).messages as Message[];
    const contents = (all: readonly Message[]): unknown[] => all.map((message) => asOldHas(message).content);
    // As text: so are contents compared where a history looks edited.
    expect(JSON.stringify(contents(parsed))).toBe(JSON.stringify(contents(messages)));
  });

  test.each([
    ["binary data", { type: "binary", mimeType: "image/png", data: "AA==" }, image],
    [
      "a binary URL with a name",
      { type: "binary", mimeType: "application/pdf", url: "https://example.com/d", filename: "d.pdf" },
      {
        type: "document",
        source: { type: "url", value: "https://example.com/d", mimeType: "application/pdf" },
        metadata: { filename: "d.pdf" },
      },
    ],
    [
      "a binary id",
      { type: "binary", mimeType: "audio/ogg", id: "file-1" },
      { type: "audio", source: { type: "file", value: "file-1", mimeType: "audio/ogg" } },
    ],
    ["a media part without metadata", { ...image, metadata: null }, image],
  ])("with %s is understood", async (_, part, upgraded) => {
    // Parts that 1.0 does not know.
    const messages = [{ id: "u", role: "user", content: [part] }] as unknown as Message[];
    const sent = await sentBy("0.0.59", { messages }, {});
    expect(RunAgentInputSchema.safeParse(sent).success).toBe(false);
    expect(RunAgentInputSchema.parse(upgradeInput(sent)).messages).toEqual([
      { id: "u", role: "user", content: [upgraded] },
    ]);
  });

  test("with null for what is left out is understood", async () => {
    const tools = [{ name: "f", description: "d", parameters: null }];
    const resume = [{ interruptId: "i", status: "resolved" as const, payload: null }];
    const sent = { ...((await sentBy("0.0.59", {}, { tools, resume })) as object), forwardedProps: null, state: null };
    expect(RunAgentInputSchema.safeParse(sent).success).toBe(false);
    expect(RunAgentInputSchema.parse(upgradeInput(sent))).toMatchObject({
      tools: [{ name: "f", description: "d" }],
      resume: [{ interruptId: "i", status: "resolved" }],
    });
  });

  test.each([
    [null],
    ["text"],
    [[]],
    [{ messages: null, tools: "no", resume: [null, 1] }],
    [{ messages: [null, { content: [null, "x", { type: "binary" }, { type: "binary", mimeType: "image/png" }] }] }],
  ])("is left to the schema where it is no input: %j", (body) => {
    expect(upgradeInput(body)).toEqual(body);
    expect(RunAgentInputSchema.safeParse(upgradeInput(body)).success).toBe(false);
  });
});

/**
 * Ids that tell the roles apart, and no scope of activities: what a snapshot does with an id of another role, and which
 * activities it removes, is 1.0's own.
 */
function apart<T extends Message>(message: T): T {
  return { ...message, id: apartId(message.role, message.id) };
}

function apartIn(event: BaseEvent): BaseEvent {
  if (event.type === EventType.MESSAGES_SNAPSHOT) {
    const { metadata: _scope, ...snapshot } = event;
    return { ...snapshot, messages: (event["messages"] as Message[]).map(apart) };
  }
  const role = /^(ACTIVITY|REASONING)_/.exec(event.type)?.[1]?.toLowerCase();
  if (role === undefined || event["messageId"] === undefined) return event;
  return { ...event, messageId: apartId(role, String(event["messageId"])) };
}

/** An empty reasoning alone, which is taken for the placeholder of a prelude. */
const isBare = ([only, ...more]: readonly Message[]): boolean =>
  more.length === 0 && only?.role === "reasoning" && only.content === "";

const apartId = (role: string, id: string): string =>
  role === "activity" || role === "reasoning" ? `${role} ${id}` : id;

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.freeze(value);
    for (const field of Object.values(value)) deepFreeze(field);
  }
  return value;
}
