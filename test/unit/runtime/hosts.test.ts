import { connect, createServer, type OutgoingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import { RunnerError } from "ag-ui-local-runtime";
import { createNodeHandler, type NodeHandlerOptions } from "ag-ui-local-runtime/node";
import {
  createRuntimeHandler,
  type AgentRuntimeOptions,
  type RuntimeHandlerOptions,
} from "ag-ui-local-runtime/runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { inputOf } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { exchange, serve } from "./node-kit.js";

async function statusOf(
  host: string | undefined,
  options: NodeHandlerOptions = {},
  more = "",
  ofHandler: Omit<RuntimeHandlerOptions, "runtime"> = {},
): Promise<number> {
  const { port } = await serve(
    createNodeHandler(createRuntimeHandler({ runtime: runtimeWith(), ...ofHandler }), options),
  );
  const line = host === undefined ? "" : `Host: ${host}\r\n`;
  const answer = await exchange(port, `GET /info HTTP/1.0\r\n${line}${more}\r\n`);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
}

/** What a server of HTTP/2 on a loopback address says. */
async function statusOver2(
  headers: OutgoingHttpHeaders,
  options: NodeHandlerOptions = {},
  allowedHosts: readonly string[] = ["*"],
): Promise<number> {
  const handler = createNodeHandler(createRuntimeHandler({ runtime: runtimeWith(), allowedHosts }), options);
  // Of its compatibility layer, which has all that the handler uses.
  const server = createServer(handler as unknown as Parameters<typeof createServer>[0]);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const request = client.request({ ":path": "/info", ...headers });
  return new Promise((resolve, reject) => {
    request.once("response", (answer) => resolve(Number(answer[":status"])));
    request.once("error", reject);
  });
}

describe("HTTP/2, which names the host in :authority", () => {
  test.each<[string, OutgoingHttpHeaders, NodeHandlerOptions, number]>([
    ["a loopback name", { ":authority": "localhost:4000" }, {}, 200],
    ["another name on a loopback address", { ":authority": "evil.example" }, {}, 403],
    ["another name, and a loopback one as Host", { ":authority": "evil.example", host: "localhost" }, {}, 400],
    ["a listed name", { ":authority": "a.example" }, { allowedHosts: ["a.example"] }, 200],
    ["an unlisted name", { ":authority": "localhost" }, { allowedHosts: ["a.example"] }, 403],
    ["the name that its URLs have", { ":authority": "a.example" }, { host: "a.example" }, 200],
  ])("%s", async (_name, headers, options, status) => {
    expect(await statusOver2(headers, options)).toBe(status);
  });
});

describe("a server on a loopback address", () => {
  test.each([
    "localhost",
    "localhost:4000",
    "LOCALHOST.",
    "app.localhost:80",
    "127.0.0.1:4000",
    "127.8.9.1",
    "[::1]",
    "[::1]:4000",
    "[0:0:0:0:0:0:0:1]:4000",
    undefined,
  ])("answers %s", async (host) => {
    expect(await statusOf(host)).toBe(200);
  });

  test.each([
    "evil.example",
    "evil.example:4000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil-localhost",
    "0.0.0.0:4000",
    "10.0.0.1",
    "[::2]",
    "[fe80::1]",
  ])("does not answer %s: a name that points at it is no name of it", async (host) => {
    expect(await statusOf(host)).toBe(403);
  });

  test("is not talked into it by the headers of a proxy", async () => {
    const forged = "X-Forwarded-Host: localhost\r\n";
    expect(await statusOf("evil.example", {}, forged)).toBe(403);
    expect(await statusOf("evil.example", { trustProxy: true }, forged)).toBe(403);
  });

  test("answers nobody who names two hosts", async () => {
    expect(await statusOf("localhost", {}, "Host: evil.example\r\n")).toBe(400);
    expect(await statusOf("localhost", {}, "host: localhost\r\n")).toBe(400);
  });

  test("answers the name that its URLs have", async () => {
    expect(await statusOf("a.example", { host: "a.example" })).toBe(200);
    expect(await statusOf("b.example", { host: "a.example" })).toBe(403);
  });

  test("calls no handler for a host that it refuses", async () => {
    const handler = vi.fn(async () => new Response("secret"));
    const { port } = await serve(createNodeHandler(handler));
    const answer = await exchange(port, "GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n");
    expect(answer).toContain("allowedHosts");
    expect(handler).not.toHaveBeenCalled();
  });
});

describe("allowedHosts", () => {
  test.each<[string, readonly string[], string, number]>([
    ["a name, at any port", ["a.example"], "A.Example.:81", 200],
    ["another name", ["a.example"], "localhost", 403],
    ["a name at its port", ["a.example:81"], "a.example:81", 200],
    ["a name at another port", ["a.example:81"], "a.example", 403],
    ["a name at the port of its protocol, which a request need not name", ["a.example:80"], "a.example", 200],
    ["the same where the request names it", ["a.example:80"], "a.example:80", 200],
    ["a name at the port of another protocol", ["a.example:443"], "a.example", 403],
    ["an address at the port of its protocol", ["[::1]:80"], "[::1]", 200],
    ["a name below", [".example"], "a.b.example", 200],
    ["the name itself, where names below it are listed", [".a.example"], "a.example", 403],
    ["a name that ends alike", [".a.example"], "evila.example", 403],
    ["an address with brackets", ["[::1]"], "[::1]:81", 200],
    ["an address without", ["::1"], "[::1]", 200],
    ["all", ["*"], "any.example", 200],
    ["none", [], "localhost", 403],
  ])("%s", async (_, allowedHosts, host, status) => {
    expect(await statusOf(host, { allowedHosts })).toBe(status);
    const handler = createRuntimeHandler({ runtime: runtimeWith(), allowedHosts });
    expect((await handler(new Request(`http://${host}/info`))).status).toBe(status);
  });

  test("have the port of https where requests come by it", async () => {
    const allowedHosts = ["a.example:443"];
    expect(await statusOf("a.example", { allowedHosts, protocol: "https:" })).toBe(200);
    const proto = "X-Forwarded-Proto: https\r\n";
    expect(await statusOf("a.example", { allowedHosts, trustProxy: true }, proto)).toBe(200);
    expect(await statusOf("a.example", { host: "a.example:80" })).toBe(200);
    const handler = createRuntimeHandler({ runtime: runtimeWith(), allowedHosts });
    expect((await handler(new Request("https://a.example/info"))).status).toBe(200);
  });

  test("of a server behind a proxy are what the proxy says", async () => {
    const options = { allowedHosts: ["a.example"], trustProxy: true };
    expect(await statusOf("127.0.0.1", options, "X-Forwarded-Host: a.example\r\n")).toBe(200);
    expect(await statusOf("a.example", options, "X-Forwarded-Host: b.example\r\n")).toBe(403);
  });

  test.each<[string, string, number, NodeHandlerOptions?]>([
    ["a listed name", "a.example", 200],
    ["another name", "evil.example", 403],
    ["a listed name, as the proxy says", "127.0.0.1", 200, { trustProxy: true }],
    ["another name, whatever the proxy's own is", "a.example", 403, { trustProxy: true }],
  ])("are checked by what was asked for, where `host` is the name in URLs: %s", async (_, host, status, options) => {
    const hidden = { host: "url.example", ...options };
    const forwarded = options && `X-Forwarded-Host: ${status === 200 ? "a.example" : "evil.example"}\r\n`;
    const allowedHosts = ["a.example", "url.example"];
    expect(await statusOf(host, { ...hidden, allowedHosts }, forwarded)).toBe(status);
    // The same where only the handler behind it has the list.
    expect(await statusOf(host, { ...hidden, allowedHosts: ["*"] }, forwarded, { allowedHosts })).toBe(status);
  });

  test("of a handler behind HTTP/2 are checked by :authority", async () => {
    const options = { host: "url.example", allowedHosts: ["*"] };
    expect(await statusOver2({ ":authority": "a.example" }, options, ["a.example"])).toBe(200);
    expect(await statusOver2({ ":authority": "evil.example" }, options, ["a.example"])).toBe(403);
  });

  test("are checked by Host where a framework makes the URL of its own name", async () => {
    const handler = createRuntimeHandler({ runtime: runtimeWith(), allowedHosts: ["localhost"] });
    const ask = (host: string) => handler(new Request("http://localhost:3000/info", { headers: { host } }));
    expect((await ask("localhost:3000")).status).toBe(200);
    expect((await ask("evil.example")).status).toBe(403);
  });

  test.each([["http://a.example"], ["a.example/x"], [""], [7], ["*.a.example"], ["*:80"]])("%j is no host", (entry) => {
    const allowedHosts = [entry as string];
    const wrong = expect.objectContaining({ code: "invalid-input", details: { field: "allowedHosts" } });
    expect(() => createNodeHandler(async () => new Response(), { allowedHosts })).toThrow(wrong);
    expect(() => createRuntimeHandler({ runtime: runtimeWith(), allowedHosts })).toThrow(wrong);
  });
});

const secret = (): never => {
  throw new Error("the secret");
};
/** As an option that there is not does, in a function of the runtime's options. */
const misconfigured = (): never => {
  throw new RunnerError("invalid-input", { field: "the secret" }, { message: "the secret" });
};
const ofOptions = {
  "a factory of agents": (fails: () => never) => ({ agents: fails }),
  "a factory of a request's agents": (fails: () => never) => ({ agents: (_context: object) => fails() }),
  "the loading of an agent": (fails: () => never) => ({ agents: { counter: fails } }),
  "the loading of a2ui": (fails: () => never) => ({ a2ui: { use: fails } }),
  "the loading of mcpApps": (fails: () => never) => ({
    mcpApps: { use: fails, servers: [{ type: "http" as const, url: "http://localhost:9" }] },
  }),
  beforeRequestMiddleware: (fails: () => never) => ({ beforeRequestMiddleware: fails }),
};

describe.each<[string, Partial<AgentRuntimeOptions>]>(
  Object.entries(ofOptions).flatMap(([name, options]): [string, Partial<AgentRuntimeOptions>][] => [
    [name, options(secret)],
    [`${name} (an error of this library)`, options(misconfigured)],
  ]),
)("what %s throws", (_, options) => {
  const ask = async (debug: boolean) => {
    const error = vi.fn();
    const runtime = runtimeWith({
      ...options,
      debug: debug && { log: () => undefined },
      logger: { error, warn: error },
    });
    const { url } = await serve(createNodeHandler(createRuntimeHandler({ runtime })));
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify(inputOf("t", "r"));
    const answer = await fetch(`${url}/agent/counter/run`, { method: "POST", headers, body });
    return { status: answer.status, text: await answer.text(), error };
  };

  test("is a 500 that says nothing, and stands in the log by its id", async () => {
    const { status, text, error } = await ask(false);
    const told = JSON.parse(text) as { readonly id: string };
    expect([status, told]).toEqual([500, { error: "internal_error", id: expect.any(String) }]);
    expect(error).toHaveBeenCalledTimes(1);
    expect(error).toHaveBeenCalledWith(
      expect.stringContaining(told.id),
      { path: "/agent/counter/run" },
      expect.objectContaining({ message: expect.stringContaining("the secret") as string }),
    );
  });

  test("is told with debug", async () => {
    const { status, text } = await ask(true);
    expect([status, text]).toEqual([500, expect.stringContaining("the secret")]);
  });
});
