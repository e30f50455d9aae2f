import { EventType, type BaseEvent, type Tool } from "@ag-ui/client";
import { filter, firstValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { agentOf, collect, counted, counter, fastClock, freshDb, gated, inputOf } from "../runner/kit.js";
import { gatedAgent, until } from "../waiting/kit.js";
import { decodeMessage } from "../../../src/sync/messages.js";
import { SpaceOffline } from "../../../src/sync/space.js";
import {
  device,
  deviceOn,
  eventually,
  inStep,
  lineOf,
  makeDevice,
  MemoryServer,
  passes,
  say,
  sayNow,
  tree,
  types,
} from "./kit.js";
import { MemorySpace } from "./memory-space.js";
import { ask, device as runtimeOn, runOf, sees, server, textsOf, STOPPED_EARLY } from "./servers-kit.js";

/*
 * What a review as a hostile user has found where devices in step meet tool calls, stops, deletions, and runs that wait.
 */

const story = (space: MemoryServer): string => space.entries.flatMap(lineOf).join("\n");
const claims = (space: MemoryServer): number => types(space).filter((type) => type === "claim").length;
/** Resolves when somebody is told to stop a run from now on. */
const stopTold = (space: MemoryServer) =>
  firstValueFrom(space.told.pipe(filter((body) => new TextDecoder().decode(body).includes('"stop"'))));
const outcome = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );

const calls = agentOf(async function* (): AsyncGenerator<BaseEvent> {
  const call = { toolCallId: "c1", toolCallName: "seat", parentMessageId: "a" };
  yield { type: EventType.TOOL_CALL_START, ...call } as BaseEvent;
  yield { type: EventType.TOOL_CALL_END, toolCallId: "c1" } as BaseEvent;
});
const seat: Tool = { name: "seat", description: "", parameters: {} };

/** A call of the phone is answered there, and the agent does not go on because of it. */
async function answered(clock = fastClock(1)) {
  const space = new MemoryServer();
  const [phone, laptop] = [device(space, "Phone", { clock }), device(space, "Laptop")];
  await inStep(phone, laptop);
  await collect(phone.runner.run({ threadId: "t", agent: calls, input: { ...inputOf("t", "r1"), tools: [seat] } }));
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "finished" } }));
  const call = { threadId: "t", toolCallId: "c1", token: "tok" };
  expect(await phone.runner.claimToolCall(call, "tab")).toBe(true);
  await phone.runner.answerToolCall({ ...call, by: "handler", content: "seat 7", followUp: false });
  return { space, phone, laptop };
}

test("a run of another device streams although a call was answered here, and the next run here is given the answer", async () => {
  const { phone, laptop } = await answered();
  const { gate, letOn } = gated();
  const run = say(laptop, "t", "r2", agentOf(counter(4, (step) => (step === 2 ? gate : undefined))));
  await eventually(async () => expect(await tree(phone, "t")).toMatchObject({ r2: { status: "running" } }));
  letOn();
  await run;
  await eventually(async () => expect(await tree(phone, "t")).toEqual(await tree(laptop, "t")));
  await inStep(phone);
  const given: unknown[] = [];
  const agent = agentOf(async function* ({ messages }): AsyncGenerator<BaseEvent> {
    given.push(...messages.filter(({ role }) => role === "tool").map(({ content }) => content));
    yield* [];
  });
  await say(phone, "t", "r3", agent);
  expect(given).toEqual(["seat 7"]);
});

test("the device of that run dies in the middle, and the thread is free", async () => {
  const { space, phone, laptop } = await answered(fastClock(50));
  const { gate, letOn } = gated();
  const run = say(laptop, "t", "r2", agentOf(counter(4, (step) => (step === 2 ? gate : undefined))));
  await eventually(() => {
    const of = types(space);
    expect([of.lastIndexOf("run") > of.indexOf("end"), of.at(-1)]).toEqual([true, "events"]);
  });
  laptop.space.connect(false);
  await eventually(async () => expect(await tree(phone, "t")).toMatchObject({ r2: { status: "broken" } }));
  await say(phone, "t", "r3", agentOf(counter(2)));
  letOn();
  await run;
});

test("a stop that was taken while the run's device is cut off ends the run when it is back", async () => {
  const space = new MemoryServer();
  const phone = device(space, "Phone");
  const laptop = device(space, "Laptop", { clock: fastClock(5) });
  await inStep(phone, laptop);
  const { gate, letOn } = gated();
  const run = say(phone, "t", "r1", agentOf(counter(6, (step) => (step === 3 ? gate : undefined))));
  await eventually(async () => expect((await laptop.runner.getThreadMessages("t"))[1]?.content).toBe(counted(3)));
  phone.space.connect(false);
  expect(await laptop.runner.stop({ threadId: "t", runId: "r1" })).toBe(true);
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "broken" } }));
  const told = stopTold(space);
  phone.space.connect(true);
  await told;
  await eventually(async () => expect((await phone.store.head("t"))?.stop ?? "over").toBeDefined());
  letOn();
  await run;
  await eventually(async () => expect(await tree(phone, "t")).toMatchObject({ r1: { status: "stopped" } }));
});

test("in a thread that was deleted, the error of a server is told", async () => {
  const space = new MemoryServer();
  await server(new MemorySpace(space), "Server", {
    agents: { heavy: agentOf(counter(2)), broken: () => Promise.reject(new Error("no model here")) },
  });
  const { runtime } = runtimeOn(new MemorySpace(space), "Phone");
  await sees(runtime, "broken");
  await ask(runtime, "heavy", "t", "r1");
  await runtime.threads.delete("t");
  await until(() => expect(types(space)).toContain("deleted"));
  await expect(ask(runtime, "broken", "t", "r2")).rejects.toMatchObject({ code: "host-failed" });
});

test("a server begins a run although the answers to its claims are lost", async () => {
  const space = new MemoryServer();
  const at = new MemorySpace(space);
  const { add } = at;
  vi.spyOn(at, "add").mockImplementation(async (thread, body, place) => {
    const seq = await add.call(at, thread, body, place);
    const message = decodeMessage(body);
    if (typeof message === "object" && message.type === "claim") throw new SpaceOffline();
    return seq;
  });
  await server(at, "Server", { agents: { heavy: agentOf(counter(2)) } });
  const { runtime } = runtimeOn(new MemorySpace(space), "Phone");
  await sees(runtime, "heavy");
  await ask(runtime, "heavy", "t", "r1");
  expect(
    types(space).filter((type) => type === "run" || type === "claim"),
    story(space),
  ).toEqual(["claim", "claim", "run"]);
});

test("a stop of a run whose server is cut off behind its claim ends that run", async () => {
  const space = new MemoryServer();
  const at = new MemorySpace(space);
  const { gate, letOn } = gated();
  const agent = agentOf(async function* (): AsyncGenerator<BaseEvent> {
    await gate;
    yield* [];
  });
  await server(at, "Server", { agents: { heavy: agent } });
  const { runtime } = runtimeOn(new MemorySpace(space), "Phone");
  await sees(runtime, "heavy");
  const add = space.add.bind(space);
  const adding = vi.spyOn(space, "add").mockImplementation((...of) => {
    const seq = add(...of);
    if (claims(space) === 2) queueMicrotask(() => at.connect(false));
    return seq;
  });
  const stopped = expect(ask(runtime, "heavy", "t", "r1")).resolves.toEqual(STOPPED_EARLY);
  await until(() => expect(at.isOnline).toBe(false));
  adding.mockRestore();
  await until(async () => expect(await runtime.runner().stop({ threadId: "t", runId: "r1" })).toBe(true));
  await stopped;
  at.connect(true);
  await stopTold(space);
  letOn();
  await eventually(async () =>
    expect(await runOf(runtime, "t", "r1"), story(space)).toMatchObject({ status: "stopped" }),
  );
});

test.each([false, true])(
  "what waits on one device is not lost with a thread that another deletes (and begins anew: %s)",
  async (isAnew) => {
    const space = new MemoryServer();
    const { agent: own, open } = gatedAgent();
    open();
    const asks = agentOf(async function* ({ threadId, runId }): AsyncGenerator<BaseEvent> {
      const interrupt = { type: "interrupt", interrupts: [{ id: "i", reason: "confirm" }] };
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: interrupt } as BaseEvent;
    });
    const at = new MemorySpace(space);
    const agents = { own, asks };
    const [phone, laptop] = [
      runtimeOn(at, "Phone", { agents }),
      runtimeOn(new MemorySpace(space), "Laptop", { agents }),
    ];
    await ask(phone.runtime, "asks", "t", "r0");
    await until(async () => expect(await textsOf(laptop.runtime, "t")).toHaveLength(1));
    let became: unknown;
    void outcome(ask(phone.runtime, "own", "t", "r2", { onBusy: "queue" })).then((is) => (became = is));
    await until(async () => expect(await phone.runtime.waiting.list("t")).toHaveLength(1));
    if (isAnew) at.connect(false);
    await laptop.runtime.threads.delete("t");
    if (isAnew) await ask(laptop.runtime, "own", "t", "n1");
    at.connect(true);
    await until(async () => {
      const texts = await textsOf(phone.runtime, "t");
      expect([became, texts.includes("asked in r2"), (await phone.runtime.waiting.list("t")).length]).toSatisfy(
        ([is, isSaid, waiting]) => is !== "cancelled" && (isSaid === true || waiting === 1),
      );
    });
    expect(became).not.toBe("cancelled");
  },
);

test("a host that is about to connect asks whether it may start", async () => {
  const space = new MemoryServer();
  const laptop = device(space, "Laptop");
  const dbName = freshDb();
  const phone = device(space, "Phone", { dbName });
  await inStep(phone, laptop);
  await say(laptop, "t", "r1", agentOf(counter(2)));
  await eventually(async () => expect(await tree(phone, "t")).toMatchObject({ r1: { status: "finished" } }));
  await phone.close();
  const { gate, letOn } = gated();
  const run = say(laptop, "t", "r2", agentOf(counter(4, (step) => (step === 2 ? gate : undefined))));
  await eventually(() => expect(types(space).at(-1)).toBe("events"));
  const again = device(space, "Phone", { dbName, faults: { isConnecting: true } });
  const refused = expect(sayNow(again, "t", "r3", agentOf(counter(2)))).rejects.toMatchObject({ code: "thread-busy" });
  again.space.connect(true);
  await refused;
  letOn();
  await run;
});

test("a broken run of which all had everything keeps no deleted thread when its device is back", async () => {
  const space = new MemoryServer();
  const dbName = freshDb();
  const phone = device(space, "Phone", { dbName });
  const laptop = device(space, "Laptop", { clock: fastClock(50) });
  await inStep(phone, laptop);
  const { gate } = gated();
  void outcome(say(phone, "t", "r1", agentOf(counter(4, (step) => (step === 2 ? gate : undefined)))));
  await eventually(async () => expect((await laptop.runner.getThreadMessages("t"))[1]?.content).toBe(counted(2)));
  // Its browser is killed.
  phone.space.connect(false);
  phone.runner.letGo();
  await phone.sync.close();
  await eventually(async () => expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "broken" } }));
  expect(await laptop.runner.deleteThread("t")).toBe(true);
  await eventually(() => expect(types(space)).toContain("deleted"));
  const again = device(space, "Phone", { dbName });
  await inStep(again);
  await eventually(async () => expect(await again.runner.listThreads(), story(space)).toEqual([]));
  expect(await laptop.runner.listThreads()).toEqual([]);
});

test("a run waits in a thread that is absent here, also offline, and where another device deletes it meanwhile", async () => {
  const space = new MemoryServer();
  const { agent: own, open } = gatedAgent();
  open();
  const agents = { own };
  const laptop = runtimeOn(new MemorySpace(space), "Laptop", { agents });
  for (const thread of ["t", "u"]) await ask(laptop.runtime, "own", thread, "r0");
  const at = new MemorySpace(space);
  const phone = runtimeOn(at, "Phone", { agents, sync: { space: at, device: "Phone", keep: "opened" } });
  await until(async () => expect(await phone.runtime.threads.list()).toHaveLength(2));
  at.connect(false);
  const waiting = outcome(ask(phone.runtime, "own", "t", "r2", { whenOffline: "wait" }));
  await until(async () => expect(await phone.runtime.waiting.list("t")).toHaveLength(1));
  await laptop.runtime.threads.delete("t");
  at.connect(true);
  expect(await waiting, story(space)).toBe("done");
  await until(async () => expect(await textsOf(laptop.runtime, "t")).toContain("asked in r2"));
  expect(await textsOf(laptop.runtime, "t")).toEqual(await textsOf(phone.runtime, "t"));
});

test("a claim whose answer was lost with the connection keeps no thread busy where its run does not begin", async () => {
  const space = new MemoryServer();
  const { gate, letOn } = gated();
  let loses = true;
  const phone = device(space, "Phone", {
    faults: {
      loseAnswer: () => {
        if (!loses) return false;
        loses = false;
        phone.space.connect(false);
        return true;
      },
    },
    // Its disk is full, say.
    atFailurePoint: async (point) => {
      if (point !== "claiming.read") return;
      await gate;
      throw new Error("no room");
    },
  });
  const laptop = device(space, "Laptop");
  await inStep(phone, laptop);
  const refused = expect(sayNow(phone, "t", "r1", agentOf(counter(2)))).rejects.toThrow("no room");
  await vi.waitFor(() => expect(phone.space.isOnline).toBe(false));
  await passes(50);
  phone.space.connect(true);
  await inStep(phone);
  await passes(50);
  letOn();
  await refused;
  await eventually(() => expect(types(space)).toEqual(["claim", "release"]));
  // It may have read only one of them.
  await eventually(async () => void (await sayNow(laptop, "t", "r2", agentOf(counter(2)))));
});

test("what is remembered of a thread cannot be read once: it is read again, and holds up no other thread", async () => {
  const space = new MemoryServer();
  const [phone, laptop] = [device(space, "Phone"), device(space, "Laptop")];
  await inStep(phone, laptop);
  const read = vi.spyOn(phone.database, "thread");
  read.mockRejectedValueOnce(new Error("The disk fails"));
  for (const threadId of ["t", "u"]) await say(laptop, threadId, `r-${threadId}`, agentOf(counter(2)));
  for (const threadId of ["t", "u"]) {
    await eventually(async () => expect(await tree(phone, threadId)).toEqual(await tree(laptop, threadId)));
  }
});

test("a live run goes on for all others where a device that was away has gone on from it", async () => {
  const space = new MemoryServer();
  const dbName = freshDb();
  const [phone, laptop] = [device(space, "Phone"), device(space, "Laptop")];
  const tablet = makeDevice(space, "Tablet", { dbName });
  await inStep(phone, laptop, tablet);
  const { gate, letOn } = gated();
  const going = say(phone, "t", "r1", agentOf(counter(4, (n) => (n === 2 ? gate : undefined))));
  for (const one of [laptop, tablet]) {
    await eventually(async () => expect(await tree(one, "t")).toMatchObject({ r1: { status: "running" } }));
  }
  await tablet.close();
  // Its next host finds the run that nobody writes down any more.
  const at = new MemorySpace(space);
  at.connect(false);
  const back = deviceOn(at, "Tablet", { dbName });
  onTestFinished(back.close);
  await say(back, "t", "r2", agentOf(counter(2)));
  at.connect(true);
  await eventually(() => expect(types(space).at(-1)).toBe("end"));
  await inStep(laptop);
  await passes(200);
  expect(await tree(laptop, "t")).toMatchObject({ r1: { status: "running" } });
  letOn();
  await going;
  for (const one of [laptop, back]) {
    await eventually(async () => expect(await tree(one, "t")).toEqual(await tree(phone, "t")));
  }
  expect(await tree(phone, "t")).toMatchObject({ r1: { status: "finished" }, r2: { prev: "r1" } });
});

test("what was done offline is sent, also where what is remembered of its thread cannot be read once", async () => {
  const space = new MemoryServer();
  const dbName = freshDb();
  const before = makeDevice(space, "Phone", { dbName });
  await inStep(before);
  before.space.connect(false);
  await say(before, "t", "r1", agentOf(counter(2)));
  await before.close();
  const at = new MemorySpace(space);
  at.connect(false);
  const phone = deviceOn(at, "Phone", { dbName });
  onTestFinished(phone.close);
  const read = vi.spyOn(phone.database, "thread").mockRejectedValueOnce(new Error("The disk fails"));
  at.connect(true);
  await eventually(() => expect(types(space)).toContain("end"));
  expect(read).toHaveBeenCalled();
});
