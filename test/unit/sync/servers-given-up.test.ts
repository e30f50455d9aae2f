import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import { filter, firstValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { Bell } from "../../../src/platform/bell.js";
import type { Clock } from "../../../src/platform/clock.js";
import { RunnerError } from "../../../src/run/errors.js";
import { askServers, type AskContext } from "../../../src/sync/ask-servers.js";
import type { ThreadSync } from "../../../src/sync/thread-sync.js";
import { agentOf, counter, fastClock, gated, inputOf, whenAborted } from "../runner/kit.js";
import { until } from "../waiting/kit.js";
import { deviceOn, passes, types } from "./kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, device, runOf, sees, server, STOPPED_EARLY } from "./servers-kit.js";

/*
 * Requests that are given up: while the connection is away, or since nothing can come of them.
 */

const isAsked = (space: MemoryServer) => until(() => expect(types(space)).toContain("claim"));

test("a run that is stopped while the connection is away is taken back, and not executed later", async () => {
  const space = new MemoryServer();
  const { gate, letOn } = gated();
  const executed: string[] = [];
  const heavy = agentOf(async function* (input, context) {
    executed.push(input.runId);
    yield* counter(1)(input, context);
  });
  await server(new MemorySpace(space), "Server", { agents: { heavy }, beforeRequestMiddleware: () => gate });
  const at = new MemorySpace(space);
  const { runtime } = device(at, "Phone");
  await sees(runtime, "heavy");
  const stopped = expect(ask(runtime, "heavy", "t", "r1")).resolves.toEqual(STOPPED_EARLY);
  await isAsked(space);
  at.connect(false);
  expect(await runtime.runner().stop({ threadId: "t", runId: "r1" })).toBe(true);
  await stopped;
  at.connect(true);
  // It stands for a minute otherwise.
  await vi.waitFor(() => expect(types(space)).toEqual(["claim", "release"]), { timeout: 20_000 });
  letOn();
  await ask(runtime, "heavy", "t", "r2");
  expect(executed).toEqual(["r2"]);
});

test("a run that a server has begun is stopped there, though the connection was away when it was stopped here", async () => {
  const space = new MemoryServer();
  const { gate, letOn } = gated();
  const heavy = agentOf(async function* (_input, { signal }) {
    await whenAborted(signal);
    yield* [];
  });
  const options = { agents: { heavy }, beforeRequestMiddleware: () => gate, stopGraceMs: 50 };
  await server(new MemorySpace(space), "Server", options);
  const at = new MemorySpace(space);
  const { runtime } = device(at, "Phone");
  await sees(runtime, "heavy");
  const stopped = expect(ask(runtime, "heavy", "t", "r1")).resolves.toEqual(STOPPED_EARLY);
  await isAsked(space);
  at.connect(false);
  letOn();
  await until(() => expect(types(space)).toContain("run"));
  expect(await runtime.runner().stop({ threadId: "t", runId: "r1" })).toBe(true);
  await stopped;
  at.connect(true);
  await until(async () => expect(await runOf(runtime, "t", "r1")).toMatchObject({ status: "stopped" }));
});

test("of two answers under one id, the one whose server was not first is told that the thread is busy", async () => {
  const space = new MemoryServer();
  const answered: unknown[] = [];
  const heavy = agentOf(async function* ({ resume = [], threadId, runId }) {
    if (resume.length > 0) return void answered.push(resume[0]!.payload);
    const interrupts = [{ id: "i1", reason: "confirm" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
  });
  let isSlow = false;
  const loseRequest = (body: Uint8Array): boolean => isSlow && new TextDecoder().decode(body).includes('"type":"run"');
  await server(new MemorySpace(space, { loseRequest }), "Server", { agents: { heavy } });
  const [phone, laptop] = [device(new MemorySpace(space), "Phone"), device(new MemorySpace(space), "Laptop")];
  for (const { runtime } of [phone, laptop]) await sees(runtime, "heavy");
  await ask(phone.runtime, "heavy", "t", "r1");
  await until(async () => expect(await runOf(laptop.runtime, "t", "r1")).toMatchObject({ status: "finished" }));
  const answer = async ({ runtime }: typeof phone, payload: string) => {
    const agent = runtime.agent("heavy", { threadId: "t" });
    await agent.connectAgent();
    return agent.runAgent({ runId: "r1", resume: [{ interruptId: "i1", status: "resolved", payload }] });
  };
  const claims = (): number => types(space).filter((type) => type === "claim").length;
  const before = claims();
  isSlow = true;
  const first = answer(phone, "yes");
  // The device's, and the server's.
  await until(() => expect(claims()).toBe(before + 2));
  await expect(answer(laptop, "no")).rejects.toMatchObject({ code: "thread-busy" });
  isSlow = false;
  await first;
  expect(answered).toEqual(["yes"]);
});

/** A device that asks a server, on a clock that is faster than others. */
async function fastPhone(space: MemoryServer) {
  const at = new MemorySpace(space);
  const phone = deviceOn(at, "Phone", { clock: fastClock(20) });
  onTestFinished(phone.close);
  await firstValueFrom(
    phone.sync.status$.pipe(filter(({ devices }) => devices.some(({ agents }) => agents?.includes("heavy") === true))),
  );
  /** @returns why it did not start */
  const start = (runId: string, messages?: Message[]) => {
    const input = inputOf("t", runId, messages);
    const run = phone.runner.start({
      threadId: "t",
      agentId: "heavy",
      agent: agentOf(counter(1)),
      input,
      placement: "server",
    });
    return { run, refusal: run.started.then(() => undefined).catch((error: unknown) => error) };
  };
  return { at, phone, start };
}

test("a request whose connection stays away ends as offline, and is taken back when that is there again", async () => {
  const space = new MemoryServer();
  const { gate } = gated();
  const heavy = agentOf(counter(1));
  await server(new MemorySpace(space), "Server", { agents: { heavy }, beforeRequestMiddleware: () => gate });
  const { at, start } = await fastPhone(space);
  const { refusal } = start("r1");
  await isAsked(space);
  at.connect(false);
  const error = await refusal;
  expect(error).toMatchObject({ code: "offline" });
  expect(String(error)).toContain("may execute");
  at.connect(true);
  await until(() => expect(types(space)).toEqual(["claim", "release"]));
});

test("a request whose run cannot be written down here says why", async () => {
  const space = new MemoryServer();
  await server(new MemorySpace(space), "Server", { agents: { heavy: agentOf(counter(1)) } });
  const { phone, start } = await fastPhone(space);
  vi.spyOn(phone.store, "claim").mockRejectedValue(new RunnerError("quota-exceeded"));
  vi.spyOn(phone.store, "placeRun").mockRejectedValue(new RunnerError("quota-exceeded"));
  expect(await start("r1").refusal).toMatchObject({ code: "quota-exceeded" });
});

test("a request is stopped although its run, which is over, is not written down yet", async () => {
  const space = new MemoryServer();
  await server(new MemorySpace(space), "Server", { agents: { heavy: agentOf(counter(1)) } });
  const { phone, start } = await fastPhone(space);
  const { gate } = gated();
  const { claim } = phone.store;
  vi.spyOn(phone.store, "claim").mockImplementation(async (given) => gate.then(() => claim(given)));
  const { run, refusal } = start("r1");
  await until(() => expect(types(space)).toContain("end"));
  await passes(20);
  run.stop();
  expect(await refusal).toMatchObject({ code: "cancelled" });
});

test("a server that has died is not waited for for ever, to be told to stop", async () => {
  let time = 0;
  let waits = 0;
  const clock: Clock = {
    now: () => time,
    elapsed: () => time,
    after: async (ms) => {
      waits++;
      time += ms;
      await passes(1);
    },
  };
  const lock = { runId: "r1", device: { id: "dead", name: "Dead" }, isClaimed: true };
  const thread = {
    record: {
      state: { last: 1, lastRun: 0, active: null, open: {}, lock: { ...lock, asked: { at: 1, fingerprint: "f" } } },
    },
    arrivals: { expects: () => false },
  } as unknown as ThreadSync;
  const context: AskContext = {
    parts: { clock },
    self: { id: "phone", name: "Phone" },
    devices: { askToStop: () => undefined, isAway: () => true },
    threadOf: async () => thread,
    inLog: async () => undefined,
    isCurrent: () => true,
    moved: new Bell(),
    closed: new AbortController().signal,
  };
  const request = { threadId: "t", agentId: "heavy", input: inputOf("t", "r1") };
  const asked = { at: 1, request, fingerprint: "f" };
  await expect(askServers(context, asked, AbortSignal.abort())).rejects.toMatchObject({ code: "cancelled" });
  // A minute and more: it may only have been cut off.
  await until(() => expect(time).toBeGreaterThan(100_000));
  await passes(1_000);
  const before = waits;
  await passes(100);
  expect(waits).toBe(before);
});
