import { aiAgent } from "ag-ui-local-runtime/ai";
import { expect, test, vi } from "vitest";
import { makeHost } from "../client/kit.js";
import { hostOf } from "../waiting/kit.js";

const load = vi.hoisted(() => ({ begun: 0, models: 0 }));

vi.mock("../../../src/runtime/runs.js", (original) => {
  load.begun++;
  return original();
});
vi.mock("../../../src/ai/model-run.js", (original) => {
  load.models++;
  return original();
});

test("once a tab has read its thread, its host loads what runs need: a first run works without a network", async () => {
  const { connect } = makeHost();
  const agent = connect().agent("counter", { threadId: "t" });
  expect(load.begun).toBe(0);
  await agent.connectAgent();
  await vi.waitFor(() => expect(load.begun).toBe(1));
});

test("and what agents of models need", async () => {
  const { connect } = hostOf({ agents: { assistant: aiAgent({ model: "some/model" }) } });
  const agent = connect().agent("assistant", { threadId: "t" });
  expect(load.models).toBe(0);
  await agent.connectAgent();
  await vi.waitFor(() => expect(load.models).toBe(1));
});
