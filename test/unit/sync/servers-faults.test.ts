import { EventType, type BaseEvent } from "@ag-ui/client";
import { filter, firstValueFrom } from "rxjs";
import { expect, test } from "vitest";
import { agentOf, counter, freshDb, gated, whenAborted } from "../runner/kit.js";
import { gatedAgent, until } from "../waiting/kit.js";
import { passes, types } from "./kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, device, runOf, sees, server, textsOf, STOPPED_EARLY } from "./servers-kit.js";

/*
 * Runs that servers are asked for: what becomes of them where somebody stops, loses the connection, answers or deletes meanwhile.
 */

/** A server whose middleware lets nothing through until it is let on. */
async function slowServer(space: MemoryServer, agents = { heavy: agentOf(counter(2)) }) {
  const { gate, letOn } = gated();
  const at = new MemorySpace(space);
  const host = await server(at, "Server", { agents, beforeRequestMiddleware: () => gate });
  return { at, host, letOn };
}

const isAsked = (space: MemoryServer) => until(() => expect(types(space)).toContain("claim"));

test("a host closes while a run is asked for and the space is away", async () => {
  const space = new MemoryServer();
  await slowServer(space);
  const at = new MemorySpace(space);
  const phone = device(at, "Phone");
  await sees(phone.runtime, "heavy");
  const asked = ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
  await isAsked(space);
  at.connect(false);
  await phone.host.close();
  await phone.runtime.close();
  await asked;
});

test("stop reaches a run that is asked for, with its id and without", async () => {
  for (const named of [true, false]) {
    const space = new MemoryServer();
    const { letOn } = await slowServer(space);
    const phone = device(new MemorySpace(space), "Phone");
    await sees(phone.runtime, "heavy");
    const asked = ask(phone.runtime, "heavy", "t", "r1");
    const stopped = expect(asked).resolves.toEqual(STOPPED_EARLY);
    await isAsked(space);
    expect(await phone.runtime.runner().stop({ threadId: "t", ...(named && { runId: "r1" }) })).toBe(true);
    await stopped;
    letOn();
    await until(() => expect(types(space)).toEqual(["claim", "release"]));
    await ask(phone.runtime, "heavy", "t", "r2");
    expect(await phone.runtime.runner().listRuns("t")).toMatchObject([{ runId: "r2", status: "finished" }]);
  }
});

test("a run is shown from its beginning, before its agent says anything, and is stopped then", async () => {
  const space = new MemoryServer();
  const agent = agentOf(async function* (_input, { signal }) {
    await whenAborted(signal);
    yield* [];
  });
  await server(new MemorySpace(space), "Server", { agents: { heavy: agent }, stopGraceMs: 50 });
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  const asked = ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
  await until(async () => expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "running" }));
  expect(await phone.runtime.runner().stop({ threadId: "t" })).toBe(true);
  await asked;
  await until(async () => expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "stopped" }));
});

test("a waiting run that is cancelled while it is asked for is not executed", async () => {
  const space = new MemoryServer();
  const executed: string[] = [];
  const counting = agentOf(async function* (input, context) {
    executed.push(input.runId);
    yield* counter(2)(input, context);
  });
  const { letOn } = await slowServer(space, { heavy: counting });
  const at = new MemorySpace(space);
  at.connect(false);
  const phone = device(at, "Phone", { agentPolicies: { heavy: { placement: "server" } } });
  const asked = ask(phone.runtime, "heavy", "t", "r1", { whenOffline: "wait" });
  const refused = expect(asked).rejects.toMatchObject({ code: "cancelled" });
  await until(async () => expect(await phone.runtime.waiting.list("t")).toHaveLength(1));
  at.connect(true);
  await isAsked(space);
  expect(await phone.runtime.waiting.cancel("t", "r1")).toBe(true);
  await refused;
  letOn();
  await until(() => expect(types(space)).toContain("release"));
  await ask(phone.runtime, "heavy", "t", "r2");
  expect(executed).toEqual(["r2"]);
});

test("an answer under the id of the run that asked is executed on a server, too", async () => {
  const space = new MemoryServer();
  const agent = agentOf(async function* ({ resume, threadId, runId }) {
    if ((resume ?? []).length === 0) {
      const interrupts = [{ id: "i1", reason: "confirm" }];
      yield { type: EventType.RUN_STARTED, threadId, runId } as BaseEvent;
      yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
      return;
    }
    const messageId = `${runId}-answer`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "confirmed" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  });
  await server(new MemorySpace(space), "Server", { agents: { heavy: agent } });
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  await ask(phone.runtime, "heavy", "t", "r1");
  const answering = phone.runtime.agent("heavy", { threadId: "t" });
  await answering.connectAgent();
  await answering.runAgent({ runId: "r1", resume: [{ interruptId: "i1", status: "resolved" }] });
  expect(await textsOf(phone.runtime, "t")).toContain("confirmed");
  const runs = await phone.runtime.runner().listRuns("t");
  expect(runs).toMatchObject([
    { status: "finished", device: { name: "Server" } },
    { status: "finished", device: { name: "Server" } },
  ]);
});

test("an answer of the space that is lost takes nothing back, and asks for nothing twice", async () => {
  const space = new MemoryServer();
  const executed: string[] = [];
  const counting = agentOf(async function* (input, context) {
    executed.push(input.runId);
    yield* counter(2)(input, context);
  });
  await server(new MemorySpace(space), "Server", { agents: { heavy: counting } });
  let loses = false;
  const at = new MemorySpace(space, { loseAnswer: () => loses && !(loses = false) });
  const phone = device(at, "Phone");
  await sees(phone.runtime, "heavy");
  for (const runId of ["r1", "r2", "r3"]) {
    loses = true;
    await ask(phone.runtime, "heavy", "t", runId);
  }
  expect(executed).toEqual(["r1", "r2", "r3"]);
});

test("a server that is cut off for a moment takes the run when it is back", async () => {
  const space = new MemoryServer();
  const { at, letOn } = await slowServer(space);
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  const asked = ask(phone.runtime, "heavy", "t", "r1");
  await isAsked(space);
  at.connect(false);
  letOn();
  await new Promise((resolve) => setTimeout(resolve, 100));
  at.connect(true);
  await asked;
  expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "finished" });
});

test("what one server cannot do now, another one does", async () => {
  const space = new MemoryServer();
  const busy = () => new Response(null, { status: 503 });
  await server(new MemorySpace(space), "S1", { agents: { heavy: agentOf(counter(2)) }, beforeRequestMiddleware: busy });
  const { letOn } = await slowServer(space);
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  const asked = ask(phone.runtime, "heavy", "t", "r1");
  await isAsked(space);
  letOn();
  await asked;
  expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "finished", device: { name: "Server" } });
});

test("a run whose asker has closed at once is executed all the same, and holds the thread until then", async () => {
  const space = new MemoryServer();
  const { letOn } = await slowServer(space);
  const phone = device(new MemorySpace(space), "Phone");
  const laptop = device(new MemorySpace(space), "Laptop");
  await sees(phone.runtime, "heavy");
  ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
  await isAsked(space);
  const [asks] = space.entries;
  await phone.runtime.close();
  await phone.host.close();
  // Its host takes it back as it closes in order: a device that dies does not.
  space.entries = [asks!];
  space.log = "as if it had died";
  space.bell.ring();
  letOn();
  await until(async () => expect(await runOf(laptop.runtime, "t", "r1")).toMatchObject({ status: "finished" }));
});

test("a server with the policies of its pages executes what it has, and says what it has", async () => {
  const space = new MemoryServer();
  const agentPolicies = { heavy: { placement: "server" }, ghost: { placement: "server" } } as const;
  const agents = { heavy: agentOf(counter(2)) };
  await server(new MemorySpace(space), "Server", { agents, agentPolicies });
  const phone = device(new MemorySpace(space), "Phone", { agentPolicies });
  await sees(phone.runtime, "heavy");
  await ask(phone.runtime, "heavy", "t", "r1");
  expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "finished" });
  await expect(ask(phone.runtime, "ghost", "t", "r2")).rejects.toMatchObject({ code: "offline" });
});

test("a live run is not superseded where no server could take the place", async () => {
  const space = new MemoryServer();
  const { agent, letOn } = gatedAgent();
  const phone = device(new MemorySpace(space), "Phone", {
    agents: { own: agent },
    agentPolicies: { theirs: { placement: "server" } },
  });
  const running = ask(phone.runtime, "own", "t", "r1");
  await until(async () => expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "running" }));
  const other = ask(phone.runtime, "theirs", "t", "r2", { onBusy: "supersede" });
  await expect(other).rejects.toMatchObject({ code: "offline" });
  letOn("r1");
  await running;
  expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "finished" });
});

test("the second host of a browser leaves what waits to the one that is in step, and says why it asks no server", async () => {
  const space = new MemoryServer();
  const executed: string[] = [];
  const counting = (where: string) =>
    agentOf(async function* (input, context) {
      executed.push(`${where} ${input.runId}`);
      yield* counter(2)(input, context);
    });
  const dbName = freshDb();
  const options = {
    dbName,
    agents: { both: counting("here") },
    agentPolicies: { both: { placement: "any", needsNetwork: true }, theirs: { placement: "server" } },
  } as const;
  const first = device(new MemorySpace(space), "Phone", options);
  await server(new MemorySpace(space), "Server", { agents: { both: counting("server"), theirs: counting("server") } });
  await sees(first.runtime, "both");
  const second = device(new MemorySpace(space), "Phone", options);
  await expect(ask(second.runtime, "theirs", "t", "r1")).rejects.toMatchObject({
    code: "offline",
    message: expect.stringContaining("Another host of this browser"),
  });
  await ask(first.runtime, "theirs", "t", "r2");
  expect(executed).toEqual(["server r2"]);
});

test("nonsense that is asked for is refused, and the thread is free", async () => {
  const space = new MemoryServer();
  await server(new MemorySpace(space), "Server", { agents: { heavy: agentOf(counter(2)) } });
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  await ask(phone.runtime, "heavy", "t", "r1");
  const decoder = new TextDecoder();
  const claim = space.entries.find(({ body }) => decoder.decode(body).includes('"asks"'))!;
  const message = JSON.parse(decoder.decode(claim.body)) as {
    asks: { request: { threadId: string; input: { tools: unknown[] } } };
  };
  const add = (change: (of: typeof message) => void, id: string): void => {
    const changed = structuredClone(message);
    change(changed);
    const last = space.entries.filter(({ thread }) => thread === claim.thread).at(-1)!.seq;
    space.add(claim.thread, new TextEncoder().encode(JSON.stringify(changed)), last, id);
  };
  const released = () => types(space).filter((type) => type === "release").length;
  add((it) => (it.asks.request.threadId = "another"), "a");
  await until(() => expect(released()).toBe(1));
  const understood = types(space).length;
  add((it) => (it.asks.request.input.tools = [null]), "b");
  expect(types(space)).toHaveLength(understood);
  await ask(phone.runtime, "heavy", "t", "r2");
  expect(await phone.runtime.threads.list()).toHaveLength(1);
});

test("where a server has left in the middle of a run, another one executes the next", async () => {
  const space = new MemoryServer();
  const { gate, letOn } = gated();
  const slow = agentOf(counter(3, (step) => (step === 1 ? gate : undefined)));
  const first = await server(new MemorySpace(space), "First", { agents: { heavy: slow } });
  const phone = device(new MemorySpace(space), "Phone");
  const other = device(new MemorySpace(space), "Other");
  await sees(phone.runtime, "heavy");
  const asked = ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
  await until(() => expect(types(space)).toContain("events"));
  await server(new MemorySpace(space), "Second", { agents: { heavy: agentOf(counter(1)) } });
  await first.close();
  await asked;
  letOn();
  for (const [n, { runtime }] of [phone, other].entries()) {
    await sees(runtime, "heavy");
    await until(async () => void (await ask(runtime, "heavy", "t", `next-${n}`)));
  }
  const expected = { status: "finished", device: { name: "Second" } };
  await until(async () => expect(await runOf(phone.runtime, "t", "next-1")).toMatchObject(expected));
});

test("a thread that was deleted begins anew on a server, without what was in it", async () => {
  const space = new MemoryServer();
  const seen: number[] = [];
  const heavy = agentOf((input, context) => {
    seen.push(input.messages.length);
    return counter(1)(input, context);
  });
  await server(new MemorySpace(space), "Server", { agents: { heavy } });
  const at = new MemorySpace(space);
  const [phone, laptop] = [device(at, "Phone"), device(new MemorySpace(space), "Laptop")];
  for (const { runtime } of [phone, laptop]) await sees(runtime, "heavy");
  await ask(phone.runtime, "heavy", "t", "r1");
  await until(async () => expect(await textsOf(laptop.runtime, "t")).toHaveLength(2));
  // The space hears of it when the connection is there again, together with the question.
  at.connect(false);
  await phone.runtime.threads.delete("t");
  at.connect(true);
  for (const [n, { runtime }] of [phone, laptop].entries())
    await until(async () => void (await ask(runtime, "heavy", "t", `anew-${n}`)));
  expect(seen).toEqual([1, 1, 3]);
  await until(async () => {
    expect(await textsOf(phone.runtime, "t")).toEqual(await textsOf(laptop.runtime, "t"));
    expect(await textsOf(laptop.runtime, "t")).toHaveLength(4);
  });
});

test("a server that is not told that its claim stands finds it and runs", async () => {
  const space = new MemoryServer();
  let isLost = true;
  const at = new MemorySpace(space, { loseAnswer: () => isLost && !(isLost = false) });
  await server(at, "Server", { agents: { heavy: agentOf(counter(1)) } });
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  await ask(phone.runtime, "heavy", "t", "r1");
  expect(types(space).filter((type) => type !== "events")).toEqual(["claim", "claim", "run", "end"]);
});

test("a server executes two runs of one id, of two threads, that are asked for at once", async () => {
  const space = new MemoryServer();
  const { gate, letOn } = gated();
  let calls = 0;
  await server(new MemorySpace(space), "Server", {
    agents: { heavy: agentOf(counter(2)) },
    beforeRequestMiddleware: () => {
      calls++;
      return gate;
    },
  });
  const { runtime } = device(new MemorySpace(space), "Phone");
  await sees(runtime, "heavy");
  const both = Promise.all([ask(runtime, "heavy", "t", "r1"), ask(runtime, "heavy", "u", "r1")]);
  await until(() => expect(calls).toBe(2));
  letOn();
  await both;
});

test("of two answers under one id, the one that was taken back while the space was away is not executed", async () => {
  const space = new MemoryServer();
  const answered: unknown[] = [];
  const heavy = agentOf(async function* ({ resume = [], threadId, runId }) {
    if (resume.length > 0) return void answered.push(resume[0]!.payload);
    const interrupts = [{ id: "i1", reason: "confirm" }];
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
  });
  let gate: Promise<void> | undefined;
  const host = await server(new MemorySpace(space), "Server", {
    agents: { heavy },
    beforeRequestMiddleware: () => gate,
  });
  expect(host).toBeDefined();
  const at = new MemorySpace(space);
  const phone = device(at, "Phone");
  await sees(phone.runtime, "heavy");
  await ask(phone.runtime, "heavy", "t", "r1");
  const slow = gated();
  gate = slow.gate;
  const answer = async (payload: string): Promise<void> => {
    const agent = phone.runtime.agent("heavy", { threadId: "t" });
    await agent.connectAgent();
    await agent.runAgent({ runId: "r1", resume: [{ interruptId: "i1", status: "resolved", payload }] });
  };
  const asks = (): number => types(space).filter((type) => type === "claim").length;
  const before = asks();
  const no = answer("no").catch(() => undefined);
  await until(() => expect(asks()).toBe(before + 1));
  at.connect(false);
  expect(await phone.runtime.runner().stop({ threadId: "t", runId: "r1" })).toBe(true);
  await no;
  at.connect(true);
  const yes = answer("yes").catch((error: unknown) => error);
  // Where it is taken for the first one, it is not asked for.
  await until(() => expect(asks()).toBe(before + 2)).catch(() => undefined);
  slow.letOn();
  expect(await yes).toBeUndefined();
  expect(answered).toEqual(["yes"]);
});

test("the space begins anew while a run is asked for: it is asked for again, or taken back", async () => {
  for (const isStopped of [false, true]) {
    const space = new MemoryServer();
    const { letOn } = await slowServer(space);
    const phone = device(new MemorySpace(space), "Phone");
    await sees(phone.runtime, "heavy");
    const asked = ask(phone.runtime, "heavy", "t", "r1");
    await isAsked(space);
    space.lose();
    await isAsked(space);
    if (isStopped) expect(await phone.runtime.runner().stop({ threadId: "t" })).toBe(true);
    else letOn();
    expect((await asked).newMessages).toHaveLength(isStopped ? 0 : 1);
    letOn();
    await ask(phone.runtime, "heavy", "t", "r2");
    expect(await phone.runtime.runner().isRunning({ threadId: "t" })).toBe(false);
  }
});

test("a server that closes in the middle of a run tells what came of it first, however slow the space is", async () => {
  const space = new MemoryServer();
  const { gate } = gated();
  const agents = { heavy: agentOf(counter(4, (step) => (step === 2 ? gate : undefined))) };
  const host = await server(new MemorySpace(space, { lateAnswer: () => passes(20) }), "Server", { agents });
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  const asked = ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
  await until(() => expect(types(space)).toContain("events"));
  const told: string[] = [];
  space.told.subscribe((body) => told.push(new TextDecoder().decode(body)));
  await host.close();
  expect(types(space).at(-1)).toBe("end");
  expect(told.join()).toContain('"gone"');
  await asked;
  await until(async () => expect(await runOf(phone.runtime, "t", "r1")).toMatchObject({ status: "stopped" }));
});

test("a server that closes while its connection is lost waits for another one, and tells what came of its run", async () => {
  const space = new MemoryServer();
  const { gate: waits, letOn: wait } = gated();
  const { gate: ended, letOn: end } = gated();
  const heavy = agentOf(async function* (input, context) {
    yield* counter(2)(input, context);
    wait();
    await whenAborted(context.signal);
    end();
  });
  const at = new MemorySpace(space);
  const host = await server(at, "Server", { agents: { heavy } });
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  const asked = ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
  await until(() => expect(types(space)).toContain("events"));
  await waits;
  at.connect(false);
  await firstValueFrom(host.status$.pipe(filter(({ is }) => is === "offline")));
  const closing = host.close();
  await ended;
  await passes(100);
  at.connect(true);
  await closing;
  expect(types(space).at(-1)).toBe("end");
  await asked;
});
