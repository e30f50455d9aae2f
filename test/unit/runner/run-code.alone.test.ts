import { expect, test, vi } from "vitest";
import { InMemoryAgentRunner } from "../../../src/runner/in-memory-agent-runner.js";
import { agentOf, collect, counter, freshDb, inputOf, user } from "./kit.js";

const load = vi.hoisted(() => ({ fails: true }));

vi.mock("../../../src/runner/live/run-code.js", async (original) => {
  const loaded: object = await original();
  // What the module has is asked for each time that it was imported.
  return Object.defineProperty({ ...loaded }, "Execution", {
    get: () => {
      if (load.fails) throw new TypeError("Failed to fetch dynamically imported module");
      return (loaded as { Execution: unknown }).Execution;
    },
  });
});

test("where the code that runs agents cannot be loaded, nothing is started, and the next run tries again (L13)", async () => {
  const runner = new InMemoryAgentRunner({ dbName: freshDb() });
  const run = (runId: string) =>
    collect(runner.run({ threadId: "t", agent: agentOf(counter(1)), input: inputOf("t", runId, [user("u")]) }));
  await expect(run("first")).rejects.toMatchObject({
    code: "outdated",
    message: expect.stringContaining("try again when there is a network") as string,
  });
  expect(await runner.getRun("first", { threadId: "t" })).toBeUndefined();
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  load.fails = false;
  await run("second");
  expect(await runner.getRun("second", { threadId: "t" })).toMatchObject({ status: "finished" });
});
