import { EventType, type Message, type RunAgentInput } from "@ag-ui/client";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { agentOf, collect, freshDb, inputOf, makeRunner } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";

/** As a newer client may send it. */
const newer = (runId: string): RunAgentInput =>
  ({
    ...inputOf("t", runId),
    messages: [
      { id: "u", role: "user", content: [{ type: "hologram" }, { type: "text", text: "hi", tone: "kind" }], mood: 1 },
    ],
    tools: [{ name: "look", description: "d", parameters: {}, cost: 1 }],
    context: [{ description: "d", value: "v", weight: 1 }],
    future: true,
  }) as unknown as RunAgentInput; // it has more than the type

const described = {
  messages: [{ id: "u", role: "user", content: [{ type: "text", text: "hi" }] }],
  tools: [{ name: "look", description: "d", parameters: {} }],
  context: [{ description: "d", value: "v" }],
};

function observed() {
  const seen: RunAgentInput[] = [];
  const warned: unknown[] = [];
  const agent = agentOf(async function* (input) {
    seen.push({ ...input });
    yield { type: EventType.CUSTOM, name: "n", value: 1 };
  });
  const logger = { error: () => undefined, warn: (...said: readonly unknown[]) => void warned.push(said) };
  return { seen, warned, agent, logger };
}

describe("what a newer client sends and nobody knows is left out, and the run starts", () => {
  const mustBeDescribed = ({ seen, warned }: ReturnType<typeof observed>): void => {
    expect(seen).toHaveLength(2);
    for (const input of seen) {
      expect(input).toMatchObject(described);
      expect(input).not.toHaveProperty("future");
      expect(input.messages).toEqual(described.messages);
    }
    // Once, by names alone.
    expect(warned).toHaveLength(1);
    expect(JSON.stringify(warned)).toContain("mood");
  };

  test("at runner.run", async () => {
    const its = observed();
    const runner = makeRunner({ logger: its.logger });
    for (const n of [1, 2])
      await collect(runner.run({ threadId: `t${n}`, agent: its.agent.clone(), input: newer("r") }));
    mustBeDescribed(its);
    expect(await runner.getThreadMessages("t1")).toEqual(described.messages);
  });

  test("over HTTP", async () => {
    const its = observed();
    const runtime = runtimeWith({ agents: { its: its.agent }, logger: its.logger });
    const handler = createRuntimeHandler({ runtime });
    for (const n of [1, 2]) {
      const body = JSON.stringify({ ...newer(`r${n}`), threadId: `t${n}`, protocolVersion: "1.0" });
      const headers = { "content-type": "application/json" };
      const answer = await handler(new Request("http://localhost/agent/its/run", { method: "POST", body, headers }));
      expect([answer.status, (await answer.text()).includes("RUN_FINISHED")]).toEqual([200, true]);
    }
    mustBeDescribed(its);
  });

  test("from a tab", async () => {
    const its = observed();
    const host = serveRuntime({ dbName: freshDb(), agents: { its: its.agent }, logger: its.logger });
    onTestFinished(() => host.close());
    const tab = connectRuntime({ hosts: { page: async () => host.connect() } });
    onTestFinished(() => tab.close());
    for (const n of [1, 2]) {
      const request = { threadId: `t${n}`, agent: { agentId: "its" }, input: newer(`r${n}`) };
      await collect(tab.runner().run(request));
    }
    mustBeDescribed(its);
  });

  test("what is known and malformed stays invalid", async () => {
    const { agent, logger } = observed();
    const runner = makeRunner({ logger });
    for (const part of [{ type: "text", text: 5 }, { type: "image" }, { type: "binary" }, 7]) {
      const messages = [{ id: "u", role: "user", content: [part] }] as unknown as Message[];
      const run = (): unknown => runner.run({ threadId: "t", agent, input: { ...inputOf("t", "r"), messages } });
      expect(run).toThrow(expect.objectContaining({ code: "invalid-input" }));
    }
  });
});
