import { describe, expect, test, vi } from "vitest";
import { logging, type LogLine } from "../../../recipes/logging.js";
import { inputOf, user } from "../../../../test/unit/runner/kit.js";
import { runtimeWith } from "../../../../test/unit/runtime/kit.js";
import { WAYS } from "../../../../test/unit/runtime/ways.js";

describe.each(WAYS)("logging, $name", (way) => {
  test("has a line for each run and each request, without what was said", async () => {
    const lines: LogLine[] = [];
    const caller = await way.open(runtimeWith(logging((line) => lines.push(line))));
    await caller.run("teller", inputOf("t", "r", [user("u", "what was said")]));
    await caller.list();
    await vi.waitFor(() => expect(lines.length).toBe(3));
    expect(JSON.stringify(lines)).not.toContain("what was said");
    const run = { threadId: "t", runId: "r" };
    expect(lines).toContainEqual({ is: "request", path: "/agent/teller/run", status: 200, ...run });
    expect(lines).toContainEqual({ is: "request", path: "/threads", status: 200 });
    expect(lines).toContainEqual({
      is: "run",
      ...run,
      agentId: "teller",
      status: "finished",
      events: 5,
      durationMs: expect.any(Number),
    });
  });

  test("says of an error of which kind it is, and not its words", async () => {
    const lines: LogLine[] = [];
    const agents = {
      broken: () => {
        throw new TypeError("what was said");
      },
    };
    const caller = await way.open(runtimeWith({ agents, ...logging((line) => lines.push(line)) }));
    await expect(caller.run("broken", inputOf("t", "r"))).rejects.toThrow();
    await expect(caller.run("nobody", inputOf("t", "r"))).rejects.toThrow();
    await vi.waitFor(() => expect(lines.length).toBe(4));
    expect(JSON.stringify(lines)).not.toContain("what was said");
    expect(lines.flatMap(({ is, kind }) => (is === "error" ? [kind] : []))).toEqual(["TypeError", "unknown-agent"]);
  });
});
