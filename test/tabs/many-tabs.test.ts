import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { type LabTab, LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const engine = inject("engine");
const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

const tabOn = async (threadId = "thread"): Promise<LabTab> => (await tabs.open()).follow("count", threadId);

const heap = (): Promise<number> => given.browser.heapOf(tabs.workerName());

/** 5,000 events a second for some seconds, and with them 20 MB of states. */
const FAST = { n: 40_000, everyMs: 20, burst: 100, stateKb: 50 };
/** What the host may keep of a run for its readers, in bytes: less than the run. */
const HEAP_GROWTH = 10 * 1_024 * 1_024;

test("16 tabs follow a fast run, one frozen, one closing and reopening, one reloading: all end with the same (L2, L14)", async () => {
  const holder = await tabOn();
  const following: LabTab[] = [];
  while (following.length < 12) following.push(await tabOn());
  const [reloading, closing] = [await tabOn(), await tabOn()];
  const frozen = await tabOn();
  // Caches, code and the like.
  await holder.run("thread", { n: 90 });
  const before = engine === "chromium" ? await heap() : 0;

  await holder.hold("thread");
  await holder.start("thread", { ...FAST, heldAt: FAST.n / 2 }, "fast");
  await frozen.counted("thread", 100);
  if (engine === "chromium") {
    await holder.tab.bringToFront();
    await frozen.tab.freeze();
  }
  const isLive = async (): Promise<boolean> => (await holder.view("thread")).run.is === "running";
  const reload = async (): Promise<number> => {
    let times = 0;
    for (; await isLive(); times++) {
      await reloading.tab.reload();
      await reloading.follow("count", "thread");
      await reloading.counted("thread", 0);
      await holder.letGo("thread");
    }
    return times;
  };
  const reopen = async (): Promise<LabTab> => {
    let tab = closing;
    while (await isLive()) {
      await tab.counted("thread", 0);
      await tab.tab.close();
      tab = await tabOn();
    }
    return tab;
  };
  const [reloads, reopened] = await Promise.all([reload(), reopen()]);
  expect(reloads).toBeGreaterThan(0);
  const { messages } = await holder.settled("thread");
  expect(messages.at(-1)).toBe(`assistant: ${numbers(FAST.n)}`);
  if (engine === "chromium") {
    // The frozen tab has taken nothing for most of the run.
    const grown = (await heap()) - before;
    console.log(`the host's heap has grown by ${(grown / 2 ** 20).toFixed(1)} MB`);
    expect(grown).toBeLessThan(HEAP_GROWTH);
    await frozen.tab.thaw();
  }
  for (const tab of [...following, reloading, reopened, frozen]) {
    await tab.tab.waitFor(() => {
      const { run } = window.lab.view("thread");
      return run.is === "idle" && run.last?.runId === "fast" && run.last.status === "finished";
    });
    expect((await tab.view("thread")).messages).toEqual(messages);
  }
});

test("a tab reloads 50 times during a run of 20,000 events: exact text each time (L2)", async () => {
  const other = await tabOn();
  const tab = await tabOn();
  const [reloads, step] = [50, 400];
  await tab.start("thread", { n: reloads * step, permitted: step }, "long");
  for (let times = 1; times <= reloads; times++) {
    await tab.running("thread");
    // Events come while the page is gone, too.
    await other.tab.evaluate(() => window.lab.permit("thread"));
    await tab.tab.reload();
    await tab.follow("count", "thread");
    await tab.counted("thread", times * step - 1);
    expect((await tab.view("thread")).text).toBe(numbers(times * step));
  }
  for (const each of [tab, other]) {
    const { text, run } = await each.settled("thread");
    expect(text).toBe(numbers(reloads * step));
    expect(run).toEqual({ is: "idle", last: { runId: "long", status: "finished" } });
  }
});
