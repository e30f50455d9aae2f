import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRunInput, parseStopBody, requireJson } from "../../../../src/runtime/http/body.js";
import { matchRoute } from "../../../../src/runtime/http/routes.js";
import { envelopeElsewhere, envelopeMethod, openEnvelope } from "../../../../src/runtime/http/single-endpoint.js";
import { times } from "../../property.js";
import { expectRefusal, JSON_TYPE, post, refusal, told } from "./kit.js";

const MAX = 1000;
const BASE = "/api";
const at = "http://localhost/api";
const open = (envelope: unknown, headers: HeadersInit = JSON_TYPE): ReturnType<typeof openEnvelope> =>
  openEnvelope(post(envelope, headers, at), BASE, MAX);
const agentId = "a/b";
const threadId = "clear";
const input = { threadId: "t", runId: "r", messages: [], tools: [], context: [] };
const invalid = (message: string, status = 400): object => ({ status, body: { error: "invalid_request", message } });

describe("an envelope opens to the request of its route", () => {
  test.each<[object, object, string, string, unknown]>([
    [{ method: "info" }, { name: "info" }, "GET", "/info", undefined],
    [
      { method: "agent/run", params: { agentId }, body: input },
      { name: "agent/run", agentId },
      "POST",
      "/agent/a%2Fb/run",
      input,
    ],
    [
      { method: "agent/connect", params: { agentId }, body: input },
      { name: "agent/connect", agentId },
      "POST",
      "/agent/a%2Fb/connect",
      input,
    ],
    [
      { method: "agent/suggest", params: { agentId }, body: input },
      { name: "agent/suggest", agentId },
      "POST",
      "/agent/a%2Fb/suggest",
      input,
    ],
    [
      { method: "agent/stop", params: { agentId, threadId } },
      { name: "agent/stop", agentId, threadId },
      "POST",
      "/agent/a%2Fb/stop/%63lear",
      {},
    ],
    [
      { method: "agent/stop", params: { agentId, threadId }, body: { runId: "r" } },
      { name: "agent/stop", agentId, threadId },
      "POST",
      "/agent/a%2Fb/stop/%63lear",
      { runId: "r" },
    ],
    [{ method: "transcribe", body: { audio: "" } }, { name: "transcribe" }, "POST", "/transcribe", { audio: "" }],
    [
      { method: "resource/request", params: { path: "/threads?agentId=a&limit=2", httpMethod: "get" } },
      { name: "threads/list" },
      "GET",
      "/threads?agentId=a&limit=2",
      undefined,
    ],
    [
      { method: "resource/request", params: { path: "/threads/%63lear", httpMethod: "PATCH" }, body: { name: "n" } },
      { name: "threads/update", threadId },
      "PATCH",
      "/threads/%63lear",
      { name: "n" },
    ],
    [
      { method: "resource/request", params: { path: "/threads/t", httpMethod: "DELETE" }, body: { agentId: "a" } },
      { name: "threads/update", threadId: "t" },
      "DELETE",
      "/threads/t",
      { agentId: "a" },
    ],
    [
      { method: "resource/request", params: { path: "/threads/t/archive", httpMethod: "POST" }, body: null },
      { name: "threads/archive", threadId: "t" },
      "POST",
      "/threads/t/archive",
      undefined,
    ],
    [
      { method: "resource/request", params: { path: "/threads/t/messages", httpMethod: "GET" }, body: {} },
      { name: "threads/messages", threadId: "t" },
      "GET",
      "/threads/t/messages",
      undefined,
    ],
    [
      { method: "resource/request", params: { path: "/threads/clear", httpMethod: "POST" } },
      { name: "threads/clear" },
      "POST",
      "/threads/clear",
      undefined,
    ],
  ])("%j", async (envelope, route, method, path, body) => {
    for (const url of [at, `${at}/`]) {
      const opened = await openEnvelope(post(envelope, JSON_TYPE, url), BASE, MAX);
      expect(opened.route).toEqual(route);
      expect([opened.request.method, opened.request.url]).toEqual([method, `${at}${path}`]);
      expect(opened.request.headers.get("Content-Type")).toBe(method === "GET" ? null : "application/json");
      const text = await opened.request.text();
      expect(text === "" ? undefined : JSON.parse(text)).toEqual(body);
    }
  });

  test("which the parsers of its endpoint take", async () => {
    const run = await open({ method: "agent/run", params: { agentId }, body: input });
    expect(await parseRunInput(run.request, MAX)).toEqual(input);
    const stop = await open({ method: "agent/stop", params: { agentId, threadId } });
    expect(await parseStopBody(stop.request, MAX)).toEqual({});
  });

  test("with the headers and the signal of the outer one, but for what told of its body", async () => {
    const leaving = new AbortController();
    const request = new Request(
      post({ method: "info" }, { ...JSON_TYPE, Authorization: "Bearer x", "Content-Length": "17" }, at),
      {
        signal: leaving.signal,
      },
    );
    const opened = await openEnvelope(request, BASE, MAX);
    expect(Object.fromEntries(opened.request.headers)).toEqual({ authorization: "Bearer x" });
    leaving.abort();
    expect(opened.request.signal.aborted).toBe(true);
  });

  test.each(["/threads/clear", "/threads/t/archive"])(
    "of a page of another origin too, without a body: %s",
    async (path) => {
      const foreign = { ...JSON_TYPE, Origin: "https://page.example" };
      const { request } = await open({ method: "resource/request", params: { path, httpMethod: "POST" } }, foreign);
      expect(() => requireJson(request)).not.toThrow();
    },
  );

  test("with a body that is a text as it is", async () => {
    const opened = await open({ method: "agent/run", params: { agentId }, body: "{not json" });
    expect(await opened.request.text()).toBe("{not json");
  });

  test("at the root too", async () => {
    const { route, request } = await openEnvelope(post({ method: "info" }), "", MAX);
    expect([route, request.url]).toEqual([{ name: "info" }, "http://localhost/info"]);
  });
});

describe("an envelope is refused", () => {
  test.each(["", "/info", "/api/info", "/apis", "/api//", "/other"])("at %j", async (path) => {
    const request = post({ method: "info" }, JSON_TYPE, `http://localhost${path}`);
    expect(await refusal(openEnvelope(request, BASE, MAX))).toEqual({ status: 404, body: { error: "Not found" } });
  });

  test.each(["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])("with %s", async (method) => {
    const answer: unknown = await openEnvelope(new Request(at, { method }), BASE, MAX).catch((error: unknown) => error);
    expect((answer as Response).headers.get("Allow")).toBe("POST");
    expect(await told(answer as Response)).toEqual({ status: 405, body: { error: "Method not allowed" } });
  });

  test.each<[HeadersInit]>([
    [{}],
    [{ "Content-Type": "text/plain" }],
    [{ "Content-Type": "text/plain; application/json" }],
  ])("sent as %j", async (headers) => {
    const bytes = new TextEncoder().encode('{"method":"info"}');
    expect(await refusal(open(bytes, headers))).toEqual(invalid("An envelope is sent as JSON", 415));
  });

  const methods =
    "method must be one of info, agent/run, agent/connect, agent/suggest, agent/stop, transcribe, resource/request";
  test.each<[string, unknown]>([
    ["The envelope is not JSON", "{"],
    ["The envelope is not JSON", '{"method":"info","__proto__":{}}'],
    ["The envelope is no object", "[]"],
    ["The envelope is no object", "null"],
    [methods, {}],
    [methods, { method: null }],
    [methods, { method: ["info"] }],
    [methods, { method: "inspector/metadata" }],
    [methods, { method: "toString" }],
    ["params must be an object", { method: "info", params: "x" }],
    ["params must be an object", { method: "agent/run", params: null, body: input }],
    ["params.agentId must be a text", { method: "agent/run", body: input }],
    ["params.agentId must be a text", { method: "agent/run", params: { agentId: " " }, body: input }],
    ["params.agentId must be a text", { method: "agent/stop", params: { threadId } }],
    ["params.threadId must be a text", { method: "agent/stop", params: { agentId, threadId: 7 } }],
    ["params has an id that is not valid", { method: "agent/stop", params: { agentId, threadId: ".." } }],
    ["params has an id that is not valid", '{"method":"agent/connect","params":{"agentId":"\\ud800"},"body":{}}'],
    ["body is missing", { method: "agent/run", params: { agentId } }],
    ["body is missing", { method: "transcribe", body: null }],
    ["body is missing", { method: "agent/stop", params: { agentId, threadId }, body: null }],
    ["params.path must be a text", { method: "resource/request", params: { httpMethod: "GET" } }],
    ["params.httpMethod must be a text", { method: "resource/request", params: { path: "/threads" } }],
    ...[
      "threads",
      "//evil.example/threads",
      "/\\evil.example/threads",
      "/\t/evil.example/threads",
      "http://evil.example/threads",
      "///",
    ].map((path): [string, unknown] => [
      "path must be below the base path",
      { method: "resource/request", params: { path, httpMethod: "GET" } },
    ]),
  ])("%s: %j", async (message, envelope) => {
    expect(await refusal(open(envelope))).toEqual(invalid(message));
  });

  test.each([
    "/info",
    "/agent/a/run",
    "/transcribe",
    "/threads/subscribe",
    "/x",
    "/../threads",
    "/.//threads",
    "/threads//",
  ])("where its resource is %s", async (path) => {
    const envelope = { method: "resource/request", params: { path, httpMethod: "POST" }, body: {} };
    const { status } = await refusal(open(envelope));
    expect(status).toBe(path.includes("/.") ? 400 : 404);
  });

  test.each(["POST", "TRACE", "a b", "HEAD\n"])("where its resource has no method %j", async (httpMethod) => {
    const envelope = { method: "resource/request", params: { path: "/threads", httpMethod } };
    expect(await refusal(open(envelope))).toEqual({ status: 405, body: { error: "Method not allowed" } });
  });

  test("where it is too large", async () => {
    expect(await refusal(open({ method: "info", body: " ".repeat(MAX) }))).toEqual({
      status: 413,
      body: { error: "Payload too large" },
    });
  });
});

describe("where each route has its own endpoint", () => {
  test("an envelope is known, and told what to change", async () => {
    expect(await envelopeMethod(post({ method: "agent/run" }), MAX)).toBe("agent/run");
    expect(await told(envelopeElsewhere())).toEqual({
      status: 404,
      body: {
        error: "Not found",
        code: "single_route_envelope_against_multi_route_runtime",
        message: expect.stringContaining("useSingleEndpoint"),
      },
    });
  });

  test.each<[Request]>([
    [new Request(at)],
    [post({ method: "info" }, { "Content-Type": "text/plain" })],
    [post({ method: "other" })],
    [post({ method: { toString: "info" } })],
    [post("null")],
    [post("{")],
    [post({ method: "info", body: " ".repeat(MAX) })],
  ])("anything else is none", async (request) => {
    expect(await envelopeMethod(request, MAX)).toBeUndefined();
  });
});

test("whatever the envelope, it opens to a request that its route matches, or is refused with JSON", async () => {
  const id = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("..", "clear", "a/b", "\ud800", "%2F"),
    fc.integer(),
  );
  const path = fc.oneof(
    fc.webPath(),
    fc
      .array(fc.oneof(fc.constantFrom("threads", "..", ".", "clear", "%", "\\", "?", "state", ""), fc.string()))
      .map((parts) => `/${parts.join("/")}`),
  );
  const envelope = fc.record(
    {
      method: fc.oneof(
        fc.constantFrom("info", "agent/run", "agent/stop", "agent/connect", "transcribe", "resource/request"),
        fc.string(),
      ),
      params: fc.record({
        agentId: id,
        threadId: id,
        path,
        httpMethod: fc.constantFrom("GET", "POST", "PATCH", "delete", "x y"),
      }),
      body: fc.oneof(fc.json(), fc.constant(null), fc.constant({}), fc.integer()),
    },
    { requiredKeys: ["method"] },
  );
  let openedOnce = false;
  await fc.assert(
    fc.asyncProperty(
      fc.oneof({ weight: 9, arbitrary: envelope }, { weight: 1, arbitrary: fc.json() }),
      async (given) => {
        const result = await openEnvelope(post(given, JSON_TYPE, at), BASE, 10_000).catch((error: unknown) => error);
        if (!(typeof result === "object" && result !== null && "route" in result)) return expectRefusal(result);
        openedOnce = true;
        const { route, request } = result as Awaited<ReturnType<typeof openEnvelope>>;
        expect(matchRoute(new URL(request.url).pathname, BASE)).toEqual(route);
        expect(request.url.startsWith(`${at}/`)).toBe(true);
      },
    ),
    times(500),
  );
  expect(openedOnce).toBe(true);
});
