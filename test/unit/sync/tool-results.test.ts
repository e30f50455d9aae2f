import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test } from "vitest";
import { RunnerError } from "../../../src/run/errors.js";
import { decodeMessage } from "../../../src/sync/messages.js";
import type { ThreadToolCalls } from "../../../src/wire/shapes.js";
import { agentOf, collect, inputOf, user } from "../runner/kit.js";
import { device, ended, eventually, inStep, MemoryServer, shown, tree, types, type Device } from "./kit.js";

/** Calls `ask` as often as it was told to; given results, it says them. */
const asking = agentOf(async function* ({ messages, runId }): AsyncGenerator<BaseEvent> {
  const last = messages.at(-1);
  if (last?.role === "user") {
    for (let call = 1; call <= Number(last.content); call++) {
      const event = {
        type: EventType.TOOL_CALL_CHUNK,
        toolCallId: `${runId}-c${call}`,
        toolCallName: "ask",
        delta: "{}",
      };
      yield event as BaseEvent;
    }
    return;
  }
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  const delta = `heard ${results.join(", ")}`;
  yield { type: EventType.TEXT_MESSAGE_CHUNK, messageId: `${runId}-m`, role: "assistant", delta } as BaseEvent;
});

const ask = { name: "ask", description: "Asks somebody", parameters: { type: "object" } };

const call = ({ runner }: Device, runId: string, count = 1) =>
  collect(
    runner.run({
      threadId: "t",
      agent: asking,
      input: { ...inputOf("t", runId, [user(`${runId}-u`, String(count))]), tools: [ask] },
    }),
  );

/** The calls that wait, as a tab of this device sees them now. */
async function calls({ runner }: Device): Promise<ThreadToolCalls> {
  const lives = { hold: () => Promise.reject(new Error()), whenFree: () => new Promise<boolean>(() => undefined) };
  for await (const now of runner.watchToolCalls("t", lives, new AbortController().signal)) return now;
  return { calls: [] };
}

const statuses = async (one: Device) => (await calls(one)).calls.map(({ status }) => status);

const answer = ({ runner }: Device, toolCallId: string, content: string, more = {}) =>
  runner.answerToolCall({ threadId: "t", toolCallId, token: `${content}-id`, by: "user", content, ...more });

/** The run that goes on with the results. */
async function goOn(one: Device): Promise<void> {
  const { nextRunId = "none" } = await calls(one);
  await collect(
    one.runner.run({
      threadId: "t",
      agent: asking,
      input: { ...inputOf("t", nextRunId, []), tools: [ask] },
      afterToolCalls: true,
    } as Parameters<Device["runner"]["run"]>[0]),
  );
}

const said = async (one: Device) => (await shown(one, "t")).messages.at(-1)?.content;

/** Two devices that both have a thread in which calls wait that the first one has made. */
async function called(count = 1) {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  await call(phone, "r1", count);
  await eventually(async () => expect(await statuses(laptop)).toHaveLength(count));
  return { server, phone, laptop };
}

test("a call waits on all devices; what somebody answers on another one is its result, once, and goes on there", async () => {
  const { server, phone, laptop } = await called();
  expect((await calls(laptop)).calls).toEqual([{ toolCallId: "r1-c1", name: "ask", status: "open", elsewhere: true }]);
  expect((await calls(phone)).calls).toEqual([{ toolCallId: "r1-c1", name: "ask", status: "open" }]);
  await answer(laptop, "r1-c1", "yes");
  await eventually(async () => expect(await statuses(phone)).toEqual(["answered"]));
  await expect(answer(phone, "r1-c1", "no")).rejects.toMatchObject({ code: "call-over" });
  await goOn(laptop);
  await eventually(async () => expect(await said(phone)).toBe("heard yes"));
  await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(laptop, "t")));
  expect(await statuses(phone)).toEqual([]);
  expect(types(server).filter((type) => type === "result")).toHaveLength(1);
});

test("the device that has called goes on with what others answered, all of it", async () => {
  const { phone, laptop } = await called(2);
  await answer(laptop, "r1-c2", "two");
  await answer(phone, "r1-c1", "one");
  await eventually(async () => expect(await statuses(phone)).toEqual(["answered", "answered"]));
  await goOn(phone);
  await eventually(async () => expect(await said(laptop)).toBe("heard one, two"));
});

test("two devices that answer at once: one result counts, the other is refused", async () => {
  const { phone, laptop } = await called();
  const given = await Promise.allSettled([answer(phone, "r1-c1", "phone"), answer(laptop, "r1-c1", "laptop")]);
  const refused = given.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  expect(refused).toMatchObject([{ code: "call-over" }]);
  const counts = given[0]?.status === "fulfilled" ? "phone" : "laptop";
  await eventually(async () => expect(await statuses(laptop)).toEqual(["answered"]));
  await eventually(async () => expect(await statuses(phone)).toEqual(["answered"]));
  await goOn(laptop);
  expect(await said(laptop)).toBe(`heard ${counts}`);
});

test("of two answers offline, the one that reaches the servers first is the result on all devices", async () => {
  const { server, phone, laptop } = await called();
  for (const one of [phone, laptop]) one.space.connect(false);
  await answer(phone, "r1-c1", "phone");
  await answer(laptop, "r1-c1", "laptop");
  laptop.space.connect(true);
  await eventually(() => expect(types(server)).toContain("result"));
  phone.space.connect(true);
  await eventually(async () =>
    expect((await calls(phone)).calls[0]?.token).toBe((await calls(laptop)).calls[0]?.token),
  );
  await goOn(phone);
  await eventually(async () => expect(await said(laptop)).toBe("heard laptop"));
  expect(await said(phone)).toBe("heard laptop");
});

test("a handler of another device does not run unless somebody says so; its result counts if it is first", async () => {
  const { phone, laptop } = await called();
  const claim = { threadId: "t", toolCallId: "r1-c1", token: "tok" };
  expect(await laptop.runner.claimToolCall(claim, "tab")).toBe(false);
  expect(await laptop.runner.claimToolCall({ ...claim, again: true }, "tab")).toBe(true);
  await laptop.runner.answerToolCall({ ...claim, by: "handler", content: "done", followUp: false });
  await eventually(async () => expect((await calls(phone)).calls[0]).toMatchObject({ token: "tok", followUp: false }));
});

test("a handler whose call somebody answered on another device has no result", async () => {
  const { phone, laptop } = await called();
  const claim = { threadId: "t", toolCallId: "r1-c1", token: "tok" };
  expect(await phone.runner.claimToolCall(claim, "tab")).toBe(true);
  await answer(laptop, "r1-c1", "person");
  const late = phone.runner.answerToolCall({ ...claim, by: "handler", content: "handler" });
  await expect(late).rejects.toSatisfy((error) => RunnerError.is(error, "call-over"));
  await eventually(async () => expect((await calls(phone)).calls[0]).toMatchObject({ token: "person-id" }));
});

test("a device that joins later, one that was offline, and one whose servers lost their disk know the results", async () => {
  const { server, phone, laptop } = await called(2);
  laptop.space.connect(false);
  await answer(phone, "r1-c1", "one");
  const tablet = device(server, "Tablet");
  await eventually(async () => expect(await statuses(tablet)).toEqual(["answered", "open"]));
  laptop.space.connect(true);
  await eventually(async () => expect(await statuses(laptop)).toEqual(["answered", "open"]));
  server.lose();
  const watch = device(server, "Watch");
  await eventually(async () => expect(await statuses(watch)).toEqual(["answered", "open"]));
  await answer(watch, "r1-c2", "two");
  await eventually(async () => expect(await statuses(phone)).toEqual(["answered", "answered"]));
  await goOn(tablet);
  await eventually(async () => expect(await said(phone)).toBe("heard one, two"));
});

test("a result that comes when the thread has gone on holds up nothing", async () => {
  const { server, phone, laptop } = await called();
  laptop.space.connect(false);
  await answer(laptop, "r1-c1", "late");
  await call(phone, "r2", 0);
  await eventually(() => expect(ended(server)).toBe(2));
  laptop.space.connect(true);
  await eventually(async () => expect(await tree(laptop, "t")).toEqual(await tree(phone, "t")));
  await eventually(() => expect(types(server)).toContain("result"));
  expect(await statuses(phone)).toEqual([]);
  // The next run is given what nobody has heard.
  await call(laptop, "r3", 0);
  await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(laptop, "t")));
});

test("what waits on another device than that which has called waits for no tab of that one", async () => {
  const { phone, laptop } = await called();
  const waitsFor = async ({ runner }: Device) =>
    (await (await runner.outbox.get()).thread("t")).toolCalls?.calls.length;
  expect(await waitsFor(phone)).toBe(1);
  expect(await waitsFor(laptop)).toBeUndefined();
});

test("results that lie about their shape say nothing, and hold up nothing", async () => {
  const { server, phone, laptop } = await called();
  const [last] = server.entries.slice(-1);
  const entry = (result: unknown) => ({
    v: 1,
    type: "result",
    threadId: "t",
    device: { id: "x", name: "x" },
    runId: "r1",
    result,
  });
  const write = (message: unknown): void => {
    const body = new TextEncoder().encode(JSON.stringify(message));
    server.add(
      last!.thread,
      body,
      server.entries.findLast(({ thread }) => thread === last!.thread)!.seq,
      String(server.last),
    );
  };
  const good = { id: "m", role: "tool", toolCallId: "r1-c1", content: "forged" };
  for (const lie of [
    undefined,
    "yes",
    { ...good, content: {} },
    { ...good, role: "user" },
    { ...good, toolCallId: 1 },
  ]) {
    write(entry(lie));
  }
  write(entry({ ...good, toolCallId: "__proto__" }));
  await answer(laptop, "r1-c1", "yes");
  await eventually(async () => expect((await calls(phone)).calls[0]).toMatchObject({ token: "yes-id" }));
});

/** Calls a tool, and asks a question besides; answered, it says so. */
const both = agentOf(async function* ({ runId, threadId, resume }): AsyncGenerator<BaseEvent> {
  if (resume !== undefined) {
    const event = { type: EventType.TEXT_MESSAGE_CHUNK, messageId: `${runId}-m`, role: "assistant", delta: "thanks" };
    return yield event as BaseEvent;
  }
  yield { type: EventType.TOOL_CALL_CHUNK, toolCallId: "c", toolCallName: "ask", delta: "{}" } as BaseEvent;
  const outcome = { type: "interrupt", interrupts: [{ id: "i", reason: "may I?" }] };
  yield { type: EventType.RUN_FINISHED, threadId, runId, outcome } as BaseEvent;
});

test("a handler stays with the device that has called, and runs on, where somebody answers a question elsewhere", async () => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await inStep(phone, laptop);
  const run = (one: Device, runId: string, more = {}) =>
    collect(
      one.runner.run({ threadId: "t", agent: both, input: { ...inputOf("t", runId, []), tools: [ask], ...more } }),
    );
  await run(phone, "r1");
  expect(await phone.runner.claimToolCall({ threadId: "t", toolCallId: "c", token: "tok", once: true }, "tab")).toBe(
    true,
  );
  await eventually(async () => expect(await statuses(laptop)).toEqual(["open"]));
  await run(laptop, "r2", { resume: [{ interruptId: "i", status: "resolved", payload: "yes" }] });
  await eventually(async () => expect(await tree(phone, "t")).toMatchObject({ r2: { status: "finished" } }));
  expect((await calls(laptop)).calls).toMatchObject([{ toolCallId: "c", status: "open", elsewhere: true }]);
  expect((await calls(phone)).calls).toEqual([{ toolCallId: "c", name: "ask", status: "claimed", token: "tok" }]);
});

test("what waits on the device that has called goes on where the thread went on without a result", async () => {
  const { server, phone, laptop } = await called(2);
  laptop.space.connect(false);
  await call(laptop, "r2", 0);
  await answer(phone, "r1-c1", "one");
  laptop.space.connect(true);
  await eventually(() => expect(ended(server)).toBe(2));
  await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(laptop, "t")));
  const { toolCalls } = await (await phone.runner.outbox.get()).thread("t");
  expect(toolCalls).toBeUndefined();
});

test("a run's end that names a call twice, or too many, is none; an older version is told that it is outdated", async () => {
  const { server, laptop } = await called();
  const text = new TextDecoder().decode(server.entries.at(-1)?.body);
  const decoded = (left: unknown) =>
    decodeMessage(new TextEncoder().encode(JSON.stringify({ ...(JSON.parse(text) as object), left })));
  const left = (count: number) => Array.from({ length: count }, (_, at) => ({ toolCallId: `c${at}`, name: "ask" }));
  expect(decoded(left(2))).toMatchObject({ type: "end", left: left(2) });
  for (const lie of [[...left(1), ...left(1)], left(1_001), [{ toolCallId: "c" }], "c"])
    expect(decoded(lie)).toBeUndefined();
  await answer(laptop, "r1-c1", "yes");
  expect(JSON.parse(new TextDecoder().decode(server.entries.at(-1)?.body))).toMatchObject({ type: "result", v: 4 });
});
