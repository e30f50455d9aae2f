import { EventType } from "@ag-ui/client";
import { expect, test } from "vitest";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { agentOf, inputOf, user } from "../runner/kit.js";
import { post } from "./http/kit.js";
import { runtimeWith } from "./kit.js";

const JSON_TYPE = { "Content-Type": "application/json" };

test("the event limits of a runtime hold for its agents, and for what is sent over HTTP (L19)", async () => {
  const big = agentOf(async function* () {
    yield { type: EventType.CUSTOM, name: "large", value: "x".repeat(2_000) };
  });
  const runtime = runtimeWith({ agents: { big }, eventLimits: { maxEventBytes: 1_000 } });
  const handler = createRuntimeHandler({ runtime });
  const run = (...input: Parameters<typeof inputOf>) =>
    handler(post(inputOf(...input), JSON_TYPE, "http://localhost/agent/big/run"));
  expect(await (await run("t", "r")).text()).toContain('"code":"EVENT_LIMIT"');

  const refused = await run("t", "r2", [user("u", "x".repeat(2_000))]);
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("eventLimits.maxEventBytes");
});

test("a runtime refuses limits that there are not", () => {
  const runtime = () => runtimeWith({ eventLimits: { maxEventSize: 1 } as never });
  expect(runtime).toThrow(expect.objectContaining({ code: "invalid-input" }));
});
