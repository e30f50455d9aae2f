import { EventType } from "@ag-ui/client";
import { createRuntimeHandler, type AgentRuntime, type DebugOptions } from "ag-ui-local-runtime/runtime";
import { afterEach, expect, test, vi } from "vitest";
import { runtimeWith } from "./kit.js";

afterEach(() => vi.restoreAllMocks());

type Line = readonly [message: string, details: Readonly<Record<string, unknown>>];

/** Runs an agent over HTTP to its end. @returns the answer's status */
async function run(runtime: AgentRuntime, agentId = "teller"): Promise<number> {
  const body = JSON.stringify({
    threadId: "t",
    runId: "r",
    messages: [{ id: "u", role: "user", content: "a secret" }],
  });
  const headers = { "content-type": "application/json" };
  const answer = await createRuntimeHandler({ runtime })(
    new Request(`http://localhost/agent/${agentId}/run`, { method: "POST", headers, body }),
  );
  await answer.text();
  return answer.status;
}

/** What is printed of one run. */
async function printed(options: DebugOptions): Promise<readonly Line[]> {
  const lines: Line[] = [];
  const runtime = runtimeWith({ debug: { ...options, log: (...line) => void lines.push(line) } });
  expect(await run(runtime)).toBe(200);
  return lines;
}

test("nothing is printed where nobody asked for it", async () => {
  const debug = vi.spyOn(console, "debug").mockImplementation(() => undefined);
  await run(runtimeWith());
  await run(runtimeWith({ debug: false }));
  expect(debug).not.toHaveBeenCalled();
});

test("true prints to the console", async () => {
  const debug = vi.spyOn(console, "debug").mockImplementation(() => undefined);
  await run(runtimeWith({ debug: true }));
  expect(debug).toHaveBeenCalledWith("[ag-ui-local-runtime] request", { path: "/agent/teller/run" });
});

test("requests, runs and the types of events are printed, and nothing that a person wrote", async () => {
  const lines = await printed({});
  expect(lines.map(([message]) => message)).toEqual(
    expect.arrayContaining(["request", "run started", "event", "run ended"]),
  );
  const events = lines.filter(([message]) => message === "event").map(([, { type }]) => type);
  expect(events[0]).toBe(EventType.RUN_STARTED);
  expect(events.at(-1)).toBe(EventType.RUN_FINISHED);
  expect(JSON.stringify(lines)).not.toContain("a secret");
});

test("verbose prints whole events", async () => {
  expect(JSON.stringify(await printed({ verbose: true }))).toContain("a secret");
});

test("each kind can be left out", async () => {
  expect((await printed({ lifecycle: false })).every(([message]) => message === "event")).toBe(true);
  expect((await printed({ events: false })).some(([message]) => message === "event")).toBe(false);
});

test("a log that throws changes nothing", async () => {
  const log = vi.fn(() => {
    throw new Error("disk full");
  });
  expect(await run(runtimeWith({ debug: { log } }))).toBe(200);
  expect(log).toHaveBeenCalled();
});

test("a runtime that can run nothing says so: 503, and why", async () => {
  const runtime = runtimeWith();
  await runtime.close();
  const answer = await createRuntimeHandler({ runtime })(new Request("http://localhost/health"));
  expect([answer.status, await answer.json()]).toEqual([
    503,
    { status: "failed", error: expect.objectContaining({ code: "closed" }) },
  ]);
});
