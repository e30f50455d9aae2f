import { describe, expect, test } from "vitest";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import {
  answered,
  ask,
  choose,
  drawn,
  find,
  focus,
  newThread,
  titles,
  useDemo,
  waitForFocus,
  waitForTitles,
} from "./demo-tabs.js";

/** A thread that is deleted can be had back for some seconds. */
const demo = useDemo("deletion");

/** Those seconds are over when the test says so. `<html data-due>`: how many times of that length run. Alone in the page. */
function ownTime(): void {
  const due = new Map<number, () => void>();
  const tell = (): void => void (document.documentElement.dataset["due"] = String(due.size));
  const start = window.setTimeout.bind(window);
  const end = window.clearTimeout.bind(window);
  const startOwn = (work: () => void, ms?: number, ...given: unknown[]): number => {
    if (ms !== 8_000) return start(work, ms, ...given);
    const id = start(() => undefined, 0);
    due.set(id, work);
    tell();
    return id;
  };
  const endOwn = (id?: number): void => {
    end(id);
    if (id !== undefined && due.delete(id)) tell();
  };
  Object.assign(window, { setTimeout: startOwn, clearTimeout: endOwn });
  addEventListener("time-over", () => {
    const works = [...due.values()];
    due.clear();
    tell();
    for (const work of works) work();
  });
}

const due = (tab: Tab, count: number): Promise<unknown> =>
  tab.waitFor((wanted) => document.documentElement.dataset["due"] === wanted, String(count));

const timeOver = (tab: Tab): Promise<unknown> => tab.evaluate(() => dispatchEvent(new Event("time-over")));

const offers = (tab: Tab, text: string): Promise<unknown> =>
  tab.waitFor((wanted) => document.querySelector(".undo-place")?.textContent?.includes(wanted), text);

const nothingOffered = (tab: Tab): Promise<unknown> => tab.waitFor(() => document.querySelector(".undo") === null);

/** A tab with this test's thread, which is called that. */
async function openThread(title: string): Promise<Tab> {
  const tab = await demo.open({ beforeLoad: ownTime });
  await ask(tab, title);
  await find(tab, demo.thread);
  await waitForTitles(tab, [title]);
  return tab;
}

describe("a deleted thread", () => {
  test("is gone from the list at once, from other tabs after a while, without a question", async () => {
    const title = `help ${demo.thread}`;
    const a = await demo.open();
    await ask(a, title);
    const b = await demo.open();
    await answered(b);
    await find(a, demo.thread);
    await choose(a, title, "Delete");
    await waitForTitles(a, []);
    await offers(a, `“${title}” deleted`);
    await a.waitForText("log", "Conversation", "Give it something to read");
    expect(await a.url()).not.toContain(`thread=${demo.thread}`);
    // By the clock.
    await b.waitForText("alert", /^/, "deleted in another tab");
    await nothingOffered(a);
    expect(await titles(a)).toEqual([]);
    expect(await a.count("alert")).toBe(0);
    expect([...a.errors, ...b.errors]).toEqual([]);
  });

  test("comes back by the button, and on show if it was", async () => {
    const title = `help ${demo.thread}`;
    const tab = await openThread(title);
    await choose(tab, title, "Delete");
    await offers(tab, title);
    await due(tab, 1);
    await tab.click("button", "Undo");
    await nothingOffered(tab);
    await waitForTitles(tab, [title]);
    await answered(tab);
    expect(await tab.url()).toContain(`thread=${demo.thread}`);
    await waitForFocus(tab, "Conversation");
    await due(tab, 0);
    await tab.reload();
    await answered(tab);
    expect(tab.errors).toEqual([]);
  });

  test("comes back by Ctrl+Z, the last one first, but not while somebody types", async () => {
    const [first, second] = [`help alpha ${demo.thread}`, `help beta ${demo.thread}`];
    const tab = await openThread(first);
    await newThread(tab);
    await ask(tab, second);
    await waitForTitles(tab, [second, first]);
    await choose(tab, first, "Delete");
    await waitForTitles(tab, [second]);
    await choose(tab, second, "Delete");
    await waitForTitles(tab, []);
    await offers(tab, `“${second}” and 1 more deleted`);
    await due(tab, 1);
    await tab.type("textbox", "Message", "not sent");
    await tab.press("Control+z");
    await drawn(tab);
    expect(await titles(tab)).toEqual([]);
    await focus(tab, "#conversation");
    await tab.press("Control+z");
    await waitForTitles(tab, [second]);
    await offers(tab, `“${first}” deleted`);
    await focus(tab, "#threads");
    await tab.press("Control+z");
    await waitForTitles(tab, [second, first]);
    await nothingOffered(tab);
    expect(tab.errors).toEqual([]);
  });

  test("can be had back as long as somebody points at the offer or has the focus in it", async () => {
    const title = `help ${demo.thread}`;
    const tab = await openThread(title);
    const point = (event: string): Promise<unknown> =>
      tab.evaluate((type) => document.querySelector(".undo")?.dispatchEvent(new PointerEvent(type)), event);
    await choose(tab, title, "Delete");
    await due(tab, 1);
    await focus(tab, ".undo button");
    await due(tab, 0);
    await point("pointerenter");
    await focus(tab, "#conversation");
    await due(tab, 0);
    await timeOver(tab);
    expect(await tab.count("button", "Undo")).toBe(1);
    await point("pointerleave");
    await due(tab, 1);
    await timeOver(tab);
    await nothingOffered(tab);
    await tab.press("Control+z");
    await drawn(tab);
    expect(await titles(tab)).not.toContain(title);
    expect(tab.errors).toEqual([]);
  });

  test("is still there in other tabs, and after a reload before the time is over", async () => {
    const title = `help ${demo.thread}`;
    const a = await openThread(title);
    const b = await demo.open();
    await find(b, demo.thread);
    await waitForTitles(b, [title]);
    await choose(a, title, "Delete");
    await waitForTitles(a, []);
    await a.reload();
    await find(a, demo.thread);
    await waitForTitles(a, [title]);
    expect(await titles(b)).toEqual([title]);
    expect(await b.count("alert")).toBe(0);
  });

  test("comes back to who goes back to it", async () => {
    const title = `help ${demo.thread}`;
    const tab = await openThread(title);
    await newThread(tab);
    await choose(tab, title, "Delete");
    await waitForTitles(tab, []);
    await tab.evaluate(() => history.back());
    await answered(tab);
    await waitForTitles(tab, [title]);
    await nothingOffered(tab);
    await due(tab, 0);
  });

  test("keeps its live run until it is really deleted", async () => {
    const held = await demo.hold();
    const tab = await demo.open({ beforeLoad: ownTime });
    await tab.type("textbox", "Message", "help");
    await tab.press("Enter");
    await tab.waitForText("log", "Conversation", /I read documents/);
    await tab.waitFor(() => document.querySelector(".thread-bar .menu-anchor") !== null);
    await tab.evaluate(() => document.querySelector<HTMLElement>(".thread-bar .menu-anchor button")?.click());
    await tab.click("menuitem", "Delete");
    // Not the message: there Ctrl+Z would undo letters.
    await waitForFocus(tab, "Conversation");
    await tab.press("Control+z");
    await tab.waitForText("log", "Conversation", /I read documents/);
    await held.close();
    await tab.waitForText("log", "Conversation", /and I will start reading/);
    await answered(tab);
    expect(await tab.text("log", "Conversation")).not.toMatch(/Stopped|interrupted/);
  });

  test("is not deleted where another tab goes on with it meanwhile", async () => {
    const title = `help ${demo.thread}`;
    const a = await openThread(title);
    const b = await demo.open();
    await answered(b);
    await choose(a, title, "Delete");
    await waitForTitles(a, []);
    await due(a, 1);
    await ask(b, "help again");
    await timeOver(a);
    await a.waitForText("alert", /^/, "was not deleted: it was used in another tab meanwhile");
    await waitForTitles(a, [title]);
    expect(await b.count("alert")).toBe(0);
  });
});
