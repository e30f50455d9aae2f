import { EventType, type BaseEvent } from "@ag-ui/client";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import { agentOf, counter, fastClock, inputOf, whenAborted } from "../runner/kit.js";
import { post } from "../runtime/http/kit.js";
import { runtimeWith } from "../runtime/kit.js";
import { gatedAgent, until } from "../waiting/kit.js";
import { deviceOn } from "./kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, device, runOf, sees, server } from "./servers-kit.js";

/*
 * Agents that only servers have, and that nobody has named: a device knows of them by what it hears.
 */

const heavy = agentOf(counter(2));

/** Asks as an HTTP front end does. */
function frontEnd(at: MemorySpace) {
  const handler = createRuntimeHandler({
    runtime: runtimeWith({ agents: {}, sync: { space: at, device: "Front end" } }),
  });
  return (path: string, body: unknown) =>
    handler(post(body, { "Content-Type": "application/json" }, `http://localhost/agent/heavy/${path}`));
}

describe("a host that has just begun, and has not heard of anybody", () => {
  test.for([undefined, "supersede", "queue"])(
    "has a server execute what a tab asks for (onBusy: %s)",
    async (onBusy) => {
      const space = new MemoryServer();
      await server(new MemorySpace(space), "Server", { agents: { heavy } });
      const at = new MemorySpace(space, { isConnecting: true });
      const { runtime } = device(at, "Phone");
      const asked = ask(runtime, "heavy", "t", "r1", { ...(onBusy !== undefined && { onBusy }) });
      setTimeout(() => at.connect(true), 100);
      await asked;
      await until(async () => expect(await runOf(runtime, "t", "r1")).toMatchObject({ status: "finished" }));
    },
  );

  test("has a server execute what an HTTP front end asks for", async () => {
    const space = new MemoryServer();
    await server(new MemorySpace(space), "Server", { agents: { heavy } });
    const request = frontEnd(new MemorySpace(space));
    const response = await request("run", inputOf("t", "r1"));
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("RUN_FINISHED");
  });

  test("refuses an agent that nobody has, and offline at once", async () => {
    const at = new MemorySpace(new MemoryServer());
    const { runtime } = device(at, "Phone");
    await expect(ask(runtime, "nobody", "t", "r1")).rejects.toMatchObject({ code: "unknown-agent" });
    at.connect(false);
    // Whoever waits for servers to be heard waits for ever.
    const { after } = systemClock;
    const waiting = vi
      .spyOn(systemClock, "after")
      .mockImplementation((ms, signal) => after(ms > 1_000 ? Infinity : ms, signal));
    onTestFinished(() => waiting.mockRestore());
    await expect(ask(runtime, "nobody", "t", "r2")).rejects.toMatchObject({ code: "unknown-agent" });
  });
});

test("a run whose turn comes while its only server starts again waits for it", async () => {
  const space = new MemoryServer();
  const first = await server(new MemorySpace(space), "Server", { agents: { heavy } });
  const { agent, letOn } = gatedAgent();
  const { runtime } = device(new MemorySpace(space), "Phone", { agents: { own: agent } });
  await sees(runtime, "heavy");
  const running = ask(runtime, "own", "t", "r1");
  await until(async () => expect(await runOf(runtime, "t", "r1")).toMatchObject({ status: "running" }));
  const queued = ask(runtime, "heavy", "t", "r2", { onBusy: "queue" });
  await until(async () => expect(await runtime.waiting.list("t")).toHaveLength(1));
  await first.close();
  letOn("r1");
  await running;
  await until(async () => expect(await runtime.waiting.list("t")).toMatchObject([{ reason: { is: "retry" } }]));
  await server(new MemorySpace(space), "Server", { agents: { heavy } });
  await queued;
  expect(await runOf(runtime, "t", "r2")).toMatchObject({ status: "finished", device: { name: "Server" } });
});

test("an HTTP front end reads and stops what a server executed while the space is away", async () => {
  const space = new MemoryServer();
  await server(new MemorySpace(space), "Server", { agents: { heavy } });
  const at = new MemorySpace(space);
  const request = frontEnd(at);
  await (await request("run", inputOf("t", "r1"))).text();
  at.connect(false);
  const read = await request("connect", inputOf("t", "c1"));
  expect([read.status, await read.text()]).toEqual([200, expect.stringContaining("MESSAGES_SNAPSHOT")]);
  expect((await request("stop/t", {})).status).toBe(200);
});

test("a server goes on with a broken run without the headers that its agent needs in pages", async () => {
  const space = new MemoryServer();
  const clock = fastClock(50);
  const executed: string[] = [];
  const agent = agentOf(async function* ({ runId }, { signal }) {
    const isFirst = executed.push(runId) === 1;
    const messageId = `${runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "said" } as BaseEvent;
    // The first one never comes to its end.
    if (isFirst) await whenAborted(signal);
    yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  });
  const agentPolicies = { heavy: { placement: "server", recovery: "auto", needsHeaders: ["x-key"] } } as const;
  const first = new MemorySpace(space);
  const options = { agents: { heavy: agent }, agentPolicies, stopGraceMs: 50 };
  await server(first, "S1", options, clock);
  const phone = device(new MemorySpace(space), "Phone", { agentPolicies });
  const laptop = deviceOn(new MemorySpace(space), "Laptop", { clock });
  onTestFinished(laptop.close);
  await sees(phone.runtime, "heavy");
  ask(phone.runtime, "heavy", "t", "r1").catch(() => undefined);
  await until(async () => expect(await laptop.runner.getRun("r1", { threadId: "t" })).toBeDefined());
  await server(new MemorySpace(space), "S2", options, clock);
  first.connect(false);
  await until(async () =>
    expect(await laptop.runner.getRun("r1~2", { threadId: "t" })).toMatchObject({ status: "finished" }),
  );
});
