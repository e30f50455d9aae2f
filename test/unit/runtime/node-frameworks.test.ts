import { gzipSync } from "node:zlib";
import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { parseRunInput, parseStopBody } from "../../../src/runtime/http/body.js";
import { json, notFound } from "../../../src/runtime/http/responses.js";
import { matchRoute, refuseMethod } from "../../../src/runtime/http/routes.js";
import { createNodeHandler } from "../../../src/runtime/node.js";
import { listening, serve, until, type Served } from "./node-kit.js";

const BASE = "/api/copilotkit";
const MAX = 1_000_000;
const input = {
  threadId: "t",
  runId: "r",
  messages: [{ id: "m", role: "user", content: "ä€😀" }],
  tools: [],
  context: [],
};

/** What a runtime's handler does with its parts. A run says one event, and goes on until its reader leaves. */
function runtimeLike(): { readonly handle: (request: Request) => Promise<Response>; readonly left: () => boolean } {
  let cancelled = false;
  let aborted = false;
  const answer = async (request: Request): Promise<Response> => {
    const route = matchRoute(new URL(request.url).pathname, BASE);
    if (route === undefined) return notFound();
    const refused = refuseMethod(request.method, route);
    if (refused !== undefined) return refused;
    if (route.name === "agent/stop") return json(await parseStopBody(request, MAX));
    if (route.name !== "agent/run") return json(route);
    const given = await parseRunInput(request, MAX);
    request.signal.addEventListener("abort", () => (aborted = true));
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(given)}\n\n`)),
      cancel: () => void (cancelled = true),
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  };
  return {
    handle: (request) =>
      answer(request).catch((error: unknown) => (error instanceof Response ? error : Promise.reject(error as Error))),
    left: () => cancelled && aborted,
  };
}

type Mount = (handle: (request: Request) => Promise<Response>) => Promise<Served>;

const parsed = express.json({ limit: MAX });

/** With Express 4 a parser leaves `{}` where the type is not its own, and the stream alone. */
const likeExpress4: express.RequestHandler = (req, _res, next) => {
  req.body ??= {};
  next();
};

const onExpress =
  (...before: readonly express.RequestHandler[]): Mount =>
  (handle) => {
    const app = express();
    for (const middleware of before) app.use(middleware);
    app.use(BASE, createNodeHandler(handle));
    return serve(app);
  };

const mounts: readonly [string, Mount][] = [
  ["http", (handle) => serve(createNodeHandler(handle))],
  ["Express", onExpress()],
  ["Express after a JSON parser", onExpress(parsed)],
  ["Express after a parser of bytes", onExpress(express.raw({ type: "*/*", limit: MAX }))],
  ["Express after a parser of text", onExpress(express.text({ type: "*/*", limit: MAX }))],
  ["Express after a parser of forms", onExpress(express.urlencoded({ extended: true }))],
  ["Express 4 after a parser of other types", onExpress(likeExpress4)],
  [
    "Express after others took their time",
    onExpress(parsed, (_req, _res, next) => void setImmediate(() => setImmediate(next))),
  ],
  [
    "Hono",
    (handle) => {
      const app = new Hono();
      app.all("/api/*", (c) => handle(c.req.raw));
      return listening(createAdaptorServer({ fetch: app.fetch, hostname: "127.0.0.1" }) as Served["server"]);
    },
  ],
];

describe.each(mounts)("on %s", (_, mount) => {
  test("a run streams until its reader leaves", async () => {
    const { handle, left } = runtimeLike();
    const { url } = await mount(handle);
    const leaving = new AbortController();
    const answer = await fetch(`${url}${BASE}/agent/a/run`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(input),
      signal: leaving.signal,
    });
    expect([answer.status, answer.headers.get("Content-Type")]).toEqual([200, "text/event-stream"]);
    const { value } = await answer.body!.getReader().read();
    expect(new TextDecoder().decode(value)).toBe(`data: ${JSON.stringify(input)}\n\n`);
    expect(left()).toBe(false);
    leaving.abort();
    await until(left);
  });

  test.each<[string, string, RequestInit, number, unknown]>([
    ["GET", "/info", {}, 200, { name: "info" }],
    ["GET", "/threads/a%2Fb/messages?x=1", {}, 200, { name: "threads/messages", threadId: "a/b" }],
    [
      "PATCH",
      "/threads/t",
      { body: "{}", headers: { "Content-Type": "application/json" } },
      200,
      { name: "threads/update", threadId: "t" },
    ],
    ["DELETE", "/threads/t", {}, 200, { name: "threads/update", threadId: "t" }],
    ["POST", "/agent/a/stop/t", {}, 200, {}],
    ["POST", "/agent/a/stop/t", { headers: { "Content-Type": "application/json" } }, 200, {}],
    [
      "POST",
      "/agent/a/stop/t",
      { body: '{"runId":"r"}', headers: { "Content-Type": "application/json" } },
      200,
      { runId: "r" },
    ],
    [
      "POST",
      "/agent/a/stop/t",
      { body: "runId=r", headers: { "Content-Type": "application/x-www-form-urlencoded" } },
      415,
      { error: "Unsupported media type" },
    ],
    [
      "POST",
      "/agent/a/stop/t",
      { body: '{"runId":"r"}', headers: { "Content-Type": "text/plain" } },
      415,
      { error: "Unsupported media type" },
    ],
    ["POST", "/info", {}, 405, { error: "Method not allowed" }],
    ["GET", "/nothing", {}, 404, { error: "Not found" }],
  ])("%s %s %j", async (method, path, init, status, body) => {
    const { url } = await mount(runtimeLike().handle);
    const answer = await fetch(`${url}${BASE}${path}`, { ...init, method });
    expect([answer.status, await answer.json()]).toEqual([status, body]);
  });
});

test("Express's JSON parser may have unpacked the body", async () => {
  const { url } = await onExpress(parsed)(runtimeLike().handle);
  const answer = await fetch(`${url}${BASE}/agent/a/stop/t`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Content-Encoding": "gzip" },
    body: gzipSync('{"runId":"r"}'),
  });
  expect([answer.status, await answer.json()]).toEqual([200, { runId: "r" }]);
});

test("a body without a type has none after a parser of text", async () => {
  const { url } = await onExpress(express.text({ type: () => true }))(runtimeLike().handle);
  const body = new TextEncoder().encode('{"runId":"r"}');
  const answer = await fetch(`${url}${BASE}/agent/a/stop/t`, { method: "POST", body });
  expect([answer.status, await answer.json()]).toEqual([200, { runId: "r" }]);
});

test("a body that was read, and kept by nobody, is no body", async () => {
  const swallow: express.RequestHandler = (req, _res, next) => void req.on("end", next).resume();
  const { url } = await onExpress(swallow)(runtimeLike().handle);
  const answer = await fetch(`${url}${BASE}/agent/a/run`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(input),
  });
  expect([answer.status, await answer.json()]).toEqual([
    400,
    { error: "Invalid request body", details: "The body is not JSON" },
  ]);
});

test("middlewares that stand before and after on Express work on", async () => {
  const app = express();
  app.use((_req, res, next) => {
    res.setHeader("X-Before", "yes");
    next();
  });
  app.use(BASE, createNodeHandler(runtimeLike().handle));
  app.get("/other", (_req, res) => void res.send("mine"));
  const { url } = await serve(app);
  expect((await fetch(`${url}${BASE}/info`)).headers.get("X-Before")).toBe("yes");
  expect(await (await fetch(`${url}/other`)).text()).toBe("mine");
});

test("a route module of Next.js is the handler under each method's name", async () => {
  const { handle } = runtimeLike();
  const { GET, POST, PATCH, DELETE } = { GET: handle, POST: handle, PATCH: handle, DELETE: handle };
  const request = (method: string, path: string): Request => new Request(`http://localhost${BASE}${path}`, { method });
  expect(await (await GET(request("GET", "/info"))).json()).toEqual({ name: "info" });
  expect(await (await POST(request("POST", "/agent/a/stop/t"))).json()).toEqual({});
  for (const [method, module] of [
    ["PATCH", PATCH],
    ["DELETE", DELETE],
  ] as const) {
    expect(await (await module(request(method, "/threads/t"))).json()).toHaveProperty("name", "threads/update");
  }
});
