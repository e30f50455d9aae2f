import { EventType, type BaseEvent } from "@ag-ui/client";
import { filter, firstValueFrom } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FrontendTools, runFrontendTools } from "../../../src/client/index.js";
import { systemClock } from "../../../src/platform/clock.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { cheapPassphrases } from "../encryption/cheap-passphrases.js";
import { agentOf, counter, fastClock, freshDb, gated, whenAborted } from "../runner/kit.js";
import { gatedAgent, until } from "../waiting/kit.js";
import { deviceOn, types } from "./kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, device, runOf, sees, server, textsOf } from "./servers-kit.js";

/*
 * Hosts on servers: what runs there, and what the devices of the space see of it.
 */

cheapPassphrases();

describe("an agent of a server", () => {
  test("runs for a tab that does not have it: both tabs of both devices see it, and who executed it", async () => {
    const space = new MemoryServer();
    await server(new MemorySpace(space), "Server", { agents: { heavy: agentOf(counter(3)) } });
    const [phone, laptop] = [device(new MemorySpace(space), "Phone"), device(new MemorySpace(space), "Laptop")];
    await sees(phone.runtime, "heavy");
    await ask(phone.runtime, "heavy", "t", "r1");
    expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "finished", device: { name: "Server" } });
    await until(async () => expect(await textsOf(laptop.runtime, "t")).toEqual(await textsOf(phone.runtime, "t")));
    await sees(laptop.runtime, "heavy");
    await ask(laptop.runtime, "heavy", "t", "r2");
    await until(async () => expect(await runOf(phone.runtime, "t", "r2")).toMatchObject({ status: "finished" }));
    const texts = await textsOf(laptop.runtime, "t");
    expect(texts).toHaveLength(4);
    expect(texts).toContain("asked in r1");
  });

  test("goes on when the tab and its host are gone", async () => {
    const space = new MemoryServer();
    const { gate, letOn } = gated();
    await server(new MemorySpace(space), "Server", {
      agents: {
        heavy: agentOf(async function* (input, context) {
          await gate;
          yield* counter(3)(input, context);
        }),
      },
    });
    const [phone, laptop] = [device(new MemorySpace(space), "Phone"), device(new MemorySpace(space), "Laptop")];
    await sees(phone.runtime, "heavy");
    ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
    await until(async () => expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "running" }));
    await phone.runtime.close();
    await phone.host.close();
    letOn();
    await until(async () => expect(await runOf(laptop.runtime, "t", "r1")).toMatchObject({ status: "finished" }));
  });

  test("begins although the host that asked for it was closed before", async () => {
    const space = new MemoryServer();
    const at = new MemorySpace(space);
    await server(at, "Server", { agents: { heavy: agentOf(counter(3)) } });
    const [phone, laptop] = [device(new MemorySpace(space), "Phone"), device(new MemorySpace(space), "Laptop")];
    await sees(phone.runtime, "heavy");
    at.connect(false);
    const asked = space.entries.length;
    ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
    await until(() => expect(space.entries.length).toBeGreaterThan(asked));
    await phone.runtime.close();
    await phone.host.close();
    at.connect(true);
    await until(async () => expect(await runOf(laptop.runtime, "t", "r1")).toMatchObject({ status: "finished" }));
  });

  test("of several servers one executes each run, and the next one goes on where it ended", async () => {
    const space = new MemoryServer();
    const executed: string[] = [];
    const counting = (name: string) =>
      agentOf(async function* (input, context) {
        executed.push(`${name} ${input.runId}`);
        yield* counter(2)(input, context);
      });
    for (const name of ["S1", "S2", "S3"]) {
      await server(new MemorySpace(space), name, { agents: { heavy: counting(name) } });
    }
    const phone = device(new MemorySpace(space), "Phone");
    await sees(phone.runtime, "heavy");
    const threads = ["t1", "t2", "t3"];
    for (let round = 0; round < 3; round++) {
      await Promise.all(threads.map((threadId) => ask(phone.runtime, "heavy", threadId, `${threadId}-${round}`)));
    }
    expect(executed.map((it) => it.split(" ")[1]).toSorted()).toEqual(
      threads.flatMap((threadId) => [0, 1, 2].map((round) => `${threadId}-${round}`)),
    );
    for (const threadId of threads) expect(await textsOf(phone.runtime, threadId)).toHaveLength(6);
  });

  test("is stopped from any device", async () => {
    const space = new MemoryServer();
    const { agent } = gatedAgent();
    await server(new MemorySpace(space), "Server", { agents: { heavy: agent }, stopGraceMs: 50 });
    const [phone, laptop] = [device(new MemorySpace(space), "Phone"), device(new MemorySpace(space), "Laptop")];
    await sees(phone.runtime, "heavy");
    const asked = ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
    await until(async () => expect(await runOf(laptop.runtime, "t", "r1")).toMatchObject({ status: "running" }));
    expect(await laptop.runtime.runner().stop({ threadId: "t", runId: "r1" })).toBe(true);
    await asked;
    await until(async () => expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "stopped" }));
  });

  test("that refuses a run says why where it was asked for, and the thread is free", async () => {
    const space = new MemoryServer();
    await server(new MemorySpace(space), "Server", {
      agents: { heavy: agentOf(counter(2)), broken: () => Promise.reject(new Error("no model here")) },
    });
    const phone = device(new MemorySpace(space), "Phone");
    await sees(phone.runtime, "broken");
    await expect(ask(phone.runtime, "broken", "t", "r1")).rejects.toMatchObject({ code: "host-failed" });
    await ask(phone.runtime, "heavy", "t", "r3");
    expect(await runOf(phone.runtime, "t", "r3")).toMatchObject({ status: "finished" });
  });

  test("calls front-end tools of the device that asked, and goes on with their results", async () => {
    const space = new MemoryServer();
    const given: unknown[] = [];
    const agent = agentOf(async function* ({ messages, runId }) {
      const result = messages.findLast(({ role }) => role === "tool");
      if (messages.at(-1)?.role !== "tool") {
        const toolCallId = `${runId}-call`;
        const start = { toolCallId, toolCallName: "seat", parentMessageId: `${runId}-a` };
        yield { type: EventType.TOOL_CALL_START, ...start } as BaseEvent;
        yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "{}" } as BaseEvent;
        yield { type: EventType.TOOL_CALL_END, toolCallId } as BaseEvent;
        return;
      }
      given.push(result?.content);
      const messageId = `${runId}-b`;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "seated" } as BaseEvent;
      yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
    });
    await server(new MemorySpace(space), "Server", { agents: { heavy: agent } });
    const [phone, laptop] = [device(new MemorySpace(space), "Phone"), device(new MemorySpace(space), "Laptop")];
    await sees(phone.runtime, "heavy");
    let calls = 0;
    const tools = new FrontendTools();
    tools.add({ name: "seat", description: "", handler: () => `seat ${++calls}` });
    const follower = phone.runtime.agent("heavy", { threadId: "t" });
    onTestFinished(follower.follow());
    onTestFinished(runFrontendTools(phone.runtime, follower, tools));
    follower.addMessage({ id: "u", role: "user", content: "a seat" });
    await follower.runAgent({ runId: "r1", tools: tools.definitions("heavy") });
    await until(() => expect(given).toEqual(["seat 1"]));
    await until(async () => expect(await textsOf(laptop.runtime, "t")).toContain("seated"));
    expect(calls).toBe(1);
  });
});

test("servers run agents for a space that is encrypted end to end", async () => {
  const space = new MemoryServer();
  const encryption = { key: "one passphrase of all" };
  const planted = "planted text";
  const echo = agentOf(async function* ({ messages, runId }) {
    const messageId = `${runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${messages.at(-1)?.content}, again` } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  });
  const phone = device(new MemorySpace(space), "Phone", { encryption });
  await server(new MemorySpace(space), "Server", { agents: { echo }, encryption });
  await sees(phone.runtime, "echo");
  const agent = phone.runtime.agent("echo", { threadId: "t" });
  agent.addMessage({ id: "u", role: "user", content: planted });
  await agent.runAgent({ runId: "r1" });
  expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "finished", device: { name: "Server" } });
  expect(await textsOf(phone.runtime, "t")).toEqual([planted, `${planted}, again`]);
  const stored = space.entries.map(({ body }) => new TextDecoder().decode(body)).join("");
  expect(stored).not.toContain("planted");
});

describe("a server that dies", () => {
  test("in the middle of a run: another one goes on with it, and when it is back it stops its own", async () => {
    const space = new MemoryServer();
    const clock = fastClock(50);
    const executed: string[] = [];
    const stopped: string[] = [];
    const agents = (name: string) => ({
      heavy: agentOf(async function* (input, { signal }) {
        const isFirst = executed.push(`${name} ${input.runId}`) === 1;
        const messageId = `${input.runId}-${name}`;
        yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `by ${name}` } as BaseEvent;
        // The first one that executes it never comes to its end.
        if (isFirst) {
          await whenAborted(signal);
          stopped.push(input.runId);
        }
        yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
      }),
    });
    const spaces = new Map(["S1", "S2", "S3"].map((name) => [name, new MemorySpace(space)]));
    const agentPolicies = { heavy: { recovery: "auto" } } as const;
    for (const [name, at] of spaces)
      await server(at, name, { agents: agents(name), agentPolicies, stopGraceMs: 50 }, clock);
    const phone = device(new MemorySpace(space), "Phone");
    const laptop = deviceOn(new MemorySpace(space), "Laptop", { clock });
    onTestFinished(laptop.close);
    await sees(phone.runtime, "heavy");
    ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
    await until(async () => expect(await laptop.runner.getRun("r1", { threadId: "t" })).toBeDefined());
    const dead = spaces.get(executed[0]!.slice(0, 2))!;
    dead.connect(false);
    await until(async () =>
      expect(await laptop.runner.getRun("r1~2", { threadId: "t" })).toMatchObject({ status: "finished" }),
    );
    expect(executed.map((it) => it.split(" ")[1])).toEqual(["r1", "r1~2"]);
    dead.connect(true);
    await until(() => expect(stopped).toEqual(["r1"]));
    await until(async () => {
      const rows = await laptop.runner.listRuns("t");
      expect(rows.every(({ status }) => status !== "running")).toBe(true);
    });
    expect(executed).toHaveLength(2);
  });

  test("before it has begun: another one takes the run", async () => {
    const space = new MemoryServer();
    const clock = fastClock(50);
    const executed: string[] = [];
    const { gate } = gated();
    const hangs = { agents: { heavy: agentOf(counter(2)) }, beforeRequestMiddleware: () => gate };
    const first = new MemorySpace(space);
    await server(first, "S1", hangs, clock);
    const phone = device(new MemorySpace(space), "Phone");
    await sees(phone.runtime, "heavy");
    const asked = ask(phone.runtime, "heavy", "t", "r1");
    await until(() => expect(types(space)).toContain("claim"));
    first.connect(false);
    const counting = agentOf(async function* (input, context) {
      executed.push(input.runId);
      yield* counter(2)(input, context);
    });
    await server(new MemorySpace(space), "S2", { agents: { heavy: counting } }, clock);
    await asked;
    expect(executed).toEqual(["r1"]);
  });

  test("a run that no server begins is refused as `offline`, and nothing of it stays", async () => {
    const space = new MemoryServer();
    const { gate } = gated();
    const at = new MemorySpace(space);
    const host = await server(at, "S1", {
      agents: { heavy: agentOf(counter(2)) },
      beforeRequestMiddleware: () => gate,
    });
    const phone = device(new MemorySpace(space), "Phone");
    await sees(phone.runtime, "heavy");
    const asked = ask(phone.runtime, "heavy", "t", "r1");
    const refused = expect(asked).rejects.toMatchObject({ code: "offline" });
    await until(() => expect(types(space)).toContain("claim"));
    await host.close();
    // From now on the phone's time passes twenty times as fast: it waits some seconds.
    const { elapsed } = systemClock;
    const start = elapsed();
    const hurried = vi.spyOn(systemClock, "elapsed").mockImplementation(() => start + (elapsed() - start) * 20);
    onTestFinished(() => hurried.mockRestore());
    await refused;
    expect(types(space)).toEqual(["claim", "release"]);
    expect(await phone.runtime.threads.list()).toEqual([]);
  });
});

describe("where a run is executed", () => {
  const answering = (text: string) =>
    agentOf(async function* ({ runId }) {
      const messageId = `${runId}-a`;
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: text } as BaseEvent;
      yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
    });

  test("`here` on this device, `any` on a server while one is there, `server` nowhere else", async () => {
    const space = new MemoryServer();
    const at = new MemorySpace(space);
    const phone = device(at, "Phone", {
      agents: { own: answering("here"), both: answering("here"), theirs: answering("here") },
      agentPolicies: { both: { placement: "any" }, theirs: { placement: "server" } },
    });
    await firstValueFrom(phone.runtime.status$.pipe(filter((it) => "sync" in it && it.sync?.isCurrent === true)));
    await ask(phone.runtime, "both", "t1", "r1");
    await expect(ask(phone.runtime, "theirs", "t2", "r2")).rejects.toMatchObject({ code: "offline" });
    expect(await phone.runtime.runner().getRun("r2", { threadId: "t2" })).toBeUndefined();
    const served = { own: answering("there"), both: answering("there"), theirs: answering("there") };
    const host = await server(new MemorySpace(space), "Server", { agents: served });
    await sees(phone.runtime, "both");
    await ask(phone.runtime, "own", "t3", "r3");
    await ask(phone.runtime, "both", "t1", "r4");
    await ask(phone.runtime, "theirs", "t2", "r5");
    const said = async (threadId: string) =>
      (await textsOf(phone.runtime, threadId)).filter((it) => /^t?here$/.test(`${it}`));
    expect([await said("t1"), await said("t2"), await said("t3")]).toEqual([["here", "there"], ["there"], ["here"]]);
    // The server leaves.
    await host.close();
    await until(async () => {
      await ask(phone.runtime, "both", "t4", `r${Math.random()}`);
      expect(await said("t4")).toContain("here");
    });
  });

  test("a run that waits for a network starts on a server when one is there, once", async () => {
    const space = new MemoryServer();
    const at = new MemorySpace(space);
    const phone = device(at, "Phone", { agentPolicies: { theirs: { placement: "server" } } });
    const asked = ask(phone.runtime, "theirs", "t", "r1", { whenOffline: "wait" });
    await until(async () => expect(await phone.runtime.waiting.list("t")).toHaveLength(1));
    const executed: string[] = [];
    await server(new MemorySpace(space), "Server", {
      agents: {
        theirs: agentOf(async function* (input, context) {
          executed.push(input.runId);
          yield* counter(2)(input, context);
        }),
      },
    });
    await asked;
    expect(executed).toEqual(["r1"]);
    expect(await phone.runtime.waiting.list("t")).toEqual([]);
    expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "finished", device: { name: "Server" } });
  });

  test("without sync there are no servers: `server` and `any` are refused", () => {
    for (const placement of ["server", "any"] as const) {
      const options = { agents: {}, agentPolicies: { theirs: { placement } } };
      expect(() => serveRuntime({ dbName: freshDb(), ...options })).toThrow(/sync/);
    }
  });
});
