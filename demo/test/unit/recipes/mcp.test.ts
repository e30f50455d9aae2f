import type { Message } from "@ag-ui/client";
import { aiAgent } from "ag-ui-local-runtime/ai";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { servedModel } from "../../../../test/unit/ai/kit.js";
import {
  serveOnLoopback,
  startMcpServer,
  type McpServer,
} from "../../../../test/unit/runtime/integrations/mcp-server.js";
import { hostOf } from "../../../../test/unit/waiting/kit.js";
import { mcpApps, mcpTools, type McpToolServer } from "../../../recipes/mcp.js";

const it = servedModel();
let mcp: McpServer;
beforeAll(async () => void (mcp = await startMcpServer()));
afterAll(() => mcp.close());

/** A tab on a model with the tools of the server; `say` resolves with the thread. */
function shop(options: Partial<McpToolServer> = {}, others: Readonly<Record<string, McpToolServer>> = {}) {
  const tools = mcpTools({ sky: { url: mcp.url, ...options }, ...others });
  const assistant = aiAgent({ model: it.model, tools, settings: { maxRetries: 0 } });
  const runtime = hostOf({ agents: { assistant } }).connect({ headers: { "x-sky": "secret" } });
  const agent = runtime.agent("assistant", { threadId: "t" });
  const say = async (content: string): Promise<readonly Message[]> => {
    agent.addMessage({ id: content, role: "user", content });
    await agent.runAgent();
    return agent.messages;
  };
  return { agent, say };
}

const callOf = (name: string) => ({ calls: [{ name, args: { place: "Oslo" } }] });
const toolsAsked = () =>
  (it.server.requests.at(-1)!.body["tools"] as { function: { name: string } }[]).map((tool) => tool.function.name);

describe("tools of MCP servers for a model", () => {
  test("are called as the page's call allows, and the model goes on with the result", async () => {
    it.server.script(callOf("sky_weather"), { text: ["Take an umbrella"] });
    const { say } = shop({
      unasked: ["weather"],
      headers: ({ headers }) => ({ authorization: `Bearer ${headers["x-sky"]}` }),
    });
    const messages = await say("weather?");
    expect(messages.slice(2)).toMatchObject([
      { role: "tool", content: expect.stringContaining("Rain in Oslo") },
      { role: "assistant", content: "Take an umbrella" },
    ]);
    expect(new Set(mcp.tokens)).toEqual(new Set(["Bearer secret"]));
  });

  test("wait for a person, where nothing else is said", async () => {
    it.server.script(callOf("sky_weather"), { text: ["Take an umbrella"] });
    const { agent, say } = shop();
    const called = mcp.called.length;
    await say("weather?");
    expect(agent.pendingInterrupts).toMatchObject([{ reason: "tool_call" }]);
    expect(mcp.called).toHaveLength(called);
    const interruptId = agent.pendingInterrupts[0]!.id;
    await agent.runAgent({ resume: [{ interruptId, status: "resolved", payload: { approved: true } }] });
    expect(agent.messages.at(-1)).toMatchObject({ content: "Take an umbrella" });
    expect(mcp.called).toHaveLength(called + 1);
  });

  test("of a server that hangs are waited for no longer than the run", async () => {
    let left = (): void => undefined;
    const hasLeft = new Promise<void>((resolve) => (left = resolve));
    let asked = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const hanging = await serveOnLoopback((_, res) => {
      res.on("close", left);
      asked();
    });
    onTestFinished(() => hanging.close());
    const { agent, say } = shop({}, { hanging: { url: hanging.origin } });
    const said = say("hello");
    await isAsked;
    agent.abortRun();
    await said;
    await hasLeft;
    expect(it.server.requests).toEqual([]);
  });

  test("of a server with sessions: the run's session is ended with it, also where it is stopped", async () => {
    const methods: (string | undefined)[] = [];
    let called = (): void => undefined;
    const isCalled = new Promise<void>((resolve) => (called = resolve));
    const weather = { name: "weather", inputSchema: { type: "object" } };
    const results: Readonly<Record<string, object>> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "s", version: "1" },
      },
      "tools/list": { tools: [weather] },
    };
    const server = await serveOnLoopback(async (req, res) => {
      methods.push(req.method);
      if (req.method !== "POST") return res.writeHead(req.method === "DELETE" ? 200 : 405).end();
      let body = "";
      for await (const chunk of req) body += String(chunk);
      const { id, method } = JSON.parse(body) as { id?: number; method: string };
      if (method === "tools/call") return called();
      if (id === undefined) return res.writeHead(202).end();
      res.writeHead(200, { "content-type": "application/json", "mcp-session-id": "s" });
      const result = results[method];
      const answer = result === undefined ? { error: { code: -32_601, message: "Method not found" } } : { result };
      return res.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    });
    onTestFinished(() => server.close());
    it.server.script(callOf("kept_weather"));
    const { agent, say } = shop({}, { kept: { url: server.origin, unasked: ["weather"] } });
    const said = say("weather?");
    await isCalled;
    agent.abortRun();
    await said;
    await vi.waitFor(() => expect(methods.filter((method) => method === "DELETE")).toHaveLength(1));
  });

  test("of a server that is down are left out; those of the others are there", async () => {
    const warned = vi.spyOn(console, "warn").mockReturnValue(undefined);
    const { say } = shop({}, { gone: { url: "http://127.0.0.1:1/mcp" } });
    await say("hello");
    expect(toolsAsked()).toEqual(["sky_weather", "sky_secret"]);
    expect(warned.mock.calls.map(([text]) => String(text))).toEqual([expect.stringContaining("gone")]);
    warned.mockRestore();
  });
});

test("tools with a user interface are called by the runtime, and the thread goes on", async () => {
  it.server.script(callOf("weather"), { text: ["Take an umbrella"] });
  const assistant = aiAgent({ model: it.model, settings: { maxRetries: 0 } });
  const runtime = hostOf({ agents: { assistant }, mcpApps: mcpApps({ sky: mcp.url }) }).connect();
  const agent = runtime.agent("assistant", { threadId: "t" });
  for (const content of ["weather?", "and now?"]) {
    agent.addMessage({ id: content, role: "user", content });
    await agent.runAgent();
  }
  expect(agent.messages.slice(1)).toMatchObject([
    { role: "assistant", toolCalls: [{ function: { name: "weather" } }] },
    { role: "tool", content: "Rain in Oslo" },
    { role: "activity", activityType: "mcp-apps", content: { serverId: "sky" } },
    { role: "user", content: "and now?" },
    { role: "assistant", content: "Take an umbrella" },
  ]);
});
