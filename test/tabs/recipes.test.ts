import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { modelServer, type ModelServer } from "../openai/server.js";
import { startMcpServer, type McpServer } from "../unit/runtime/integrations/mcp-server.js";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";

/*
 * The recipes for agents (demo/recipes), in a real worker. What they do is tested in Node, by demo/test/unit/recipes.
 */

const given = useBrowser();
let server: ModelServer;
let mcp: McpServer;
let tabs: Tab[] = [];
let threads = 0;

beforeAll(async () => {
  server = await modelServer();
  mcp = await startMcpServer();
});
afterAll(async () => {
  await server.close();
  await mcp.close();
});
beforeEach(() => server.reset());
afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
  tabs = [];
});

const worker = (): string => `recipe-${process.pid}#${mcp.url}`;

async function open(agent: string, thread: string): Promise<Tab> {
  const query = new URLSearchParams({ worker: worker(), thread, agent, url: server.url });
  const tab = await given.browser.newTab(`${inject("pages")}recipe-agents.html?${query.toString()}`);
  tabs.push(tab);
  await tab.waitFor(() => "recipe" in window && window.recipe.view().isReady);
  return tab;
}

const fresh = (): string => `thread-${threads++}`;
const ask = (tab: Tab, content: string): Promise<void> => tab.evaluate((it) => window.recipe.ask(it), content);
/** Waits until no run is live and the last message is this one. @returns all of them */
async function says(tab: Tab, text: string): Promise<readonly string[]> {
  await tab.waitFor((wanted) => {
    const { run, said } = window.recipe.view();
    return run === "idle" && said.at(-1) === wanted;
  }, text);
  return (await tab.evaluate(() => window.recipe.view())).said;
}

test("a graph of LangGraph.js asks in one tab and is answered in another (issue 16)", async () => {
  const thread = fresh();
  const [a, b] = [await open("shop", thread), await open("shop", thread)];
  await ask(a, "order lamp");
  await b.waitFor(() => window.recipe.view().questions.length === 1);
  expect(await b.evaluate(() => window.recipe.view())).toMatchObject({
    said: ["user: order lamp", "assistant: I order."],
    questions: ["Order a lamp?"],
  });
  await b.evaluate(() => window.recipe.answer(true));
  for (const tab of [a, b]) {
    expect(await says(tab, "assistant: Done: ordered lamp")).toEqual([
      "user: order lamp",
      "assistant: I order.",
      "tool: ordered lamp",
      "assistant: Done: ordered lamp",
    ]);
  }
});

test.runIf(inject("engine") === "chromium")(
  "a graph whose worker ended goes on at the node that was under way (issue 16)",
  async () => {
    const tab = await open("shop", fresh());
    await tab.evaluate(() => window.recipe.hold("shop-is-closed"));
    await ask(tab, "order lamp");
    await tab.waitFor(() => window.recipe.view().said.at(-1) === "assistant: I order.");
    await given.browser.endSharedWorkers(worker());
    await tab.evaluate(() => window.recipe.letGo());
    await tab.waitFor(() => window.recipe.view().questions.length === 1);
    expect((await tab.evaluate(() => window.recipe.view())).said).toEqual(["user: order lamp", "assistant: I order."]);
    await tab.evaluate(() => window.recipe.answer(false));
    await says(tab, "assistant: Done: no lamp");
  },
);

test("a model calls a tool of an MCP server of another origin, and goes on with the result (issue 16)", async () => {
  server.script({ calls: [{ name: "sky_weather", args: { place: "Oslo" } }] }, { text: ["Take an umbrella"] });
  const tab = await open("tools", fresh());
  await ask(tab, "weather?");
  await says(tab, "assistant: Take an umbrella");
  expect(JSON.stringify(server.requests.at(-1)!.body)).toContain("Rain in Oslo");
});

test("tools with a user interface, and surfaces, are in every tab (issue 16)", async () => {
  const surface = { surfaceId: "s", components: [{ id: "root", component: "Column", children: [] }] };
  server.script(
    { calls: [{ name: "weather", args: { place: "Oslo" } }] },
    { calls: [{ name: "render_a2ui", args: surface }] },
  );
  const thread = fresh();
  const [a, b] = [await open("apps", thread), await open("apps", thread)];
  await ask(a, "weather?");
  for (const tab of [a, b]) {
    await tab.waitFor(() => window.recipe.view().said.includes("tool: Rain in Oslo"));
    await tab.waitFor(() => window.recipe.view().run === "idle");
  }
  await ask(b, "draw it");
  for (const tab of [a, b]) await tab.waitFor(() => window.recipe.view().surfaces[0] === 2);
});
