import { expect, test } from "vitest";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import { agentOf, counter } from "../runner/kit.js";
import { until } from "../waiting/kit.js";
import { types } from "./kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, device, runOf, sees, server, STOPPED_EARLY } from "./servers-kit.js";

/*
 * Servers whose middleware says that it may let a run through later.
 */

const agents = { heavy: agentOf(counter(2)) };

/** A middleware that refuses so many calls. @returns also when it was called */
function refusing(count: number, status: number, headers: Record<string, string> = {}) {
  const calls: number[] = [];
  const beforeRequestMiddleware = (): Response | undefined => {
    calls.push(performance.now());
    return calls.length > count ? undefined : new Response(null, { status, headers });
  };
  return { calls, beforeRequestMiddleware };
}

test("a middleware that asks for more patience than the caller has is called once, and the caller is told", async () => {
  const space = new MemoryServer();
  const { calls, beforeRequestMiddleware } = refusing(Infinity, 429, { "Retry-After": "30" });
  // The caller is told some seconds before it gives up: what waits for that looks at a clock on which they pass at once.
  let ahead = 0;
  const clock: Clock = {
    ...systemClock,
    elapsed: () => systemClock.elapsed() + ahead,
    after: (ms, signal) => systemClock.after(ms === Infinity ? ms : Math.min(ms, 50), signal),
  };
  await server(new MemorySpace(space), "Server", { agents, beforeRequestMiddleware }, clock);
  const { runtime } = device(new MemorySpace(space), "Phone");
  await sees(runtime, "heavy");
  const refused = expect(ask(runtime, "heavy", "t", "r1")).rejects.toMatchObject({
    code: "refused",
    details: { status: 429, retryAfter: "30" },
  });
  await until(() => expect(calls).toHaveLength(1));
  ahead = 6_000;
  await refused;
  expect(calls).toHaveLength(1);
  expect(types(space)).toEqual(["claim", "release"]);
});

test("a middleware is called less and less often, and what it lets through at last is executed", async () => {
  const space = new MemoryServer();
  const { calls, beforeRequestMiddleware } = refusing(2, 503);
  await server(new MemorySpace(space), "Server", { agents, beforeRequestMiddleware });
  const { runtime } = device(new MemorySpace(space), "Phone");
  await sees(runtime, "heavy");
  await ask(runtime, "heavy", "t", "r1");
  expect(await runOf(runtime, "t", "r1")).toMatchObject({ status: "finished", device: { name: "Server" } });
  // Timers may be early by some ms.
  for (const [n, ms] of [490, 990].entries()) expect(calls[n + 1]! - calls[n]!).toBeGreaterThan(ms);
});

test("what is taken back while the middleware is left alone, and asked for again, is tried at once", async () => {
  const space = new MemoryServer();
  const { calls, beforeRequestMiddleware } = refusing(1, 429, { "Retry-After": "5" });
  // Whoever waits for what the middleware asked for waits for ever.
  const isPatience = (ms: number): boolean => ms > 3_000 && ms <= 5_000;
  const clock: Clock = {
    ...systemClock,
    after: (ms, signal) => systemClock.after(isPatience(ms) ? Infinity : ms, signal),
  };
  await server(new MemorySpace(space), "Server", { agents, beforeRequestMiddleware }, clock);
  const { runtime } = device(new MemorySpace(space), "Phone");
  await sees(runtime, "heavy");
  const stopped = expect(ask(runtime, "heavy", "t", "r1")).resolves.toEqual(STOPPED_EARLY);
  await until(() => expect(calls).toHaveLength(1));
  expect(await runtime.runner().stop({ threadId: "t", runId: "r1" })).toBe(true);
  await stopped;
  await ask(runtime, "heavy", "t", "r1");
  expect(await runOf(runtime, "t", "r1")).toMatchObject({ status: "finished" });
});
