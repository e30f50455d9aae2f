import "fake-indexeddb/auto";
import { EventType } from "@ag-ui/client";
import { PROTOCOL_VERSION } from "@ag-ui/core";
import { connectRuntime } from "ag-ui-local-runtime/client";
import type { McpAppsOptions } from "ag-ui-local-runtime/runtime";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { callOf, eventsOf, inputOf, postOf, served, typesOf, type Served } from "./integrations/kit.js";
import { serveOnLoopback, startMcpServer, type McpServer } from "./integrations/mcp-server.js";
import { describeMcpApps } from "./integrations/mcp-apps.suite.js";

let mcp: McpServer;
beforeAll(async () => {
  mcp = await startMcpServer();
});
afterAll(() => mcp.close());

describeMcpApps("mcpApps, in Node", () => mcp);

/** An agent that says which tools it was given, and calls `weather` where it is among them. */
const caller = defineAgent(async function* (input) {
  const tools = input.tools.map(({ name }) => name);
  yield { type: EventType.CUSTOM, name: "tools", value: tools };
  if (tools.includes("weather")) yield* callOf(`${input.runId}-call`, "weather", { place: "Oslo" });
});

const use: McpAppsOptions["use"] = () => import("@ag-ui/mcp-apps-middleware");

/** The middleware prints what goes wrong with a server. */
function silenced(): void {
  const printing = vi.spyOn(console, "error").mockReturnValue(undefined);
  onTestFinished(() => printing.mockRestore());
}

describe("a server that", () => {
  test.each<[string, (req: unknown, res: import("node:http").ServerResponse) => void]>([
    ["answers with a page", (_, res) => void res.writeHead(200, { "content-type": "text/html" }).end("<p>Hello")],
    ["answers with rubbish", (_, res) => void res.writeHead(200, { "content-type": "application/json" }).end('{"a":')],
    ["refuses", (_, res) => void res.writeHead(401).end()],
    ["hangs up", (_, res) => void res.destroy()],
    ["leads elsewhere", (_, res) => void res.writeHead(307, { location: mcp.url }).end()],
  ])("%s leaves the agent without its tools, and with those of the others", async (_, listener) => {
    silenced();
    const broken = await serveOnLoopback(listener);
    onTestFinished(() => broken.close());
    const servers = [
      { type: "http", url: `${broken.origin}/mcp`, serverId: "broken" },
      { type: "http", url: mcp.url, serverId: "w" },
    ] as const;
    const { events } = served({ agents: { caller }, mcpApps: { use, servers } });
    const types = typesOf(await events("/agent/caller/run", inputOf("t", "r")));
    expect(types.slice(-3)).toEqual([EventType.TOOL_CALL_RESULT, EventType.ACTIVITY_SNAPSHOT, EventType.RUN_FINISHED]);
  });

  test("is down leaves the agent without its tools", async () => {
    silenced();
    const gone = await serveOnLoopback(() => undefined);
    await gone.close();
    const servers = [{ type: "http", url: gone.origin, serverId: "gone" }] as const;
    const { events } = served({ agents: { caller }, mcpApps: { use, servers } });
    const run = await events("/agent/caller/run", inputOf("t", "r"));
    expect(run.slice(1)).toMatchObject([{ name: "tools", value: [] }, { type: EventType.RUN_FINISHED }]);
    const proxied = { forwardedProps: { __proxiedMCPRequest: { serverId: "gone", method: "ping" } } };
    const [, answer] = await events("/agent/caller/run", inputOf("t", "p", proxied));
    expect(answer).toMatchObject({ result: { error: "Error: MCP request failed" } });
  });

  test("hangs holds no stop up, and the thread is free after it (L7, L11)", async () => {
    silenced();
    const asked = vi.fn();
    const hanging = await serveOnLoopback(asked);
    onTestFinished(() => hanging.close());
    const servers = [{ type: "http", url: hanging.origin, serverId: "w", agentId: "caller" }] as const;
    const { tab, events } = served({ agents: { caller, other: caller }, mcpApps: { use, servers } });
    const agent = tab().agent("caller", { threadId: "t" });
    const run = agent.runAgent({ runId: "r" });
    await vi.waitFor(() => expect(asked).toHaveBeenCalled());
    agent.abortRun();
    await run;
    const [ended] = await tab().runner().listRuns("t");
    expect(ended).toMatchObject({ runId: "r", status: "stopped" });
    expect(typesOf(await events("/agent/other/run", inputOf("t", "next"))).at(-1)).toBe(EventType.RUN_FINISHED);
  });

  test("hangs in the call of its tool holds no stop up, and nothing of the call stays open (L3, L7, L11)", async () => {
    silenced();
    const calls = vi.fn(() => new Promise<void>(() => undefined));
    const hanging = await startMcpServer(calls);
    onTestFinished(() => hanging.close());
    const servers = [{ type: "http", url: hanging.url, serverId: "w", allowedTools: ["weather"] }] as const;
    const { tab } = served({ agents: { caller }, mcpApps: { use, servers } });
    const agent = tab().agent("caller", { threadId: "t" });
    const run = agent.runAgent({ runId: "r" });
    await vi.waitFor(() => expect(calls).toHaveBeenCalled());
    agent.abortRun();
    await run;
    const recorded = (await tab().runner().getRunEvents("r")).map(({ event }) => event);
    expect(recorded.slice(-3)).toMatchObject([
      { type: EventType.TOOL_CALL_END },
      { type: EventType.TOOL_CALL_RESULT, toolCallId: "r-call" },
      { type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } },
    ]);
  });

  test("hangs in what a user interface asks is let go of by a stop that names it, and by no other (L11)", async () => {
    silenced();
    const calls = vi.fn(() => new Promise<void>(() => undefined));
    const hanging = await startMcpServer(calls);
    onTestFinished(() => hanging.close());
    const servers = [{ type: "http", url: hanging.url, serverId: "w", allowedTools: ["weather"] }] as const;
    const { fetch } = served({ agents: { caller }, mcpApps: { use, servers } });
    const params = { name: "weather", arguments: {} };
    const proxied = { forwardedProps: { __proxiedMCPRequest: { serverId: "w", method: "tools/call", params } } };
    const answer = eventsOf(
      await fetch("/agent/caller/run", postOf({ ...inputOf("t", "p", proxied), protocolVersion: PROTOCOL_VERSION })),
    );
    await vi.waitFor(() => expect(calls).toHaveBeenCalled());
    const stop = async (body: object): Promise<unknown> =>
      (await fetch("/agent/caller/stop/t", postOf(body))).json() as Promise<unknown>;
    expect(await stop({})).toMatchObject({ stopped: false });
    expect(await stop({ runId: "p" })).toMatchObject({ stopped: true });
    expect((await answer).at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });

  test("is asked once by a user interface whose host dies meanwhile (L13)", async () => {
    silenced();
    const calls = vi.fn(() => new Promise<void>(() => undefined));
    const hanging = await startMcpServer(calls);
    onTestFinished(() => hanging.close());
    const servers = [{ type: "http", url: hanging.url, serverId: "w", allowedTools: ["weather"] }] as const;
    const [first, second] = [0, 1].map(() => served({ agents: { caller }, mcpApps: { use, servers } })) as [
      Served,
      Served,
    ];
    const hosts = [first.host, second.host];
    const runtime = connectRuntime({ hosts: { page: async () => (hosts.shift() ?? second.host).connect() } });
    onTestFinished(() => runtime.close());
    const params = { name: "weather", arguments: {} };
    const proxied = { forwardedProps: { __proxiedMCPRequest: { serverId: "w", method: "tools/call", params } } };
    const answer = runtime.agent("caller", { threadId: "t" }).runAgent(proxied);
    await vi.waitFor(() => expect(calls).toHaveBeenCalled());
    const [asked] = await Promise.allSettled([answer, first.host.close()]);
    expect(asked).toMatchObject({ status: "rejected", reason: { code: "host-lost" } });
    // The next host is there, and was asked for nothing.
    expect(await runtime.runner().listRuns("t")).toEqual([]);
    expect(calls).toHaveBeenCalledTimes(1);
  });
});

describe("the package", () => {
  test("is loaded at the first run that uses it, once", async () => {
    const load = vi.fn(use);
    const servers = [{ type: "http", url: mcp.url, agentId: "caller" }] as const;
    const { events, fetch } = served({ agents: { caller, other: caller }, mcpApps: { use: load, servers } });
    await (await fetch("/info")).text();
    const other = await events("/agent/other/run", inputOf("o", "r"));
    expect([load.mock.calls.length, other[1]]).toMatchObject([0, { value: [] }]);
    const runs = ["1", "2"].map((n) => events("/agent/caller/run", inputOf(`t${n}`, "r")));
    for (const [, tools] of await Promise.all(runs)) expect(tools).toMatchObject({ value: ["weather"] });
    await events("/agent/caller/run", inputOf("t3", "r"));
    expect(load).toHaveBeenCalledTimes(1);
  });

  test("that cannot be loaded fails the run that needs it, and is asked for again", async () => {
    const load = vi.fn(use).mockRejectedValueOnce(new Error("no such package"));
    const { fetch } = served({ agents: { caller }, mcpApps: { use: load, servers: [{ type: "http", url: mcp.url }] } });
    const run = (): Promise<Response> => fetch("/agent/caller/run", postOf(inputOf("t", "r")));
    const failed = await run();
    expect([failed.status, await failed.json()]).toMatchObject([
      500,
      { error: "internal_error", id: expect.any(String) },
    ]);
    expect(typesOf(await eventsOf(await run())).at(-1)).toBe(EventType.RUN_FINISHED);
  });
});

test("a server's own headers reach it, and those of who asked do not", async () => {
  const own = await startMcpServer();
  onTestFinished(() => own.close());
  const headers = { authorization: "Bearer server" };
  const { events } = served({
    agents: { caller },
    mcpApps: { use, servers: [{ type: "http", url: own.url, headers }] },
  });
  await events("/agent/caller/run", inputOf("t", "r"), { authorization: "Bearer person" });
  expect(new Set(own.tokens)).toEqual(new Set(["Bearer server"]));
});
