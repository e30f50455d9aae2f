import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { BASE } from "./pages/fetch-base.js";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tests = 0;
let ada: string;
let bob: string;
let tabs: Tab[] = [];
beforeEach(() => {
  const own = `${process.pid}-${tests++}`;
  // The second one is called as databases of the first one could be.
  ada = `ada@site.test/${own}`;
  bob = `${ada}.checkpoints`;
});
afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
  tabs = [];
});

/** @param worker the name of the tab's SharedWorker, where it is not that of its user */
async function open(user: string, worker?: string): Promise<Tab> {
  const other = worker === undefined ? "" : `&worker=${encodeURIComponent(worker)}`;
  const tab = await given.browser.newTab(`${inject("pages")}users.html?user=${encodeURIComponent(user)}${other}`);
  tabs.push(tab);
  await tab.waitFor(() => "users" in window);
  return tab;
}

const start = (tab: Tab, threadId: string, runId: string) =>
  tab.evaluate((thread, run) => window.users.start(thread, run), threadId, runId);
const seen = (tab: Tab, threadId: string) => tab.evaluate((thread) => window.users.seen(thread), threadId);
/** Waits until a thread's agent has said whose it is, and saved its checkpoint. */
const held = (tab: Tab, threadId: string, checkpoints: number) =>
  tab.waitFor(
    async (thread, least) => {
      const all = await window.users.seen(thread);
      return typeof all !== "string" && all.messages.length >= 2 && all.checkpoints.length >= least;
    },
    threadId,
    checkpoints,
  );

describe("two users of one origin", () => {
  test("run the same thread at once, and neither sees anything of the other (L5)", async () => {
    const [a, b] = [await open(ada), await open(bob)];
    await start(a, "same", "run");
    await held(a, "same", 1);
    await start(b, "same", "run");
    await held(b, "same", 1);
    await start(a, "same", "later");
    await start(a, "own", "other");
    await held(a, "own", 2);
    await a.waitFor(async () => {
      const all = await window.users.seen("same");
      return typeof all !== "string" && all.waiting.length === 1;
    });
    expect(await seen(a, "same")).toEqual({
      threads: expect.toSatisfy((all: unknown[]) => all.length === 2),
      messages: [`asks ${ada}`, `of ${ada}`],
      runs: [["run", "running"]],
      waiting: ["later"],
      checkpoints: expect.toSatisfy((ids: string[]) => ids.toSorted().join() === "other,run"),
    });
    const ofBob = {
      threads: [["same", "run"]],
      messages: [`asks ${bob}`, `of ${bob}`],
      runs: [["run", "running"]],
      waiting: [],
      checkpoints: ["run"],
    };
    expect(await seen(b, "same")).toEqual(ofBob);
    // A stop of the one's run is none of the other's.
    await a.evaluate(() => window.users.stop("same", "run"));
    await a.waitFor(async () => {
      const all = await window.users.seen("same");
      return typeof all !== "string" && all.waiting.length === 0 && all.runs.length === 2;
    });
    expect(await seen(b, "same")).toEqual(ofBob);
  });

  test("cannot read each other's threads by their ids", async () => {
    const [a, b] = [await open(ada), await open(bob)];
    await start(a, "secret", "run");
    await held(a, "secret", 1);
    const read = (tab: Tab) => tab.evaluate(() => window.users.fetched("/threads/secret/messages"));
    expect(await read(a)).toEqual([200, expect.stringContaining(`of ${ada}`)]);
    expect((await read(b))[1]).not.toContain(`of ${ada}`);
    expect(await seen(b, "secret")).toEqual({ threads: [], messages: [], runs: [], waiting: [], checkpoints: [] });
    // Who comes back finds it.
    expect(await read(await open(ada))).toEqual([200, expect.stringContaining(`of ${ada}`)]);
  });

  test("are served by a service worker each by the host of their own", async () => {
    const [a, b] = [await open(ada), await open(bob)];
    for (const tab of [a, b]) await tab.evaluate(() => window.users.answer());
    for (const [tab, thread] of [
      [a, "of-ada"],
      [b, "of-bob"],
    ] as const) {
      await start(tab, thread, "run");
      await held(tab, thread, 1);
    }
    const threads = (tab: Tab) => tab.evaluate(() => window.users.relayed("/threads?agentId=held"));
    await b.bringToFront();
    for (const tab of [a, b, a]) {
      const [status, body] = await threads(tab);
      expect([status, body.includes("of-ada"), body.includes("of-bob")]).toEqual([200, tab === a, tab === b]);
    }
    // A page that does not say whose it is.
    const other = await open(bob);
    await other.evaluate(() => window.users.useServiceWorker());
    expect(await threads(other)).toEqual([503, expect.stringContaining("no-host")]);
    // A navigation is nobody's while there are two users.
    await other.goto(new URL(`${BASE}/threads/of-ada/messages`, inject("pages")).href);
    const page = () => other.evaluate(() => document.body.innerText);
    expect(await page()).toContain("wrong-user");
    await b.close();
    await other.goto(new URL(`${BASE}/threads/of-ada/messages?again`, inject("pages")).href);
    expect(await page()).toContain(`of ${ada}`);
  });
});

describe("a tab", () => {
  test("with the worker of another user is refused, and asks no more", async () => {
    const b = await open(bob);
    await start(b, "secret", "run");
    const wrong = await open(ada, bob);
    expect(await seen(wrong, "secret")).toMatch(/^wrong-user: .*new SharedWorker\(url, \{ name: user \}\)/);
    // A worker that does not answer at once is asked again: only what comes after the refusal counts.
    const starts = await wrong.evaluate(() => window.users.starts);
    expect(await wrong.evaluate(() => window.users.fetched("/threads/secret/messages"))).toEqual([
      503,
      expect.stringContaining("wrong-user"),
    ]);
    expect(await wrong.evaluate(() => [window.users.status.is, window.users.starts])).toEqual(["failed", starts]);
  });

  test("whose worker has no name is told what to do", async () => {
    const first = await open(ada, "");
    const what = /user must be .*new SharedWorker\(url, \{ name: user \}\)/;
    // Chromium tells the first tab of the error, too, before or after the worker does.
    expect(await seen(first, "t")).toMatch(what);
    // Once the script has thrown: other browsers tell every tab that is there by then.
    const second = await open(bob, "");
    const told = await seen(second, "t");
    expect(told).toMatch(what);
    expect(told).toMatch(/^invalid-input: /);
  });
});
