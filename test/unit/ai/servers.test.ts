import { createMCPClient } from "@ai-sdk/mcp";
import { LLMock, MCPMock } from "@copilotkit/aimock";
import { EventType, HttpAgent, type Message } from "@ag-ui/client";
import { EventEncoder } from "@ag-ui/encoder";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { aiAgent, aiTool } from "ag-ui-local-runtime/ai";
import { asks, inputOf, modelAt, runOf, servedModel } from "./kit.js";

const it = servedModel();

const add = aiTool({ parameters: z.object({ a: z.number(), b: z.number() }), execute: ({ a, b }) => a + b });
const withoutIds = (messages: readonly Message[]): unknown[] => messages.map(({ id: _id, ...rest }) => rest);

test("issue 16.1: tools of an MCP server over HTTP; its client is closed with the run", async () => {
  const mcp = new MCPMock();
  mcp.addTool({
    name: "weather",
    description: "The weather",
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  });
  mcp.onToolCall("weather", (args) => `Sunny in ${(args as { city: string }).city}`);
  const url = await mcp.start();
  onTestFinished(() => mcp.stop());
  it.server.script({ calls: [{ name: "weather", args: { city: "Rome" } }] }, { text: ["Sunny"] });
  let closed = 0;
  const { messages } = await runOf(
    {
      model: it.model,
      tools: async ({ onEnd }) => {
        const client = await createMCPClient({ transport: { type: "http", url } });
        onEnd(async () => {
          await client.close();
          closed++;
        });
        return client.tools();
      },
    },
    inputOf(asks("weather?")),
  );
  expect(messages.find(({ role }) => role === "tool")?.content).toBe("Sunny in Rome");
  expect(messages.at(-1)?.content).toBe("Sunny");
  expect(closed).toBe(1);
});

test("files of a type that a provider does not take do not fail the thread's runs: the model is told that they are missing", async () => {
  it.server.script({ text: ["I see one"] });
  const file = (mimeType: string) => ({
    type: "document" as const,
    source: { type: "data" as const, value: "AAAA", mimeType },
  });
  const image = { type: "image" as const, source: { type: "data" as const, value: "AAAA", mimeType: "image/png" } };
  const thread = asks(
    { id: "u", role: "user", content: [file("application/zip"), image, file("application/x-tar")] },
    "And?",
  );
  const { end } = await runOf({ model: it.model }, inputOf(thread));
  expect(end.type).toBe(EventType.RUN_FINISHED);
  const note = { type: "text", text: "[A part of this message, of type document, cannot be read and was left out]" };
  expect(it.server.requests.map(({ body }) => body["messages"])).toMatchObject([
    [{ content: [note, { type: "image_url" }, note] }, { content: "And?" }],
  ]);
});

test("issue 16: another mock of model servers, written by others, gives the same conversation", async () => {
  const mock = new LLMock({ port: 0 });
  mock.on({ hasToolResult: true }, { content: "It is 3" });
  mock.onMessage("1+2", { toolCalls: [{ name: "add", arguments: '{"a":1,"b":2}' }] });
  await mock.start();
  onTestFinished(async () => void (await mock.stop()));
  const { messages } = await runOf({ model: modelAt(`${mock.url}/v1`), tools: { add } }, inputOf(asks("1+2?")));
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  expect(messages.at(-1)?.content).toBe("It is 3");
});

test("issue 16: the same conversation through HttpAgent to an AG-UI server", async () => {
  const script = () =>
    it.server.script(
      { reasoning: ["hm"], text: ["Let me see"], calls: [{ name: "add", args: { a: 1, b: 2 } }] },
      { text: ["It is 3"] },
    );
  const options = { model: it.model, tools: { add } };
  const server = createServer((request, response) => {
    void (async () => {
      let body = "";
      for await (const part of request) body += String(part);
      const encoder = new EventEncoder();
      response.writeHead(200, { "content-type": "text/event-stream" });
      await aiAgent(options)
        .run(JSON.parse(body))
        .forEach((event) => void response.write(encoder.encodeSSE(event)));
      response.end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  script();
  const here = await runOf(options, inputOf(asks("1+2?")));
  it.server.reset();
  script();
  const { port } = server.address() as AddressInfo; // it listens on a port
  const agent = new HttpAgent({ url: `http://127.0.0.1:${port}/`, threadId: "t", initialMessages: asks("1+2?") });
  let outcome: unknown;
  await agent.runAgent({}, { onRunFinishedEvent: ({ event }) => void (outcome = event.outcome) });
  expect(withoutIds(agent.messages.filter(({ role }) => role !== "tool"))).toEqual(
    withoutIds(here.messages.filter(({ role }) => role !== "tool")),
  );
  expect(agent.messages.find(({ role }) => role === "tool")?.content).toBe("3");
  expect(outcome).toEqual({ type: "success" });
  expect(here.end.type).toBe(EventType.RUN_FINISHED);
});
