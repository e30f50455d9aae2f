import type { AgentRunner } from "ag-ui-local-runtime";
import type { BeforeRequestContext, ResolvedRequest } from "ag-ui-local-runtime/runtime";
import { createRuntimeHandler, type AgentRuntime } from "ag-ui-local-runtime/runtime";
import { createNodeHandler } from "ag-ui-local-runtime/node";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { transfer } from "comlink";
import { EMPTY } from "rxjs";
import { describe, expect, onTestFinished, test } from "vitest";
import { HostLink } from "../../../src/client/host-link.js";
import { ROUTES } from "../../../src/runtime/http/routes.js";
import { inputOf, user } from "../runner/kit.js";
import { answering, runtimeWith } from "./kit.js";
import { say, serve } from "./node-kit.js";
import { connectedTab, WAYS } from "./ways.js";

const JSON_TYPE = { "content-type": "application/json" };
const input = inputOf("t/1", "r", [user("u")]);

type Call = HostLink["call"];

interface Case {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** The envelope that asks for the same; absent: `resource/request`; null: there is none. */
  readonly envelope?: { readonly method: string; readonly params?: object } | null;
  /** The call of a tab that asks for the same, where there is one. */
  readonly call?: (call: Call, port: MessagePort) => Promise<unknown>;
  readonly asked: Omit<ResolvedRequest, "agentIds">;
}

const id = "t%2F1";
const agentId = "coun/ter";
const agent = "coun%2Fter";
const threadId = "t/1";

/** Each route, with each of its methods. */
const CASES: readonly Case[] = [
  ...["GET", "HEAD"].map((method) => ({
    method,
    path: "/info",
    // An envelope asks for it by its own method.
    envelope: method === "GET" ? { method: "info" } : null,
    asked: { route: "info" as const },
  })),
  ...["GET", "HEAD"].map((method) => ({
    method,
    path: "/health",
    envelope: null,
    asked: { route: "health" as const },
  })),
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
    ...(verb === "run" && {
      call: (call: Call, port: MessagePort) => call("run", { threadId, agentId, input }, transfer(port, [port])),
    }),
  })),
  {
    method: "POST",
    path: `/agent/${agent}/connect`,
    body: input,
    envelope: { method: "agent/connect", params: { agentId } },
    asked: { route: "agent/connect", agentId, threadId },
    call: (call, port) => call("attach", { threadId, agentId }, transfer(port, [port])),
  },
  ...[{ runId: "r" }, {}].map((body) => ({
    method: "POST",
    path: `/agent/${agent}/stop/${id}`,
    body,
    envelope: { method: "agent/stop", params: { agentId, threadId } },
    asked: { route: "agent/stop" as const, agentId, threadId, ...body },
    call: (call: Call) => call("stop", { agentId, threadId, ...body }),
  })),
  ...["GET", "HEAD"].flatMap((method) =>
    [{ agentId: "a" }, {}].map((named) => ({
      method,
      path: `/threads?${new URLSearchParams(named)}`,
      asked: { route: "threads/list" as const, ...named },
      call: (call: Call) => call("listThreads", named),
    })),
  ),
  {
    method: "POST",
    path: "/threads/clear",
    body: {},
    asked: { route: "threads/clear" },
    call: (call) => call("clearThreads"),
  },
  {
    method: "PATCH",
    path: `/threads/${id}`,
    body: { name: "n" },
    asked: { route: "threads/update", threadId },
    call: (call) => call("updateThread", { threadId, changes: { title: "n" } }),
  },
  {
    method: "DELETE",
    path: `/threads/${id}`,
    body: {},
    asked: { route: "threads/delete", threadId },
    call: (call) => call("deleteThread", { threadId }),
  },
  { method: "POST", path: `/threads/${id}/archive`, body: {}, asked: { route: "threads/archive", threadId } },
  ...["GET", "HEAD"].flatMap((method) =>
    (["Messages", "Events", "State"] as const).map((what) => ({
      method,
      path: `/threads/${id}/${what.toLowerCase()}`,
      asked: { route: `threads/${what.toLowerCase() as Lowercase<typeof what>}` as const, threadId },
      call: (call: Call) => call(`getThread${what}`, { threadId }),
    })),
  ),
];

test("there is a case for each route and each of its methods", () => {
  const inTable = Object.entries(ROUTES).flatMap(([name, { methods }]) =>
    methods.map((method) => `${method} ${name === "threads/update" && method === "DELETE" ? "threads/delete" : name}`),
  );
  expect([...new Set(CASES.map(({ method, asked }) => `${method} ${asked.route}`))].toSorted()).toEqual(
    inTable.toSorted(),
  );
});

type Send = (runtime: AgentRuntime, given: Case) => Promise<unknown>;

/** Which cases can be asked for in this way. */
interface Sender {
  readonly send: Send;
  readonly can: (given: Case) => boolean;
}

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

const any = (): boolean => true;
const byEnvelope = ({ envelope }: Case): boolean => envelope !== null;

const SENDERS: Readonly<Record<string, Sender>> = {
  "an endpoint for each route": {
    can: any,
    send: (runtime, given) => createRuntimeHandler({ runtime })(requestOf(given)),
  },
  "below a base path": {
    can: any,
    send: (runtime, given) =>
      createRuntimeHandler({ runtime, basePath: "/api/x" })(requestOf(given, "http://localhost/api/x")),
  },
  "one endpoint": {
    can: byEnvelope,
    send: (runtime, given) => createRuntimeHandler({ runtime, mode: "single-route" })(requestOf(envelopeOf(given))),
  },
  "Node's http": {
    can: any,
    send: async (runtime, given) => {
      const { url } = await serve(createNodeHandler(createRuntimeHandler({ runtime })));
      return (await fetch(requestOf(given, url))).text();
    },
  },
  "a relayed request": {
    can: any,
    send: async (runtime, given) =>
      (await connectedTab(runtime).fetch(requestOf(given, "http://localhost/api"), {}, { basePath: "/api" })).text(),
  },
  "a relayed envelope": {
    can: byEnvelope,
    send: async (runtime, given) => {
      const request = requestOf(envelopeOf(given), "http://localhost/api");
      return (await connectedTab(runtime).fetch(request, {}, { basePath: "/api" })).text();
    },
  },
  "a call of a tab": {
    can: ({ call }) => call !== undefined,
    send: async (runtime, given) => {
      const host = serveRuntime(runtime);
      const link = new HostLink({
        hosts: { page: async () => host.connect() },
        startTimeoutMs: 60_000,
        callTimeoutMs: 60_000,
        extendedLifetime: false,
      });
      const { port1, port2 } = new MessageChannel();
      onTestFinished(() => {
        link.close();
        port1.close();
      });
      // Refused, as by every other way.
      return given.call!((...asked) => link.call(...asked), port2).catch((error: unknown) => error);
    },
  },
};

const CASES_OF_SENDERS = Object.entries(SENDERS).flatMap(([name, { send, can }]) =>
  CASES.filter(can).map((given) => [name, `${given.method} ${given.path}`, send, given] as const),
);

test.each(CASES_OF_SENDERS)("what is asked for by %s: %s", async (_, _name, send, given) => {
  const seen: unknown[] = [];
  let isReady = false;
  const agents = { [agentId]: answering(() => "yes"), other: answering(() => "yes") };
  const runtime = runtimeWith({
    agents,
    beforeRequestMiddleware: async ({ resolved: { agentIds, ...asked } }) => {
      if (!isReady) return undefined;
      seen.push([asked, (await agentIds())?.toSorted()]);
      return new Response("seen");
    },
  });
  const caller = await WAYS[0]!.open(runtime);
  for (const named of [agentId, "other"]) {
    await caller.run(encodeURIComponent(named), inputOf(threadId, `of ${named}`, [user(named)]));
  }
  isReady = true;
  await send(runtime, given);
  expect(seen).toEqual([[given.asked, given.asked.threadId === undefined ? undefined : [agentId, "other"]]]);
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
    await expect.poll(() => seen.at(-1)).toEqual(["after", "agent/run", expect.any(Array)]);
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

describe("an envelope that is refused is refused alike where a middleware replaces each request", () => {
  test.each<[string, RequestInit, number]>([
    ["no POST", { method: "GET" }, 405],
    ["no JSON", { body: "{" }, 400],
    ["an unknown method", { body: '{"method":"nothing"}' }, 400],
    ["a form", { body: "{}", headers: { "content-type": "text/plain" } }, 415],
    ["too much", { body: "x".repeat(200) }, 413],
    [
      "a resource of no route",
      { body: '{"method":"resource/request","params":{"path":"/x","httpMethod":"GET"}}' },
      404,
    ],
  ])("%s", async (_, init, status) => {
    for (const options of [
      {},
      { beforeRequestMiddleware: ({ request }: BeforeRequestContext) => new Request(request) },
    ]) {
      const runtime = runtimeWith({ maxBodyBytes: 100, ...options });
      const handler = createRuntimeHandler({ runtime, mode: "single-route", basePath: "/api" });
      const asked = new Request("http://localhost/api", { method: "POST", headers: JSON_TYPE, ...init });
      expect((await handler(asked)).status).toBe(status);
    }
  });
});

test("an envelope whose body is a text is read as that, with and without a middleware", async () => {
  for (const watched of [false, true]) {
    const seen: unknown[] = [];
    const beforeRequestMiddleware = ({ resolved: { agentIds: _agentIds, ...asked } }: BeforeRequestContext): void => {
      seen.push(asked);
    };
    const runtime = runtimeWith(watched ? { beforeRequestMiddleware } : {});
    const handler = createRuntimeHandler({ runtime, mode: "single-route" });
    const ask = async (text: string): Promise<number> => {
      const body = JSON.stringify({ method: "agent/connect", params: { agentId: "counter" }, body: text });
      const answer = await handler(new Request("http://localhost/", { method: "POST", headers: JSON_TYPE, body }));
      await answer.body?.cancel();
      return answer.status;
    };
    expect([await ask(JSON.stringify(input)), await ask("no JSON")]).toEqual([200, 400]);
    const asked = { route: "agent/connect", agentId: "counter" };
    expect(seen).toEqual(watched ? [{ ...asked, threadId }, asked] : []);
  }
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
