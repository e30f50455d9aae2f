import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { expect, onTestFinished, test, vi } from "vitest";
import { agentOf, collect, counter, inputOf, silent } from "../runner/kit.js";
import { post } from "./http/kit.js";

const load = vi.hoisted(() => ({ waits: Promise.resolve(), begins: () => {} }));

vi.mock("../../../src/runtime/runs.js", async (original) => {
  load.begins();
  await load.waits;
  return original();
});

function runtimeOf() {
  const runner = new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 });
  const runtime = new AgentRuntime({ agents: { silent: agentOf(silent) }, runner });
  const handler = createRuntimeHandler({ runtime });
  onTestFinished(() => runner.destroy());
  const ask = (path: string, body: unknown) =>
    handler(post(body, { "Content-Type": "application/json" }, `http://localhost/agent/silent/${path}`));
  return { runner, runtime, ask };
}

test("a stop reaches a run that was asked for while the code of runs loads (L11)", async () => {
  let loaded!: () => void;
  load.waits = new Promise((resolve) => (loaded = resolve));
  const begun = new Promise<void>((resolve) => (load.begins = resolve));
  const { runner, ask } = runtimeOf();
  // So that the code of agents is there: a stop waits for it no longer than `stopGraceMs`.
  await collect(runner.run({ threadId: "other", agent: agentOf(counter(1)), input: inputOf("other", "r") }));
  const answer = ask("run", inputOf("t", "r"));
  await begun;
  const stopped = ask("stop/t", { runId: "r" });
  loaded();
  expect(await (await stopped).json()).toMatchObject({ stopped: true });
  await (await answer).text();
  // It is stopped, or cancelled where it had claimed nothing yet.
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
});

test("a runtime that was closed before its first run runs nothing beside the log either", async () => {
  const { runtime, ask } = runtimeOf();
  await runtime.close();
  const refused = await ask("suggest", inputOf("t", "r"));
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ code: "closed" });
});
