import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { holdRuns } from "../../../test/tabs/driver/held-runs.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";

/** The demo's graph agent, whose host ends in the middle. */
const engine = inject("engine");
const given = useBrowser();

const QUESTION = "What did the keeper do with the lamp?";
const STEPS = ["Plan", "Search", "Quotes", "Comparison", "Summary"];
/** The end of the last step. */
const LAST_WORDS = /Summary\s[^]*The best one is in .+ line \d+: .+/;

let threads = 0;
let thread: string;
let tabs: Tab[];

beforeEach(() => {
  thread = `research-${engine}-${threads++}`;
  tabs = [];
});

afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
});

async function openDemo(agent = "&agent=research"): Promise<Tab> {
  const tab = await given.browser.newTab(`${inject("origin")}?thread=${thread}${agent}`);
  tabs.push(tab);
  await tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);
  return tab;
}

async function sendText(tab: Tab, text: string): Promise<void> {
  await tab.type("textbox", "Message", text);
  await tab.click("button", "Send");
}

/** The headings of the answer so far. */
const headings = (tab: Tab): Promise<string[]> =>
  tab.evaluate(() =>
    [...document.querySelectorAll("[role=log] .message :is(h3, h4, h5, h6)")].map((it) => it.textContent?.trim() ?? ""),
  );

/** The texts of all messages. */
const messages = (tab: Tab): Promise<string[]> =>
  tab.evaluate(() => [...document.querySelectorAll<HTMLElement>("[role=log] .message")].map((it) => it.innerText));

/** From now on runs of this test's thread stop in this step, until the tab that is returned is closed. */
async function hold(step: string): Promise<Tab> {
  const tab = await holdRuns(given.browser, thread, new RegExp(`${step}\\s+\\S[^]{40,}`));
  tabs.push(tab);
  return tab;
}

/** Waits until the step has said something. */
const within = (tab: Tab, step: string): Promise<unknown> =>
  tab.waitForText("log", "Conversation", new RegExp(`${step}\\s+\\S[^]{20,}`));

async function finished(tab: Tab): Promise<string> {
  await tab.waitForAttr("data-run-state", "idle");
  await tab.waitForText("log", "Conversation", LAST_WORDS);
  await tab.waitFor(() => document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false");
  return tab.text("log", "Conversation");
}

/** Ends the host from outside where the engine lets us, else by the reload of the only tab. */
async function endHost(tab: Tab): Promise<void> {
  if (engine === "chromium") expect(await given.browser.endSharedWorkers()).toBe(1);
  else await tab.reload();
}

test("a graph whose host ends in the middle goes on there in the same thread, and does nothing twice (L9)", async () => {
  const held = await hold("Quotes");
  const a = await openDemo();
  await sendText(a, QUESTION);
  await within(a, "Quotes");
  await endHost(a);
  await held.close();
  await a.waitForText("log", "Conversation", /was interrupted/);
  // Where the tab was reloaded, its messages may come after that.
  await within(a, "Quotes");
  const begun = await headings(a);
  expect(begun).toEqual(STEPS.slice(0, 3));
  await sendText(a, "go on");
  const whole = await finished(a);
  const said = await messages(a);
  // The step that was under way is done anew, those before it are not.
  expect(await headings(a)).toEqual([...begun, ...STEPS.slice(2)]);
  expect(whole).toMatch(/Already done, and not repeated: Plan, Search\. Now: Quotes\./);
  // One thread of AG-UI: whoever opens it later sees the same, with the agent's name.
  const b = await openDemo("");
  await finished(b);
  await b.waitFor(() => document.querySelector("article[aria-label=Researcher]") !== null);
  expect(await messages(b)).toEqual(said);
  expect(await violations(b)).toEqual([]);
});

test("after the browser was killed the button goes on with the graph (L9)", async () => {
  await hold("Search");
  const a = await openDemo();
  await sendText(a, QUESTION);
  await within(a, "Search");
  await given.killAndRestart();
  const b = await openDemo();
  await b.waitForText("log", "Conversation", /was interrupted/);
  await b.click("button", "Continue");
  await finished(b);
  const shown = await headings(b);
  expect(shown.filter((title) => title === "Plan")).toEqual(["Plan"]);
  expect(shown.slice(-3)).toEqual(STEPS.slice(2));
});

test("the person chooses who answers in a new thread, and the thread stays with that agent", async () => {
  const held = await hold("Plan");
  const a = await openDemo("");
  await a.waitForText("log", "Conversation", "Give it something to read");
  await a.click("radio", /^Researcher/);
  await a.waitForText("log", "Conversation", "Ask it something");
  expect(await a.url()).toContain("agent=research");
  await a.click("button", QUESTION);
  await within(a, "Plan");
  await a.click("button", "Stop");
  await a.waitForText("log", "Conversation", "Stopped");
  await held.close();
  await a.bringToFront();
  await a.click("button", "New thread");
  await a.click("radio", /^Reader/);
  await a.waitForText("log", "Conversation", "Give it something to read");
  await a.click("link", new RegExp(`^${QUESTION.slice(0, 20)}`));
  await a.waitFor(() => document.querySelector("article[aria-label=Researcher]") !== null);
  await sendText(a, "go on");
  await finished(a);
  expect((await headings(a)).slice(-1)).toEqual(["Summary"]);
  expect(a.errors).toEqual([]);
});
