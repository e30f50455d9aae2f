import { afterEach, beforeEach, expect, test } from "vitest";
import { type LabTab, LabTabs, useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

const THREADS = ["one", "two", "three"];

/** How many locks are held and waited for in the whole origin. */
const locksOf = ({ tab }: LabTab): Promise<{ held: number; pending: number }> =>
  tab.evaluate(async () => {
    const { held = [], pending = [] } = await navigator.locks.query();
    return { held: held.length, pending: pending.length };
  });

/** Waits until there are as many as before. */
const mustHold = ({ tab }: LabTab, before: { held: number; pending: number }): Promise<boolean> =>
  tab.waitFor(async ({ held, pending }) => {
    const now = await navigator.locks.query();
    return now.held?.length === held && now.pending?.length === pending;
  }, before);

/** Waits until the host counts this many. */
const told = ({ tab }: LabTab, counted: { tabs: number; attachments: number }): Promise<boolean> =>
  tab.waitFor((wanted) => {
    const { status } = window.lab;
    return status.is === "connected" && status.tabs === wanted.tabs && status.attachments === wanted.attachments;
  }, counted);

/** A tab whose own runs of all threads are live. */
async function withLiveRuns(): Promise<LabTab> {
  const tab = await tabs.open();
  for (const thread of THREADS) {
    await tab.takePart("count", thread);
    await tab.start(thread, { n: 100_000, everyMs: 20 });
    await tab.counted(thread, 1);
  }
  await told(tab, { tabs: 1, attachments: THREADS.length });
  return tab;
}

async function mustStopAll(tab: LabTab): Promise<void> {
  for (const thread of THREADS) {
    await tab.stop(thread);
    expect((await tab.settled(thread)).run).toMatchObject({ last: { status: "stopped" } });
  }
  await told(tab, { tabs: 1, attachments: 0 });
}

test("of 300 attaches and detaches in the middle of runs the host keeps nothing, and the runs go on (L11, L14)", async () => {
  const tab = await withLiveRuns();
  const before = await locksOf(tab);
  await tab.tab.evaluate(async (threads) => {
    const { runtime } = window.lab;
    const agents = threads.map((threadId) => runtime.agent("count", { threadId }));
    for (let n = 0; n < 300; n++) {
      const agent = agents[n % agents.length]!;
      const unfollow = agent.follow();
      // Some leave before they were answered, some when they have the thread.
      if (n % 4 === 0) await new Promise((shown) => agent.run$.subscribe(({ is }) => is === "running" && shown(0)));
      else if (n % 4 === 1) await runtime.threads.list({ limit: 1 });
      unfollow();
    }
  }, THREADS);
  await told(tab, { tabs: 1, attachments: THREADS.length });
  await mustHold(tab, before);
  await mustStopAll(tab);
});

test("of 20 tabs that come, follow and go the host keeps nothing, and their runs go on (L11, L14)", async () => {
  const tab = await withLiveRuns();
  const before = await locksOf(tab);
  const most = await tab.tab.evaluate(async (threads) => {
    let seen = 0;
    window.lab.runtime.status$.subscribe((status) => {
      if (status.is === "connected") seen = Math.max(seen, status.tabs);
    });
    const until = async (holds: () => boolean): Promise<void> => {
      while (!holds()) await new Promise((resolve) => requestAnimationFrame(resolve));
    };
    const come = async (n: number): Promise<HTMLIFrameElement> => {
      const frame = document.createElement("iframe");
      frame.src = location.href;
      document.body.append(frame);
      await until(() => frame.contentWindow !== null && "lab" in frame.contentWindow);
      const { lab } = frame.contentWindow as typeof window;
      const thread = threads[n % threads.length]!;
      lab.open("count", thread, true);
      // Every other one goes before it has seen anything.
      if (n % 2 === 0) await until(() => lab.view(thread).run.is === "running");
      return frame;
    };
    for (let n = 0; n < 20; n += 5) {
      const frames = await Promise.all([0, 1, 2, 3, 4].map((more) => come(n + more)));
      frames.forEach((frame) => frame.remove());
    }
    return seen;
  }, THREADS);
  expect(most).toBeGreaterThan(1);
  await told(tab, { tabs: 1, attachments: THREADS.length });
  await mustHold(tab, before);
  await mustStopAll(tab);
});
