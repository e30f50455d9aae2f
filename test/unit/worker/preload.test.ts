import { expect, test, vi } from "vitest";
import { makeHost } from "../client/kit.js";

const load = vi.hoisted(() => ({ begun: 0 }));

vi.mock("../../../src/runtime/runs.js", (original) => {
  load.begun++;
  return original();
});

test("once a tab has read its thread, its host loads what runs need: a first run works without a network", async () => {
  const { connect } = makeHost();
  const agent = connect().agent("counter", { threadId: "t" });
  expect(load.begun).toBe(0);
  await agent.connectAgent();
  await vi.waitFor(() => expect(load.begun).toBe(1));
});
