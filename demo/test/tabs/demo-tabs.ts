import { afterEach, beforeEach, inject } from "vitest";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { holdRuns } from "../../../test/tabs/driver/held-runs.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";

/** Tabs of the demo, in a browser for all tests of a file. */
export interface Demo {
  /** Another one in each test. */
  readonly thread: string;
  open(options?: { beforeLoad?: () => void; threadId?: string; agent?: string }): Promise<Tab>;
  /** From now on runs of this test's thread stop in the middle of their answer, until the tab that is returned is closed. */
  hold(characters?: number): Promise<Tab>;
}

/** @param file tells the threads of this file's tests from those of others */
export function useDemo(file: string): Demo {
  const given = useBrowser();
  let threads = 0;
  let thread = "";
  let tabs: Tab[] = [];
  beforeEach(() => {
    thread = `${file}-${inject("engine")}-${threads++}`;
    tabs = [];
  });
  afterEach(async () => {
    await Promise.allSettled(tabs.map((tab) => tab.close()));
  });
  return {
    get thread() {
      return thread;
    },
    async open({ threadId = thread, agent, ...rest } = {}) {
      const chosen = agent === undefined ? "" : `&agent=${agent}`;
      const tab = await given.browser.newTab(`${inject("origin")}?thread=${threadId}${chosen}`, rest);
      tabs.push(tab);
      await connected(tab);
      return tab;
    },
    async hold(characters = 100) {
      const tab = await holdRuns(given.browser, thread, new RegExp(`[^]{${characters},}`));
      tabs.push(tab);
      return tab;
    },
  };
}

export const connected = (tab: Tab): Promise<unknown> =>
  tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);

/** Asks, and waits for the whole answer. */
export async function ask(tab: Tab, text: string): Promise<void> {
  const before = await tab.count("article", "Reader");
  await tab.type("textbox", "Message", text);
  await tab.press("Enter");
  await answered(tab, before + 1);
}

/** Begins a thread, and waits until that is the one on show. */
export async function newThread(tab: Tab): Promise<void> {
  await tab.click("button", "New thread");
  await tab.waitForText("log", "Conversation", "Give it something to read");
}

/** The run is over, and there are so many messages of the agent. */
export async function answered(tab: Tab, answers = 1): Promise<void> {
  await tab.waitFor(
    (least) =>
      document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false" &&
      document.querySelectorAll("article[aria-label=Reader]").length >= least,
    answers,
  );
}

/** What was to be drawn is drawn. */
export const drawn = (tab: Tab): Promise<unknown> =>
  tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));

/** Moves the focus to what is there, or soon will be. */
export const focus = (tab: Tab, selector: string): Promise<unknown> =>
  tab.waitFor((it) => {
    const element = document.querySelector<HTMLElement>(it);
    element?.focus();
    return element !== null && document.activeElement === element;
  }, selector);

export const focused = (tab: Tab): Promise<string> =>
  tab.evaluate(() => {
    const it = document.activeElement;
    return it?.getAttribute("aria-label") ?? it?.textContent?.trim() ?? "";
  });

export const waitForFocus = (tab: Tab, name: string): Promise<unknown> =>
  tab.waitFor((wanted) => {
    const it = document.activeElement;
    return (it?.getAttribute("aria-label") ?? it?.textContent?.trim()) === wanted;
  }, name);

export const titles = (tab: Tab): Promise<string[]> =>
  tab.evaluate(() => [...document.querySelectorAll("nav .thread-title")].map((it) => it.textContent?.trim() ?? ""));

export const waitForTitles = (tab: Tab, expected: readonly string[]): Promise<unknown> =>
  tab.waitFor(
    (json) =>
      JSON.stringify([...document.querySelectorAll("nav .thread-title")].map((it) => it.textContent?.trim())) === json,
    JSON.stringify(expected),
  );

/** Opens the menu of a thread in the list, and chooses. */
export async function choose(tab: Tab, title: string, item: string): Promise<void> {
  await tab.click("button", `Actions for ${title}`);
  await tab.click("menuitem", item);
}

/** Lists only what this test's threads are called. */
export const find = (tab: Tab, words: string): Promise<void> => tab.type("searchbox", "Search threads", words);
