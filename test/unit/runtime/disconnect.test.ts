import { HttpAgent } from "@ag-ui/client";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { createRuntimeHandler, type AgentRuntimeOptions } from "ag-ui-local-runtime/runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { freshDb, inputOf } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { serve } from "./node-kit.js";

type Headers = Readonly<Record<string, string>>;

async function serving(options: Partial<AgentRuntimeOptions> = {}) {
  const runner = new InMemoryAgentRunner({ dbName: freshDb(), stopGraceMs: 50 });
  onTestFinished(() => runner.destroy());
  const runtime = runtimeWith({ runner, ...options });
  const { url, answers } = await serve(createNodeHandler(createRuntimeHandler({ runtime })));
  const run = (headers: Headers, signal?: AbortSignal): Promise<Response> =>
    fetch(`${url}/agent/silent/run`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(inputOf("t", "r")),
      ...(signal && { signal }),
    });
  /** Begins a run, reads its first bytes, and leaves. */
  const leave = async (headers: Headers = {}): Promise<void> => {
    const leaving = new AbortController();
    const response = await run(headers, leaving.signal);
    await response.body!.getReader().read();
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
    leaving.abort();
  };
  const status = async (): Promise<unknown> => (await runner.listRuns("t"))[0]?.status;
  return { url, answers, runner, run, leave, status };
}

const STOP = { "AG-UI-On-Disconnect": "stop" };

describe("a reader over HTTP that leaves in the middle of a run", () => {
  test("ends nothing, unless it said so (L11)", async () => {
    const { leave, runner, status, url, answers } = await serving();
    const stop = vi.spyOn(runner, "stop");
    await leave();
    await vi.waitFor(() => expect(answers[0]!.closed).toBe(true));
    // What the leaving sets off has happened when another request has come and gone.
    await (await fetch(`${url}/threads`)).text();
    expect(stop).not.toHaveBeenCalled();
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
    await runner.stop({ threadId: "t" });
    await vi.waitFor(async () => expect(await status()).toBe("stopped"));
  });

  test("stops it by the header", async () => {
    const { leave, status } = await serving();
    await leave(STOP);
    await vi.waitFor(async () => expect(await status()).toBe("stopped"));
  });

  test("stops it by the option; the header of a request has precedence", async () => {
    const { leave, runner, status } = await serving({ onDisconnect: "stop" });
    await leave({ "AG-UI-On-Disconnect": "continue" });
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
    await runner.stop({ threadId: "t" });
    await vi.waitFor(async () => expect(await status()).toBe("stopped"));
    const other = await serving({ onDisconnect: "stop" });
    await other.leave();
    await vi.waitFor(async () => expect(await other.status()).toBe("stopped"));
  });

  test("stops it once nobody reads it: a request that is sent again reads the same run", async () => {
    const { run, runner, status } = await serving();
    const [dead, alive] = [new AbortController(), new AbortController()];
    for (const { signal } of [dead, alive]) await (await run(STOP, signal)).body!.getReader().read();
    const stop = vi.spyOn(runner, "stop");
    dead.abort();
    // What comes later has waited for it.
    await new Promise((resolve) => setImmediate(resolve));
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
    expect(stop).not.toHaveBeenCalled();
    alive.abort();
    await vi.waitFor(async () => expect(await status()).toBe("stopped"));
    expect(stop).toHaveBeenCalledTimes(1);
  });

  test("stops it as an HttpAgent that is aborted", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => void vi.restoreAllMocks());
    const { url, runner, status } = await serving();
    const agent = new HttpAgent({ url: `${url}/agent/silent/run`, threadId: "t", headers: STOP });
    agent.addMessage({ id: "u", role: "user", content: "go" });
    const running = agent.runAgent();
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
    agent.abortRun();
    await running.catch(() => undefined);
    await vi.waitFor(async () => expect(await status()).toBe("stopped"));
  });
});

test("a reader that the runtime itself cuts off stops it as one that leaves", async () => {
  const filterEvent = (): never => {
    throw new Error("of the filter");
  };
  const { run, runner, status } = await serving({ onDisconnect: "stop", filterEvent });
  const response = await run({});
  await response.text().catch(() => undefined);
  await vi.waitFor(async () => expect(await status()).toBe("stopped"));
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
});

test("who reads a run to its end stops nothing", async () => {
  const { url, runner } = await serving({ onDisconnect: "stop" });
  const stop = vi.spyOn(runner, "stop");
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(inputOf("t", "r"));
  const response = await fetch(`${url}/agent/counter/run`, { method: "POST", headers, body });
  expect(await response.text()).toContain("RUN_FINISHED");
  expect(stop).not.toHaveBeenCalled();
});

test("what is neither is refused, and starts nothing", async () => {
  const { run, runner } = await serving();
  const refused = await run({ "AG-UI-On-Disconnect": "maybe" });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("ag-ui-on-disconnect")]);
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
});
