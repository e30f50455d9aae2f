import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { modelServer, type ModelServer } from "../openai/server.js";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";

const KEY = "planted-Key_4711";

const given = useBrowser();
let server: ModelServer;
let tabs: Tab[] = [];
let threads = 0;

beforeAll(async () => void (server = await modelServer()));
afterAll(() => server.close());
beforeEach(() => server.reset());
afterEach(async () => {
  server.release();
  await Promise.allSettled(tabs.map((tab) => tab.close()));
  tabs = [];
});

async function open(thread: string, url = server.url): Promise<Tab> {
  const query = new URLSearchParams({ worker: `ai-${process.pid}#one`, thread, url, key: KEY });
  const tab = await given.browser.newTab(`${inject("pages")}ai.html?${query.toString()}`);
  tabs.push(tab);
  await tab.waitFor(() => "ai" in window && window.ai.view().isReady);
  return tab;
}

const ask = (tab: Tab, text: string): Promise<void> => tab.evaluate((it) => window.ai.ask(it), text);
const fresh = (): string => `thread-${threads++}`;
const says = (tab: Tab, text: string): Promise<unknown> =>
  tab.waitFor((wanted) => {
    const { messages, run } = window.ai.view();
    return run === "idle" && messages.at(-1)?.content === wanted;
  }, text);

test("issue 16.1: a model that is asked in the SharedWorker, with a tool there: both tabs see the answer", async () => {
  server.script({ text: ["A sum"], calls: [{ name: "add", args: ['{"a":1,', '"b":2}'] }] }, { text: ["It is ", "3"] });
  const thread = fresh();
  const [a, b] = [await open(thread), await open(thread)];
  await ask(a, "1+2?");
  for (const tab of [a, b]) {
    await says(tab, "It is 3");
    const { messages } = await tab.evaluate(() => window.ai.view());
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  }
  expect(server.requests.map(({ headers }) => headers["authorization"])).toEqual([`Bearer ${KEY}`, `Bearer ${KEY}`]);
});

test("issue 16.1: a stop from the other tab ends the model's request", async () => {
  server.script({ text: ["Once ", "upon"], holds: true });
  const thread = fresh();
  const [a, b] = [await open(thread), await open(thread)];
  await ask(a, "a story");
  await b.waitFor(() => window.ai.view().messages.at(-1)?.content === "Once upon");
  await b.evaluate(() => window.ai.stop());
  for (const tab of [a, b]) await says(tab, "Once upon");
  await server.when(() => server.left === 1);
});

test("issue 16.1: no server there: both tabs are told what to look at", async () => {
  const thread = fresh();
  const [a, b] = [await open(thread, "http://127.0.0.1:9/v1"), await open(thread, "http://127.0.0.1:9/v1")];
  await ask(a, "anybody?");
  for (const tab of [a, b]) {
    const failure = await tab.waitFor(() => window.ai.view().failure);
    expect(failure).toContain("could not be reached");
    expect(failure).toContain("CORS");
  }
});
