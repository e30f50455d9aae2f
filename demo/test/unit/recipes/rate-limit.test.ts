import type { BeforeRequestContext } from "ag-ui-local-runtime/runtime";
import { describe, expect, test } from "vitest";
import { rateLimit, type RateLimitOptions } from "../../../recipes/rate-limit.js";
import { inputOf } from "../../../../test/unit/runner/kit.js";
import { runtimeWith } from "../../../../test/unit/runtime/kit.js";
import { connectedTab, WAYS } from "../../../../test/unit/runtime/ways.js";

/** A limit whose time stands still until it is moved. */
function limited(options: RateLimitOptions) {
  let time = 0;
  const beforeRequestMiddleware = rateLimit({ ...options, now: () => time });
  return { runtime: runtimeWith({ beforeRequestMiddleware }), wait: (ms: number) => (time += ms) };
}

describe.each(WAYS)("rateLimit, $name", (way) => {
  test("lets a burst through, and then as many as there is time for", async () => {
    const { runtime, wait } = limited({ perMinute: 60, burst: 2 });
    const caller = await way.open(runtime);
    await caller.run("counter", inputOf("t", "r"));
    await caller.list();
    await expect(caller.list()).rejects.toMatchObject({ status: 429 });
    wait(999);
    await expect(caller.list()).rejects.toMatchObject({ status: 429 });
    wait(1);
    expect(await caller.list()).toEqual(["t"]);
    wait(60_000);
    await caller.list();
    await caller.list();
    await expect(caller.list()).rejects.toMatchObject({ status: 429 });
  });

  test("counts each caller for itself", async () => {
    const callerOf = (request: Request) => request.headers.get("x-user") ?? "";
    const { runtime } = limited({ perMinute: 1, callerOf });
    const ada = await way.open(runtime, { "x-user": "ada" });
    const bob = await way.open(runtime, { "x-user": "bob" });
    await ada.list();
    await expect(ada.list()).rejects.toMatchObject({ status: 429 });
    await bob.list();
  });
});

test("says when to come back", async () => {
  const middleware = rateLimit({ perMinute: 2, burst: 1, now: () => 0 });
  const tab = connectedTab(runtimeWith({ beforeRequestMiddleware: middleware }));
  await tab.threads.list();
  await expect(tab.threads.list()).rejects.toMatchObject({ details: { status: 429, retryAfter: "30" } });
});

test("remembers no more than ten thousand callers: who was silent for longest begins anew", async () => {
  let caller = 0;
  const limit = rateLimit({ perMinute: 1, now: () => 0, callerOf: () => String(caller) });
  // The runtime is not looked at.
  const ask = async () => {
    const said = await limit({ request: new Request("http://localhost") } as BeforeRequestContext);
    return said && "status" in said ? said.status : undefined;
  };
  expect([await ask(), await ask()]).toEqual([undefined, 429]);
  for (caller = 1; caller < 10_000; caller++) await ask();
  caller = 0;
  expect(await ask()).toBe(429);
  for (caller = 10_000; caller < 20_000; caller++) await ask();
  caller = 0;
  expect(await ask()).toBeUndefined();
});
