import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { firstValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { agentOf, collect, inputOf, silent } from "../runner/kit.js";
import { post } from "./http/kit.js";

const load = vi.hoisted(() => ({ begins: () => {}, comes: () => {} }));

vi.mock("../../../src/runtime/runs.js", async (original) => {
  load.begins();
  await new Promise<void>((resolve) => (load.comes = resolve));
  return original();
});

test("while the code of runs does not come, other runs are stopped and the runtime is closed (L11, L13)", async () => {
  const begun = new Promise<void>((resolve) => (load.begins = resolve));
  const runner = new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 });
  const runtime = new AgentRuntime({ agents: { silent: agentOf(silent) }, runner });
  onTestFinished(() => runner.destroy());
  const handler = createRuntimeHandler({ runtime });
  const ask = (path: string, body: unknown) =>
    handler(post(body, { "Content-Type": "application/json" }, `http://localhost/agent/silent/${path}`));
  const other$ = runner.run({ threadId: "other", agent: agentOf(silent), input: inputOf("other", "r") });
  await firstValueFrom(other$);
  const answer = ask("run", inputOf("t", "r"));
  await begun;

  expect(await (await ask("stop/other", { runId: "r" })).json()).toMatchObject({ stopped: true });
  await collect(other$);
  await runtime.close();

  load.comes();
  expect(await (await answer).json()).toMatchObject({ code: "closed" });
});
