import { afterEach, describe, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { press } from "../../../test/tabs/driver/press.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";

const given = useBrowser();
const tabs: Tab[] = [];

afterEach(async () => {
  for (const tab of tabs) expect(tab.errors).toEqual([]);
  await Promise.allSettled(tabs.splice(0).map((tab) => tab.close()));
});

const log = (tab: Tab): Promise<string> => tab.text("log", "Conversation");

async function send(tab: Tab, text: string): Promise<void> {
  await tab.type("textbox", "Message", text);
  await press(tab, "Send");
}

/** Pages of an origin share their threads: titles tell them apart. */
describe.each([
  ["React 19", "react", inject("pages")],
  ["React 18", "react", inject("react18")],
  ["Vue", "vue", inject("pages")],
  ["Svelte", "svelte", inject("pages")],
])("the example in %s", (framework, folder, origin) => {
  async function open(): Promise<Tab> {
    const tab = await given.browser.newTab(`${origin}${folder}/index.html`);
    tabs.push(tab);
    await tab.waitForText("navigation", "Threads", "New thread");
    return tab;
  }

  test("two tabs show an answer as it comes; the one stops what the other began; a reload loses nothing", async () => {
    const title = `${framework}, a long one`;
    const a = await open();
    await send(a, title);
    await a.waitForText("log", "Conversation", `You said: ${title}. I say it`);
    const b = await open();
    await press(b, title);
    await b.waitForText("log", "Conversation", `You said: ${title}. I say it`);
    expect(await b.isDisabled("button", "Send")).toBe(true);
    await press(b, "Stop");
    for (const tab of [a, b]) await tab.waitForText("log", "Conversation", "Stopped.");
    const shown = await log(a);
    expect(await log(b)).toBe(shown);
    await a.reload();
    await press(a, title);
    await a.waitForText("log", "Conversation", "Stopped.");
    expect(await log(a)).toBe(shown);
    expect(await violations(a)).toEqual([]);
    await press(a, "Run again");
    for (const tab of [a, b]) await tab.waitForText("log", "Conversation", /^(?![^]*Stopped\.)[^]*I say it/);
    await press(a, "Stop");
    await b.waitForText("log", "Conversation", "Stopped.");
  });

  test("a tab that reloads in the middle has the rest; a new thread is empty; a deleted one leaves all lists", async () => {
    const title = `${framework}, second`;
    const [a, b] = [await open(), await open()];
    await send(a, title);
    await a.waitForText("log", "Conversation", `You said: ${title}. I say it`);
    await a.reload();
    await press(a, title);
    await a.waitForText("log", "Conversation", /until the end/);
    await press(a, "New thread");
    await a.waitFor(() => document.querySelector("[role=log]")?.textContent?.trim() === "");
    await b.waitForText("navigation", "Threads", title);
    await a.click("button", `Delete ${title}`);
    await b.waitFor((name: string) => !document.querySelector("nav")!.innerText.includes(name), title);
  });
});
