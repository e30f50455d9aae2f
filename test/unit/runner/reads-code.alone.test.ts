import { expect, test, vi } from "vitest";
import { InMemoryAgentRunner } from "../../../src/runner/in-memory-agent-runner.js";
import { freshDb } from "./kit.js";

const load = vi.hoisted(() => ({ fails: true }));

vi.mock("../../../src/runner/read/reads.js", async (original) => {
  const loaded: object = await original();
  // The import fails where the module is a promise that does.
  // oxlint-disable-next-line unicorn/no-thenable
  return Object.defineProperty({ ...loaded }, "then", {
    get: () => {
      if (load.fails) throw new TypeError("Failed to fetch dynamically imported module");
    },
  });
});

test("where the code of reads cannot be loaded, the caller is told, and the next read tries again (L13)", async () => {
  const runner = new InMemoryAgentRunner({ dbName: freshDb() });
  await expect(runner.listRuns("t")).rejects.toMatchObject({
    code: "outdated",
    message: expect.stringContaining("try again when there is a network") as string,
  });
  load.fails = false;
  expect(await runner.listRuns("t")).toEqual([]);
});
