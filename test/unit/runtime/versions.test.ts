import { EventType } from "@ag-ui/client";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { expect, test } from "vitest";
import { agentOf, inputOf } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";

test("a reader is served the version that it names; what an older one is not given is warned of once", async () => {
  const warned: string[] = [];
  const logger = { error: () => undefined, warn: (message: string) => void warned.push(message) };
  const stopped = agentOf(async function* ({ threadId, runId }) {
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "cancelled" } };
  });
  const handler = createRuntimeHandler({ runtime: runtimeWith({ agents: { stopped }, logger }) });
  let runs = 0;
  const read = async (protocolVersion?: string): Promise<string> => {
    const body = JSON.stringify({
      ...inputOf("t", `r${runs++}`),
      ...(protocolVersion !== undefined && { protocolVersion }),
    });
    const headers = { "content-type": "application/json" };
    return (await handler(new Request("http://localhost/agent/stopped/run", { method: "POST", body, headers }))).text();
  };
  for (const version of ["1.0", "draft", "1", "1.0.0", "9.9"]) {
    expect(await read(version)).toContain('"cancelled"');
  }
  expect(warned).toHaveLength(1);
  for (const version of [undefined, "0.0.59", undefined]) {
    const text = await read(version);
    expect(text).not.toContain('"cancelled"');
    expect(text).not.toContain("protocolVersion");
  }
  expect(warned).toHaveLength(2);
  expect(warned[1]).toMatch(/stopped.*Upgrade/);
});
