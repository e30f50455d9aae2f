import type { ForwardHeadersOptions } from "ag-ui-local-runtime/runtime";
import { describe, expect, test } from "vitest";
import { forwardedHeaders } from "../../../src/runtime/forward-headers.js";
import { inputOf, textOf } from "../runner/kit.js";
import { HeadersAgent, runtimeWith } from "./kit.js";
import { WAYS } from "./ways.js";

const sent = {
  Authorization: "Bearer me",
  "X-User": "ada",
  "x-request-id": "1",
  "x-forwarded-for": "10.0.0.1",
  "x-vercel-id": "v",
  cookie: "session=1",
  accept: "text/event-stream",
};

const forwarded = (options?: ForwardHeadersOptions, own: Record<string, string> = {}) =>
  forwardedHeaders(options)(own, new Headers(sent));

test("x-* is sent on, without what proxies and platforms add, and without the caller's credentials", () => {
  expect(forwarded()).toEqual({ "x-user": "ada" });
});

test.each(["authorization", "x-access-token", "x-api-key", "x-auth-token", "x-csrf-token", "x-xsrf-token"])(
  "%s goes upstream only where it is listed",
  (name) => {
    const headers = new Headers({ [name.toUpperCase()]: "secret" });
    expect(forwardedHeaders({})({}, headers)).toEqual({});
    expect(forwardedHeaders({ useDefaultDenylist: false })({}, headers)).toEqual({});
    expect(forwardedHeaders({ allow: [name] })({}, headers)).toEqual({ [name]: "secret" });
    expect(forwardedHeaders({ allow: [name] })({ [name]: "own" }, headers)).toEqual({ [name]: "own" });
  },
);

test("the tokens by which platforms say who the caller is are not sent on", () => {
  const headers = new Headers({ "x-goog-iap-jwt-assertion": "secret", "x-ms-token-aad-access-token": "secret" });
  expect(forwardedHeaders({})({}, headers)).toEqual({});
});

test("what Connection lists is for one connection, also where it is allowed", () => {
  const headers = new Headers({ connection: "close, X-Hop", "x-hop": "1", "x-user": "ada" });
  expect(forwardedHeaders({})({}, headers)).toEqual({ "x-user": "ada" });
  expect(forwardedHeaders({ allow: ["x-hop", "x-user"] })({}, headers)).toEqual({ "x-user": "ada" });
});

test("what proxies add is sent on where that is asked for", () => {
  expect(Object.keys(forwarded({ useDefaultDenylist: false })).toSorted()).toEqual([
    "x-forwarded-for",
    "x-request-id",
    "x-user",
    "x-vercel-id",
  ]);
});

test("only what is allowed is sent on, of whatever name", () => {
  expect(forwarded({ allow: ["Cookie", "X-Request-Id"] })).toEqual({ cookie: "session=1", "x-request-id": "1" });
});

test("what is denied is never sent on", () => {
  expect(forwarded({ deny: ["X-USER"], denyPrefixes: ["X-U"] })).toEqual({});
  expect(forwarded({ allow: ["authorization", "x-user"], deny: ["authorization"] })).toEqual({ "x-user": "ada" });
});

test("an empty list, and empty names, deny nothing; as what is allowed they allow nothing", () => {
  expect(forwarded({ deny: [""], denyPrefixes: [" "] })).toEqual(forwarded());
  for (const allow of [[], [""]]) expect(forwarded({ allow })).toEqual({});
});

test("the agent's own headers win, however they are spelled", () => {
  const allow = ["authorization", "x-user"];
  expect(forwarded({ allow }, { AUTHORIZATION: "Bearer own" })).toEqual({
    AUTHORIZATION: "Bearer own",
    "x-user": "ada",
  });
});

describe.each(WAYS)("headers of a request, $name", (way) => {
  test("reach an agent that has headers, and no agent's next run", async () => {
    const runtime = runtimeWith({ agents: { headers: new HeadersAgent({ "x-own": "1" }) } });
    const toldTo = async (headers: Readonly<Record<string, string>>, runId: string) => {
      const caller = await way.open(runtime, headers);
      return JSON.parse(textOf(await caller.run("headers", inputOf(runId, runId)))) as unknown;
    };
    expect(await toldTo({ "x-user": "ada" }, "r1")).toEqual({ "x-own": "1", "x-user": "ada" });
    expect(await toldTo({ "x-team": "b" }, "r2")).toEqual({ "x-own": "1", "x-team": "b" });
  });

  test("are sent on as the options say", async () => {
    const runtime = runtimeWith({ forwardHeaders: { allow: ["x-team"] } });
    const caller = await way.open(runtime, { "x-user": "ada", "x-team": "b" });
    expect(JSON.parse(textOf(await caller.run("headers", inputOf("t", "r"))))).toEqual({ "x-team": "b" });
  });
});
