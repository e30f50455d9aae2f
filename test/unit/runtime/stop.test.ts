import { expect, onTestFinished, test, vi } from "vitest";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
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
