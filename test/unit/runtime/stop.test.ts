import type { AbstractAgent } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { InMemoryAgentRunner, type AgentRunner } from "ag-ui-local-runtime";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { coreOf } from "../../../src/runtime/agent-runtime.js";
import { agentOf, inputOf, silent } from "../runner/kit.js";
import { post } from "./http/kit.js";

const JSON_TYPE = { "Content-Type": "application/json" };

test("a stop that names no run reaches the thread's own run beside a suggestion (L11)", async () => {
  const runner = new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 });
  onTestFinished(() => runner.destroy());
  const handler = createRuntimeHandler({ runtime: new AgentRuntime({ agents: { silent: agentOf(silent) }, runner }) });
  const ask = (path: string, body: unknown) => handler(post(body, JSON_TYPE, `http://localhost/agent/silent/${path}`));
  await ask("run", inputOf("t", "own"));
  const suggestion = await ask("suggest", inputOf("t", "beside"));
  const stopped = await ask("stop/t", {});
  expect(await stopped.json()).toMatchObject({ stopped: true });
  await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(false));
  expect(await suggestion.text()).toContain("RUN_FINISHED");
});

describe("a run whose agent is still loading", () => {
  /** A handler with an agent that loads when it is told to, and what it ran. */
  const slowly = (runner: AgentRunner = isolated()) => {
    let loaded!: (agent: AbstractAgent) => void;
    const loading = new Promise<AbstractAgent>((resolve) => (loaded = resolve));
    const runtime = new AgentRuntime({ agents: { slow: () => loading }, runner });
    const handler = createRuntimeHandler({ runtime });
    const ask = async (path: string, body: unknown) =>
      handler(post(body, JSON_TYPE, `http://localhost/agent/slow/${path}`));
    const stop = async (body: object, threadId = "t") =>
      ((await (await ask(`stop/${threadId}`, body)).json()) as { readonly stopped: boolean }).stopped;
    return { runner, ask, stop, load: () => loaded(agentOf(silent)) };
  };
  const isolated = (options: object = {}): InMemoryAgentRunner => {
    const runner = new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50, ...options });
    onTestFinished(() => runner.destroy());
    return runner;
  };

  test.each([
    ["by its id", { runId: "r" }],
    ["by its thread", {}],
  ])("is stopped %s once it starts, and nobody is shown an error (L11, L12)", async (_how, named) => {
    const runner = isolated();
    const { ask, stop, load } = slowly(runner);
    const answer = ask("run", inputOf("t", "r"));
    await vi.waitFor(async () => expect(await stop(named)).toBe(true));
    expect(await stop(named)).toBe(false);
    load();
    expect(await (await answer).text()).not.toContain("RUN_ERROR");
    expect(await runner.listRuns("t")).toMatchObject([{ runId: "r", status: "stopped" }]);
  });

  test("is stopped at whatever moment between its load and its start (L11)", async () => {
    const agents = { silent: () => Promise.resolve(agentOf(silent)) };
    const core = coreOf(new AgentRuntime({ agents, runner: isolated() }));
    const resolved = { agentIds: async () => [] };
    const request = {
      path: "",
      request: () => new Request("http://localhost"),
      asked: {},
      resolved,
      isReplaced: false,
    };
    // The first one loads the code of runs.
    for (let ticks = 0; ticks < 40; ticks++) {
      const threadId = `t${ticks}`;
      const run = core.startRun(request, { threadId, agentId: "silent", input: inputOf(threadId, "r") });
      if (ticks === 0) await run;
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      expect(await core.stop({ threadId, runId: "r" }), `after ${ticks} ticks`).toBe(true);
      await (
        await run
      ).ended;
    }
  });

  test("is not stopped by a stop of another run, thread or agent", async () => {
    const { runner, ask, stop, load } = slowly();
    const answer = ask("run", inputOf("t", "r"));
    expect(await stop({ runId: "another" })).toBe(false);
    expect(await stop({}, "another")).toBe(false);
    load();
    await answer;
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
  });

  test("that would wait in a queue is cancelled", async () => {
    const { runner, ask, stop, load } = slowly(isolated({ onConcurrentRun: "queue" }));
    runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "live") });
    const answer = ask("run", inputOf("t", "r"));
    await vi.waitFor(async () => expect(await stop({ runId: "r" })).toBe(true));
    load();
    expect([(await answer).status, await runner.isRunning({ threadId: "t" })]).toEqual([409, true]);
  });

  test("and then waits in a queue is left alone by a stop that does not name it", async () => {
    const runner = isolated({ onConcurrentRun: "queue" });
    const { ask, stop, load } = slowly(runner);
    load();
    runner.run({ threadId: "t", agent: agentOf(silent), input: inputOf("t", "live") });
    await vi.waitFor(async () => expect(await runner.isRunning({ threadId: "t" })).toBe(true));
    const start = vi.spyOn(runner, "start");
    const answer = ask("run", inputOf("t", "r"));
    await vi.waitFor(() => expect(start).toHaveBeenCalled());
    expect(await stop({})).toBe(true);
    expect((await answer).status).toBe(200);
    expect(await runner.listRuns("t")).toMatchObject([{ runId: "r" }, { runId: "live", status: "stopped" }]);
    // False where it is stopping already.
    expect(await stop({ runId: "r" })).toBe(true);
  });

  test("of a runner of another make is not started", async () => {
    const run = vi.fn();
    const { ask, stop, load } = slowly({ run, connect: run, isRunning: async () => false, stop: async () => false });
    const answer = ask("run", inputOf("t", "r"));
    await vi.waitFor(async () => expect(await stop({ runId: "r" })).toBe(true));
    load();
    expect([(await answer).status, run.mock.calls.length]).toEqual([409, 0]);
  });
});
