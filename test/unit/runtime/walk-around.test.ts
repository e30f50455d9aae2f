import type { BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";
import { describe, expect, test } from "vitest";
import { collect, inputOf, user } from "../runner/kit.js";
import { authorisation } from "../../../demo/recipes/authorisation.js";
import { runtimeWith } from "./kit.js";
import { connectedTab } from "./ways.js";

const JSON_TYPE = { "content-type": "application/json" };

describe("a tab cannot show the middleware another call than the one that is answered", () => {
  test("the thread of a run is the one in the body that the middleware sees", async () => {
    const seen: unknown[] = [];
    const runtime = runtimeWith({
      beforeRequestMiddleware: async ({ request }) => {
        seen.push(((await request.clone().json()) as { readonly threadId: unknown }).threadId);
      },
    });
    const tab = connectedTab(runtime);
    await collect(tab.runner().run({ threadId: "theirs", agent: { agentId: "counter" }, input: inputOf("mine", "r") }));
    expect(seen).toEqual(["theirs"]);
  });

  test("what a run records is in the body that the middleware sees", async () => {
    let seen = "";
    const runtime = runtimeWith({
      beforeRequestMiddleware: async ({ request, path }) => {
        if (path.endsWith("/run")) seen = await request.clone().text();
      },
    });
    const tab = connectedTab(runtime);
    const persistedInputMessages = [user("u", "unseen")];
    const run = { threadId: "t", agent: { agentId: "counter" }, input: inputOf("t", "r"), persistedInputMessages };
    await collect(tab.runner().run(run));
    expect(seen).toContain("unseen");
  });

  test.each([
    ["/health", "/health"],
    ["/api/threads/me.1", "/api/threads/me.1/agent/counter/run"],
  ])("a base path of the tab's choice, %s, opens nothing", async (basePath, path) => {
    const beforeRequestMiddleware: BeforeRequestMiddleware = authorisation({
      userOf: () => "me",
      mayUse: () => true,
      owns: (me, threadId) => threadId.startsWith(`${me}.`),
    });
    const runtime = runtimeWith({ beforeRequestMiddleware });
    const tab = connectedTab(runtime);
    const input = inputOf("you.1", "r");
    const body = JSON.stringify(
      path === basePath ? { method: "agent/run", params: { agentId: "counter" }, body: input } : input,
    );
    const response = await tab.fetch(path, { method: "POST", headers: JSON_TYPE, body }, { basePath });
    await response.text();
    expect([response.status, await (await runtime.runner()).isRunning({ threadId: "you.1" })]).toEqual([403, false]);
  });

  test("a request below a base path is seen as the call of its route, and an envelope as what is in it", async () => {
    const seen: string[] = [];
    const runtime = runtimeWith({
      beforeRequestMiddleware: ({ request, path }) =>
        void seen.push(`${request.method} ${path} ${new URL(request.url).search}`),
    });
    const tab = connectedTab(runtime);
    const post = (body: unknown): RequestInit => ({ method: "POST", headers: JSON_TYPE, body: JSON.stringify(body) });
    const options = { basePath: "/api/agents" };
    expect((await tab.fetch("/api/agents/threads?limit=1", {}, options)).status).toBe(200);
    expect((await tab.fetch("/api/agents", post({ method: "info" }), options)).status).toBe(200);
    const resource = { method: "resource/request", params: { path: "/threads?limit=2", httpMethod: "GET" } };
    expect((await tab.fetch("/api/agents/", post(resource), options)).status).toBe(200);
    const run = { method: "agent/run", params: { agentId: "counter" }, body: inputOf("t", "r") };
    expect(await (await tab.fetch("/api/agents", post(run), options)).text()).toContain('"0 1 2 "');
    expect(seen).toEqual(["GET /threads ?limit=1", "GET /info ", "GET /threads ?limit=2", "POST /agent/counter/run "]);
  });
});
