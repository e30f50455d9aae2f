import type { AgentRunner } from "ag-ui-local-runtime";
import type { ResolvedRequest } from "ag-ui-local-runtime/runtime";
import { createRuntimeHandler, type AgentRuntime } from "ag-ui-local-runtime/runtime";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { EMPTY } from "rxjs";
import { describe, expect, test } from "vitest";
import { inputOf, user } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { say, serve } from "./node-kit.js";
import { connectedTab, WAYS } from "./ways.js";

const JSON_TYPE = { "content-type": "application/json" };
const input = inputOf("t/1", "r", [user("u")]);

interface Case {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** The envelope that asks for the same; absent: `resource/request`. */
  readonly envelope?: { readonly method: string; readonly params?: object };
  readonly asked: Omit<ResolvedRequest, "agentIds">;
}

const id = "t%2F1";
const agentId = "coun/ter";
const agent = "coun%2Fter";
const threadId = "t/1";

const CASES: readonly Case[] = [
  { method: "GET", path: "/info", envelope: { method: "info" }, asked: { route: "info" } },
  {
    method: "POST",
    path: "/transcribe",
    body: {},
    envelope: { method: "transcribe" },
    asked: { route: "transcribe" },
  },
  ...(["run", "suggest"] as const).map((verb) => ({
    method: "POST",
    path: `/agent/${agent}/${verb}`,
    body: input,
    envelope: { method: `agent/${verb}`, params: { agentId } },
    asked: { route: `agent/${verb}` as const, agentId, threadId, runId: "r" },
  })),
  {
    method: "POST",
    path: `/agent/${agent}/connect`,
    body: input,
    envelope: { method: "agent/connect", params: { agentId } },
    asked: { route: "agent/connect", agentId, threadId },
  },
  {
    method: "POST",
    path: `/agent/${agent}/stop/${id}`,
    body: { runId: "r" },
    envelope: { method: "agent/stop", params: { agentId, threadId } },
    asked: { route: "agent/stop", agentId, threadId, runId: "r" },
  },
  { method: "GET", path: "/threads?agentId=a", asked: { route: "threads/list", agentId: "a" } },
  { method: "POST", path: "/threads/clear", body: {}, asked: { route: "threads/clear" } },
  { method: "PATCH", path: `/threads/${id}`, body: { name: "n" }, asked: { route: "threads/update", threadId } },
  { method: "DELETE", path: `/threads/${id}`, body: {}, asked: { route: "threads/delete", threadId } },
  { method: "POST", path: `/threads/${id}/archive`, body: {}, asked: { route: "threads/archive", threadId } },
  ...(["messages", "events", "state"] as const).map((what) => ({
    method: "GET",
    path: `/threads/${id}/${what}`,
    asked: { route: `threads/${what}` as const, threadId },
  })),
];

type Send = (runtime: AgentRuntime, given: Case) => Promise<unknown>;

const requestOf = ({ method, path, body }: Case, base = "http://localhost"): Request =>
  new Request(`${base}${path}`, {
    method,
    headers: body === undefined ? {} : JSON_TYPE,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

const envelopeOf = ({ method, path, body, envelope }: Case): Case => ({
  method: "POST",
  path: "",
  body: { ...(envelope ?? { method: "resource/request", params: { path, httpMethod: method } }), body },
  asked: {},
});

const SENDERS: Readonly<Record<string, Send>> = {
  "an endpoint for each route": (runtime, given) => createRuntimeHandler({ runtime })(requestOf(given)),
  "below a base path": (runtime, given) =>
    createRuntimeHandler({ runtime, basePath: "/api/x" })(requestOf(given, "http://localhost/api/x")),
  "one endpoint": (runtime, given) =>
    createRuntimeHandler({ runtime, mode: "single-route" })(requestOf(envelopeOf(given))),
  "Node's http": async (runtime, given) => {
    const { url } = await serve(createNodeHandler(createRuntimeHandler({ runtime })));
    return (await fetch(requestOf(given, url))).text();
  },
  "a relayed request": async (runtime, given) =>
    (await connectedTab(runtime).fetch(requestOf(given, "http://localhost/api"), {}, { basePath: "/api" })).text(),
  "a relayed envelope": async (runtime, given) => {
    const request = requestOf(envelopeOf(given), "http://localhost/api");
    return (await connectedTab(runtime).fetch(request, {}, { basePath: "/api" })).text();
  },
};

describe.each(Object.entries(SENDERS))("what is asked for by %s", (_, send) => {
  test.each(CASES.map((given) => [`${given.method} ${given.path}`, given] as const))("%s", async (_name, given) => {
    const seen: unknown[] = [];
    const runtime = runtimeWith({
      beforeRequestMiddleware: ({ resolved: { agentIds: _agentIds, ...asked } }) => {
        seen.push(asked);
        return new Response("seen");
      },
    });
    await send(runtime, given);
    expect(seen).toEqual([given.asked]);
  });
});

describe.each(WAYS)("the middlewares, $name", (way) => {
  test("are all shown what is asked for, and the agents of the thread", async () => {
    const seen: unknown[] = [];
    const note = async (who: string, { route, agentIds }: ResolvedRequest): Promise<void> => {
      const at = seen.push(who) - 1;
      seen[at] = [who, route, await agentIds()];
    };
    const runtime = runtimeWith({
      beforeRequestMiddleware: ({ resolved }) => note("before", resolved),
      afterRequestMiddleware: ({ resolved }) => note("after", resolved),
      filterEvent: (event, { resolved: { route, agentId: named, threadId: thread } }) => {
        if (event.type === "RUN_STARTED") seen.push(["filter", route, named, thread]);
        return event;
      },
    });
    const caller = await way.open(runtime);
    await caller.run("counter", inputOf("t", "r1"));
    await expect
      .poll(() => seen)
      .toEqual([
        ["before", "agent/run", []],
        ["filter", "agent/run", "counter", "t"],
        ["after", "agent/run", ["counter"]],
      ]);
    await caller.run("other", inputOf("t", "r2"));
    seen.length = 0;
    await caller.connect("counter", "t");
    await expect.poll(() => seen.at(-1)).toEqual(["after", "agent/connect", expect.any(Array)]);
    expect(seen[0]).toEqual(["before", "agent/connect", expect.arrayContaining(["counter", "other"])]);
  });
});

test("a runner of another make cannot tell the agents of a thread, and is not asked", async () => {
  const seen: unknown[] = [];
  const runner: AgentRunner = {
    run: () => EMPTY,
    connect: () => EMPTY,
    isRunning: () => Promise.resolve(false),
    stop: () => Promise.resolve(false),
  };
  const runtime = runtimeWith({
    runner,
    beforeRequestMiddleware: async ({ resolved }) => void seen.push(await resolved.agentIds()),
  });
  const handler = createRuntimeHandler({ runtime });
  await handler(
    new Request("http://localhost/agent/counter/connect", {
      method: "POST",
      headers: JSON_TYPE,
      body: JSON.stringify(input),
    }),
  );
  expect(seen).toEqual([undefined]);
});

describe("what is wrong with a request is told behind the middleware, which sees what can be known", () => {
  test.each<[string, RequestInit & { readonly path: string }, object, number]>([
    ["an unknown route", { path: "/nowhere", method: "GET" }, {}, 404],
    ["another method", { path: "/agent/counter/run", method: "GET" }, { route: "agent/run", agentId: "counter" }, 405],
    ["no JSON", { path: "/agent/counter/run", body: "{" }, { route: "agent/run", agentId: "counter" }, 400],
    ["no input", { path: "/agent/counter/run", body: "{}" }, { route: "agent/run", agentId: "counter" }, 400],
    [
      "another id",
      { path: "/agent/counter/run", body: '{"threadId":7}' },
      { route: "agent/run", agentId: "counter" },
      400,
    ],
    [
      "too much",
      { path: "/agent/counter/run", body: "x".repeat(200) },
      { route: "agent/run", agentId: "counter" },
      413,
    ],
    [
      "a form",
      { path: "/agent/counter/run", body: "{}", headers: { "content-type": "text/plain" } },
      { route: "agent/run", agentId: "counter" },
      415,
    ],
  ])("%s", async (_, { path, ...init }, asked, status) => {
    const seen: unknown[] = [];
    const runtime = runtimeWith({
      maxBodyBytes: 100,
      beforeRequestMiddleware: async ({ request, resolved: { agentIds: _agentIds, ...shown } }) => {
        await request.clone().text();
        seen.push(shown);
      },
    });
    const answer = await createRuntimeHandler({ runtime })(
      new Request(`http://localhost${path}`, { method: "POST", headers: JSON_TYPE, ...init }),
    );
    expect([answer.status, seen]).toEqual([status, [asked]]);
  });
});

describe("a path over Node's http", () => {
  const status = async (path: string): Promise<string> => {
    const seen: (string | undefined)[] = [];
    const runtime = runtimeWith({
      beforeRequestMiddleware: ({ resolved: { agentId: named, threadId: thread } }) => {
        seen.push(named, thread);
        return new Response(null, { status: 204 });
      },
    });
    const { port } = await serve(createNodeHandler(createRuntimeHandler({ runtime })));
    const wire = say(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    await wire.closed;
    return `${/^HTTP\/1.1 (\d+)/.exec(wire.text())?.[1]} ${seen.filter(Boolean).join(",")}`.trim();
  };

  test.each([
    "/agent/poet/../admin/run",
    "/agent/poet/%2e%2e/admin/run",
    "/agent/poet/.%2E/admin/run",
    "/agent/./admin/run",
    "/agent/%2e/run",
    "/threads/..",
    "/agent/poet\\..\\admin/run",
    "/agent\\admin\\run",
    "http://localhost/agent/poet/../admin/run",
    "http://localhost\\agent/admin/run",
    "/agent/a%5cb/run",
    "/threads/%5c../state",
  ])("that another parser might read otherwise is refused before anybody sees it: %s", async (path) => {
    expect(await status(path)).toBe("400");
  });

  test.each(["/threads/%c0%ae/state", "/threads/%E0%A4%A/state", "/threads/%/state", "//threads/t/state"])(
    "that is no route names nothing: %s",
    async (path) => {
      expect(await status(path)).toBe("204");
    },
  );

  test.each([
    ["/threads/%252e%252e/state", "%2e%2e"],
    ["/threads/a%2Fb/state", "a/b"],
    ["/threads/..a/state", "..a"],
    ["/threads/.../state", "..."],
    ["/threads/a;b=c/state", "a;b=c"],
    ["/threads/%C3%A4%F0%9F%98%80/state", "ä😀"],
    ["/threads/%25/state", "%"],
    ["/threads/%00/state", "\0"],
    ["http://localhost/threads/t/state?x=../..", "t"],
  ])("reaches every other id: %s", async (path, threadIdSeen) => {
    expect(await status(path)).toBe(`204 ${threadIdSeen}`);
  });
});
