import { EventType, type RunAgentInput } from "@ag-ui/client";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import {
  createRuntimeHandler,
  type AgentRuntime,
  type AgentRuntimeOptions,
  type AskedMcpServer,
  type EndedRun,
  type McpAppsServer,
  type MeasuredRun,
} from "ag-ui-local-runtime/runtime";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { inputOf, silent, agentOf } from "../runner/kit.js";
import { startMcpServer, type McpServer } from "./integrations/mcp-server.js";
import { runtimeWith } from "./kit.js";
import { serve } from "./node-kit.js";
import { connectedTab } from "./ways.js";

const headers = { "content-type": "application/json" };
const suggesting = { toolChoice: { type: "function", function: { name: "copilotkitSuggest" } } };

/** Asks over Node's http. The answer's body is read by whoever wants it; all are let go of at the end. */
async function asking(runtime: AgentRuntime) {
  const { url } = await serve(createNodeHandler(createRuntimeHandler({ runtime })));
  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  return (path: string, input: RunAgentInput): Promise<Response> =>
    fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(input), signal: leaving.signal });
}

const suggestion = (threadId: string, runId = "r"): RunAgentInput => ({
  ...inputOf(threadId, runId),
  forwardedProps: suggesting,
});

describe("runs beside the log", () => {
  test("have a cap in each thread and in all, whatever they are asked by (L19)", async () => {
    const ask = await asking(runtimeWith({ unrecordedRuns: { maxPerThread: 2, maxInAll: 3 } }));
    const first = await ask("/agent/silent/run", suggestion("t", "1"));
    await ask("/agent/silent/suggest", inputOf("t", "2"));
    const refused = await ask("/agent/silent/run", suggestion("t", "3"));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    await ask("/agent/silent/run", suggestion("u", "1"));
    expect((await ask("/agent/silent/suggest", inputOf("v", "1"))).status).toBe(429);
    // A place is free once its reader has left.
    await first.body!.cancel();
    await vi.waitFor(async () => expect((await ask("/agent/counter/suggest", inputOf("v", "2"))).status).toBe(200));
  });

  test("leave no place behind where their agent cannot be started, or is not there", async () => {
    const ask = await asking(runtimeWith({ unrecordedRuns: { maxInAll: 1 }, agents: { silent: agentOf(silent) } }));
    for (const path of ["/agent/nobody/suggest", "/agent/nobody/suggest"]) {
      expect((await ask(path, inputOf("t", "r"))).status).toBe(404);
    }
    expect((await ask("/agent/silent/suggest", inputOf("t", "r"))).status).toBe(200);
  });

  test.each(["silent", "counter"])(
    "leave no place behind where nobody ever reads their answer, live or over: %s (L14)",
    async (agentId) => {
      // Not over a connection, which takes what it is given.
      const handler = createRuntimeHandler({
        runtime: runtimeWith({ unrecordedRuns: { maxInAll: 1 }, readerTimeoutSeconds: 0.05 }),
      });
      const ask = (path: string, body: object): Promise<Response> =>
        handler(
          new Request(`http://localhost${path}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          }),
        );
      const path = `/agent/${agentId}/suggest`;
      const unread = await ask(path, inputOf("t", "1"));
      await vi.waitFor(async () => expect((await ask(path, inputOf("t", "2"))).status).toBe(200), 10_000);
      await expect(unread.text()).rejects.toMatchObject({ code: "timeout" });
    },
  );

  test("a tab is refused in the same words", async () => {
    const runtime = runtimeWith({ unrecordedRuns: { maxInAll: 0 } });
    const agent = connectedTab(runtime).agent("counter", { threadId: "t" });
    await expect(agent.runAgent({ forwardedProps: suggesting })).rejects.toMatchObject({
      code: "refused",
      details: { status: 429 },
    });
  });

  test.each<[string, Partial<AgentRuntimeOptions>]>([
    ["maxRunMs", { maxRunMs: 20 }],
    ["maxRunMs of a runner that is given", { runner: new InMemoryAgentRunner({ store: "isolated", maxRunMs: 20 }) }],
    ["unrecordedRuns.maxRunMs", { maxRunMs: 600_000, unrecordedRuns: { maxRunMs: 20 } }],
  ])("last no longer than %s", async (_, options) => {
    const ask = await asking(runtimeWith(options));
    const text = await (await ask("/agent/silent/suggest", inputOf("t", "r"))).text();
    expect(text).toMatch(/"RUN_(FINISHED|ERROR)"/);
  });

  test("are measured", async () => {
    const started: MeasuredRun[] = [];
    const ended: EndedRun[] = [];
    const metrics = {
      runStarted: (run: MeasuredRun) => started.push(run),
      runEnded: (run: EndedRun) => ended.push(run),
    };
    const ask = await asking(runtimeWith({ metrics }));
    await (await ask("/agent/counter/run", suggestion("t"))).text();
    const run = { threadId: "t", runId: "r", agentId: "counter", unrecorded: true };
    await vi.waitFor(() => expect(ended).toMatchObject([{ ...run, status: "finished" }]));
    expect(started).toEqual([run]);
  });

  test("go through the middleware, as what they are asked by", async () => {
    const seen: unknown[] = [];
    const runtime = runtimeWith({ beforeRequestMiddleware: ({ resolved }) => void seen.push(resolved.route) });
    const ask = await asking(runtime);
    await (await ask("/agent/counter/run", suggestion("t"))).text();
    await (await ask("/agent/counter/suggest", inputOf("t", "r"))).text();
    expect(seen).toEqual(["agent/run", "agent/suggest"]);
  });
});

describe("what a page asks of an MCP server", () => {
  let calls = 0;
  let mcp: McpServer;
  beforeAll(async () => {
    mcp = await startMcpServer(() => void calls++);
  });
  afterAll(() => mcp.close());

  const proxied = (method: string, params: object, serverId = "w"): RunAgentInput => ({
    ...inputOf("t", "p"),
    forwardedProps: { __proxiedMCPRequest: { serverId, method, params } },
  });
  const weather = proxied("tools/call", { name: "weather", arguments: { place: "Rome" } });

  async function askingServer(server: Partial<McpAppsServer>, options: Partial<AgentRuntimeOptions> = {}) {
    calls = 0;
    const asked: AskedMcpServer[] = [];
    const logger = { error: vi.fn(), warn: vi.fn(), info: vi.fn() };
    const ran = vi.fn();
    const agent = agentOf(async function* (...given) {
      ran();
      yield* silent(...given);
    });
    const runtime = runtimeWith({
      agents: { agent },
      mcpApps: {
        use: () => import("@ag-ui/mcp-apps-middleware"),
        servers: [{ type: "http", url: mcp.url, serverId: "w", ...server }],
      },
      metrics: { mcpRequest: (request) => asked.push(request) },
      logger,
      ...options,
    });
    const ask = await asking(runtime);
    const resultOf = async (input: RunAgentInput, path = "/agent/agent/run"): Promise<unknown> => {
      const text = await (await ask(path, input)).text();
      const events = text.split("\n").filter((line) => line.startsWith("data: "));
      const last = JSON.parse(events.at(-1)!.slice(6)) as { readonly type: string; readonly result?: unknown };
      expect(last.type).toBe(EventType.RUN_FINISHED);
      return last.result;
    };
    return { asked, logger, ran, resultOf };
  }

  test("is answered for a tool that the server's configuration lists, logged and counted", async () => {
    const { asked, logger, ran, resultOf } = await askingServer({ allowedTools: ["weather"] });
    expect(await resultOf(weather)).toMatchObject({ content: [{ text: "Rain in Rome" }] });
    const told = {
      threadId: "t",
      runId: "p",
      agentId: "agent",
      method: "tools/call",
      tool: "weather",
      isAllowed: true,
    };
    expect(asked).toEqual([told]);
    expect(logger.info).toHaveBeenCalledWith(expect.any(String), told);
    expect(ran).not.toHaveBeenCalled();
  });

  test.each<[string, Partial<McpAppsServer>, RunAgentInput, string]>([
    ["a tool where none is listed", {}, weather, "/agent/agent/run"],
    ["a tool that is not listed", { allowedTools: ["other"] }, weather, "/agent/agent/run"],
    ["a tool of another agent's server", { allowedTools: ["weather"], agentId: "x" }, weather, "/agent/agent/run"],
    ["a tool as a suggestion", {}, weather, "/agent/agent/suggest"],
    [
      "a tool as both",
      {},
      { ...weather, forwardedProps: { ...(weather.forwardedProps as object), ...suggesting } },
      "/agent/agent/run",
    ],
    ["a tool without a name", { allowedTools: ["weather"] }, proxied("tools/call", {}), "/agent/agent/run"],
    ["another method", { allowedTools: ["weather"] }, proxied("tools/list", {}), "/agent/agent/run"],
    [
      "a resource that is no user interface",
      { allowedTools: ["weather"] },
      proxied("resources/read", { uri: "file:///etc/passwd" }),
      "/agent/agent/run",
    ],
  ])("is refused for %s: no server is asked, and no agent is run", async (_, server, input, path) => {
    const { asked, logger, ran, resultOf } = await askingServer(server);
    expect(await resultOf(input, path)).toEqual({ error: expect.stringContaining("not allowed") });
    expect([asked.length, asked[0]?.isAllowed, logger.warn.mock.calls.length]).toEqual([1, false, 1]);
    expect(ran).not.toHaveBeenCalled();
    expect(calls).toBe(0);
  });

  test("is refused where there are no servers: it is no way to run an agent beside the log", async () => {
    const { ran, resultOf } = await askingServer({}, { mcpApps: undefined as never });
    expect(await resultOf(weather)).toEqual({ error: expect.stringContaining("not allowed") });
    expect(ran).not.toHaveBeenCalled();
  });
});
