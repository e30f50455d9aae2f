import { expect, test, vi } from "vitest";
import { agentOf, collect, inputOf, makeRunner, silent, user } from "./kit.js";

const load = vi.hoisted(() => {
  let arrive = (): void => undefined;
  const arrives = new Promise<void>((resolve) => (arrive = resolve));
  return { arrives, arrive };
});

// A server that hangs: neither loaded nor failed.
vi.mock("../../../src/runner/live/run-code.js", async (original) => {
  await load.arrives;
  return original();
});

const ask = (runner: ReturnType<typeof makeRunner>, runId: string) =>
  collect(runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", runId, [user(`${runId}-u`)]) }));

// In this order: what was imported once is there.
test("a run whose code is still loading is stopped without it (L7, L13)", async () => {
  const runner = makeRunner({ stopGraceMs: 1 });
  const run = ask(runner, "r");
  run.catch(() => undefined);
  const stops = [runner.stop({ threadId: "t", runId: "r" }), runner.stop({ threadId: "t", runId: "r" })];
  expect(await Promise.all(stops)).toEqual([true, false]);
  await expect(run).rejects.toMatchObject({ code: "cancelled" });
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  expect(await runner.getRun("r", { threadId: "t" })).toBeUndefined();
});

test("a runner closes while the code of its runs is still loading (L7, L13)", async () => {
  const runner = makeRunner({ stopGraceMs: 1, onConcurrentRun: "supersede" });
  const runs = ["a", "b"].map((runId) => ask(runner, runId));
  const ends = Promise.allSettled(runs);
  await runner.close();
  expect(await ends).toMatchObject(runs.map(() => ({ status: "rejected", reason: { code: "cancelled" } })));
});

test("a run whose code comes in time is stopped as any other: what was asked is kept (L11)", async () => {
  const runner = makeRunner({ stopGraceMs: 60_000 });
  const run = ask(runner, "r");
  const stopped = runner.stop({ threadId: "t", runId: "r" });
  load.arrive();
  expect(await stopped).toBe(true);
  await run;
  expect(await runner.getRun("r", { threadId: "t" })).toMatchObject({ status: "stopped" });
});
