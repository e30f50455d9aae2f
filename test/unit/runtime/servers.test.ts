import { readFileSync } from "node:fs";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { EventType, HttpAgent, type BaseEvent } from "@ag-ui/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { eventsOf, inputOf, postOf } from "./integrations/kit.js";
import { exchange } from "./node-kit.js";

type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

const textOf = (file: string): string => readFileSync(new URL(`../../../demo/${file}`, import.meta.url), "utf8");

/** Starts an example as `node` would, on a free port. */
async function started(load: () => Promise<{ readonly server: unknown }>): Promise<string> {
  vi.stubEnv("PORT", "0");
  vi.resetModules();
  const server = (await load()).server as Server; // Hono's may be one of HTTP/2, where it is told to
  onTestFinished(() => {
    vi.unstubAllEnvs();
    server.close();
    server.closeAllConnections();
  });
  if (!server.listening) await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
}

const EXAMPLES = {
  "node.ts": () => started(() => import("../../../demo/servers/node.js")),
  "express.ts": () => started(() => import("../../../demo/servers/express.js")),
  "hono.ts": () => started(() => import("../../../demo/servers/hono.js")),
  "next-route.ts": async () => undefined,
};

/** Calls the route as Next.js does: by the method's name, with the request and its parameters. */
async function callRoute(path: string, init: RequestInit = {}): Promise<Response> {
  const route = await import("../../../demo/servers/next-route.js");
  const handlers: Readonly<Record<string, (request: Request, context: object) => Promise<Response>>> = route;
  const request = new Request(`http://localhost${path}`, init);
  return handlers[request.method]!(request, { params: Promise.resolve({ path: path.split("/").slice(3) }) });
}

describe.each(Object.entries(EXAMPLES))("demo/servers/%s", (file, start) => {
  const opened = async (): Promise<Fetch> => {
    const origin = await start();
    return origin === undefined ? callRoute : (path, init) => fetch(origin + path, init);
  };

  test("answers what a front end asks first, and what is not there", async () => {
    const request = await opened();
    const info = await request("/api/agents/info");
    expect([info.status, await info.json()]).toMatchObject([200, { agents: { echo: { name: "echo" } }, mode: "sse" }]);
    expect((await request("/api/agents/nowhere")).status).toBe(404);
    expect((await request("/api/agents/agent/nobody/run", postOf(inputOf("t", "r")))).status).toBe(404);
  });

  test.each([
    ["localhost", 200],
    ["127.0.0.1", 200],
    ["evil.example", 403],
  ])("is not reached by a name that points at this machine (DNS rebinding): %s is %i", async (host, status) => {
    const origin = await start();
    const path = "/api/agents/info";
    const answer =
      origin === undefined
        ? `HTTP/1.1 ${(await callRoute(path, { headers: { host } })).status} `
        : await exchange(Number(new URL(origin).port), `GET ${path} HTTP/1.0\r\nHost: ${host}\r\n\r\n`);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  test("streams a run while it goes on, stops it, and has it in its thread", async () => {
    const request = await opened();
    const threadId = crypto.randomUUID();
    // Longer than any test.
    const content = "word ".repeat(10_000);
    const answer = await request("/api/agents/agent/echo/run", postOf(inputOf(threadId, "r", { content })));
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes(EventType.TEXT_MESSAGE_CONTENT)) text += (await reader.read()).value ?? "";
    const busy = await request("/api/agents/agent/echo/run", postOf(inputOf(threadId, "other")));
    expect(busy.status).toBe(409);
    const stop = await request(`/api/agents/agent/echo/stop/${threadId}`, postOf({ runId: "r" }));
    expect(await stop.json()).toMatchObject({ stopped: true });
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
    expect(text).toContain(EventType.RUN_FINISHED);
    const shown = await eventsOf(await request("/api/agents/agent/echo/connect", postOf(inputOf(threadId, "c"))));
    const snapshot = shown.find(({ type }) => type === EventType.MESSAGES_SNAPSHOT) as BaseEvent;
    expect(snapshot["messages"]).toMatchObject([{ role: "user" }, { role: "assistant" }]);
  });

  test("renames and deletes threads", async () => {
    const request = await opened();
    const threadId = crypto.randomUUID();
    await eventsOf(await request("/api/agents/agent/echo/run", postOf(inputOf(threadId, "r", { content: "hi" }))));
    const name = { ...postOf({ name: "Greeting" }), method: "PATCH" };
    expect((await request(`/api/agents/threads/${threadId}`, name)).ok).toBe(true);
    const { threads } = (await (await request("/api/agents/threads")).json()) as { threads: object[] };
    expect(threads).toContainEqual(expect.objectContaining({ id: threadId, name: "Greeting" }));
    expect((await request(`/api/agents/threads/${threadId}`, { method: "DELETE" })).ok).toBe(true);
  });

  test("is short", () => {
    expect(textOf(`servers/${file}`).split("\n").length).toBeLessThan(20);
  });
});

test("the guide exports the methods to Next.js that the file does", () => {
  const [exported] = /^export \{.*\}/m.exec(textOf("servers/next-route.ts"))!;
  expect(textOf("guides/http-and-service-worker.md")).toContain(exported);
});

test("an AG-UI client talks to it as to any agent on a server", async () => {
  const origin = await EXAMPLES["node.ts"]();
  const agent = new HttpAgent({ url: `${origin}/api/agents/agent/echo/run` });
  agent.addMessage({ id: "u", role: "user", content: "hello there" });
  await agent.runAgent();
  expect(agent.messages.at(-1)).toMatchObject({ role: "assistant", content: "hello there " });
});
