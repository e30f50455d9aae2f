import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { type LabTab, LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

// Firefox and WebKitGTK do not keep such pages: they are loaded anew.
const testInCache = test.runIf(inject("engine") === "chromium");

declare global {
  interface Window {
    /** Set in a page before it is left: there again only where the page itself came back. */
    wasHere?: true;
  }
}

/** Leaves the page for another one of the origin. */
async function leave(tab: LabTab): Promise<void> {
  await tab.tab.evaluate(() => void (window.wasHere = true));
  await tab.tab.goto(`${inject("pages")}favicon.svg`);
}

/** Back to it, out of the back/forward cache. */
async function comeBack(tab: LabTab): Promise<void> {
  await tab.tab.back();
  expect(await tab.tab.evaluate(() => window.wasHere)).toBe(true);
}

testInCache(
  "a tab that comes out of the back/forward cache has all that happened meanwhile, and counts again (L2, L11)",
  async () => {
    const a = await (await tabs.open()).follow("count", "thread");
    const b = await (await tabs.open()).follow("count", "thread");
    await a.start("thread", { n: 150, everyMs: 15 });
    await b.counted("thread", 10);
    await leave(a);
    await b.tab.waitFor(() => window.lab.status.is === "connected" && window.lab.status.tabs === 1);
    await b.counted("thread", 40);
    await comeBack(a);
    expect((await a.settled("thread")).text).toBe(numbers(150));
    expect((await b.settled("thread")).text).toBe(numbers(150));
    await b.tab.waitFor(() => window.lab.status.is === "connected" && window.lab.status.tabs === 2);
    expect(await a.run("thread", { n: 3 })).toEqual({ ok: true });
    await b.shows("thread", 3);
  },
);

testInCache("a tab that was in the back/forward cache from before a run to after it shows the run (L2)", async () => {
  const a = await (await tabs.open()).follow("count", "thread");
  const b = await (await tabs.open()).follow("count", "thread");
  await a.run("thread", { n: 3 });
  await leave(a);
  await b.run("thread", { n: 5 });
  await comeBack(a);
  await a.shows("thread", 5);
  expect((await a.view("thread")).messages).toEqual((await b.view("thread")).messages);
});

// Its agent is silent: a page that is left while it writes is thrown out by the browser, and begins anew.
describe.each(["worker", "page"] as const)("a host in the page that goes into the back/forward cache (%s)", (kind) => {
  testInCache("lets go: its run is broken for everybody at once, and never goes on (L9, L11)", async () => {
    const a = await (await tabs.open("one", kind)).follow("silent", "thread");
    const b = await (await tabs.open("two")).follow("silent", "thread");
    await a.start("thread", "wait");
    await b.running("thread");
    await leave(a);
    expect((await b.settled("thread")).run).toMatchObject({ last: { status: "broken" } });
    // The thread is free while the page lies in the cache.
    expect(await b.runUnseen("echo", "thread", "meanwhile")).toEqual({ ok: true });

    await comeBack(a);
    await a.tab.waitFor(() => window.lab.view("thread").text === '"meanwhile"');
    expect((await a.view("thread")).messages).toEqual((await b.view("thread")).messages);
    expect(await a.runUnseen("echo", "thread", "again")).toEqual({ ok: true });
    await b.tab.waitFor(() => window.lab.view("thread").text === '"again"');
  });
});
