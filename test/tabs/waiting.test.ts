import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { type LabTab, LabTabs, useBrowser } from "./driver/scripted.js";

const engine = inject("engine");
const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

const THREAD = "thread";
const OTHER = "other";
/** A run that lasts until it is permitted to go on. */
const HELD = { n: 2, permitted: 1 };
const SHORT = { n: 3 };

const tabOn = async (): Promise<LabTab> => (await tabs.open()).follow("noted", THREAD);

const queue = (tab: LabTab, runId: string, order: unknown = SHORT): Promise<void> =>
  tab.tab.evaluate((...asked) => window.lab.queue(...asked), THREAD, order, runId);

/** Waits until the tab is shown these waiting runs, in this order, each with why it waits. */
const waits = async (tab: LabTab, expected: readonly string[]): Promise<void> => {
  await tab.tab.waitFor(
    async (thread, runs) => (await window.lab.waiting(thread)).join() === runs,
    THREAD,
    expected.join(),
  );
};

/** A live run, and three that wait behind it, all asked for in one tab. */
async function threeBehindOne(tab: LabTab): Promise<void> {
  await tab.start(THREAD, HELD, "live");
  await tab.running(THREAD);
  for (const runId of ["a", "b", "c"]) await queue(tab, runId);
  await waits(tab, ["a busy", "b behind", "c behind"]);
}

const permit = (tab: LabTab): Promise<void> => tab.tab.evaluate((thread) => window.lab.permit(thread), THREAD);

/** Waits until nothing waits or runs, and this was executed since the page was opened: each once, in this order. */
async function executed(tab: LabTab, expected: readonly string[]): Promise<void> {
  const last = expected.at(-1)!;
  await tab.tab.waitFor(
    async (thread, runId) => {
      const { run } = window.lab.view(thread);
      return run.is === "idle" && run.last?.runId === runId && (await window.lab.waiting(thread)).length === 0;
    },
    THREAD,
    last,
  );
  const started = (await tab.notes()).filter(({ is, threadId }) => is === "started" && threadId === THREAD);
  expect(started.map(({ runId }) => runId)).toEqual(expected);
}

test("runs wait behind a live one, are shown, moved and cancelled in every tab, and go on after its reload (L5, L11)", async () => {
  const [tab, other] = [await tabOn(), await tabOn()];
  await threeBehindOne(tab);
  await waits(other, ["a busy", "b behind", "c behind"]);
  // What waits is in no tab's messages.
  expect((await tab.view(THREAD)).messages.filter((text) => text.startsWith("user"))).toHaveLength(1);
  await other.tab.evaluate((thread) => window.lab.runtime.waiting.move(thread, "c", "a"), THREAD);
  await other.tab.evaluate((thread) => window.lab.runtime.waiting.cancel(thread, "b"), THREAD);
  await waits(tab, ["c busy", "a behind"]);
  await tab.tab.reload();
  await tab.follow("noted", THREAD);
  await waits(tab, ["c busy", "a behind"]);
  await permit(other);
  await permit(other);
  await executed(tab, ["live", "c", "a"]);
  const { messages } = await tab.view(THREAD);
  expect(messages.filter((text) => text.startsWith("user"))).toHaveLength(3);
  await tab.tab.waitFor((thread, all) => window.lab.view(thread).messages.join() === all, THREAD, messages.join());
});

test("a worker that dies leaves what waits to the next one: each is executed once, in order (L1, L8, L9)", async () => {
  const [tab, other] = [await tabOn(), await tabOn()];
  await threeBehindOne(tab);
  await tabs.endHost(other);
  await executed(tab, ["live", "a", "b", "c"]);
  await executed(other, ["live", "a", "b", "c"]);
  // Who asked is answered for them, whichever host has run them.
  await tab.tab.waitFor((thread) => window.lab.view(thread).outcomes.filter(({ ok }) => ok).length >= 3, THREAD);
});

test("what waits outlives the browser, and starts when it is opened again (L8)", async () => {
  const tab = await tabOn();
  await threeBehindOne(tab);
  await given.killAndRestart();
  await executed(await tabOn(), ["live", "a", "b", "c"]);
});

test.runIf(engine === "chromium")(
  "a run that needs the network waits for it, and is refused where it may not",
  async () => {
    const tab = await tabOn();
    await queue(tab, "first");
    await executed(tab, ["first"]);
    const giveBack = await given.browser.takeOffline(tabs.workerName());
    await queue(tab, "later");
    await waits(tab, ["later offline"]);
    expect(await tab.run(THREAD, SHORT)).toMatchObject({ ok: false, code: "offline" });
    await giveBack();
    await executed(tab, ["first", "later"]);
  },
);

test.runIf(engine === "chromium")(
  "a thread whose last run failed is shown, and takes a message, in a worker that has lost the network since it began",
  async () => {
    const before = await tabOn();
    await before.follow("fail", OTHER);
    await before.run(OTHER, SHORT);
    await before.tab.waitFor(
      (thread) => window.lab.view(thread).run.is === "idle" && window.lab.view(thread).outcomes.length === 1,
      OTHER,
    );
    expect((await before.view(OTHER)).run).toMatchObject({ last: { status: "errored" } });
    await tabs.endHost(before);
    const tab = await tabOn();
    // Once a run has waited, the worker has what it needs to add one: it began to load that with the first tab.
    await tab.start(THREAD, HELD, "live");
    // From its first message on it listens for permits.
    await tab.tab.waitFor((id) => window.lab.view(id).messages.some((it) => it.startsWith("assistant")), THREAD);
    await queue(tab, "behind");
    await waits(tab, ["behind busy"]);
    await permit(tab);
    await permit(tab);
    await executed(tab, ["live", "behind"]);
    const giveBack = await given.browser.takeOffline(tabs.workerName());
    await tab.follow("noted", OTHER);
    await tab.tab.evaluate((thread, order) => window.lab.queue(thread, order, "later"), OTHER, SHORT);
    await tab.tab.waitFor(async (thread) => (await window.lab.waiting(thread)).join() === "later offline", OTHER);
    expect((await tab.view(OTHER)).outcomes).toEqual([]);
    await giveBack();
    await tab.tab.waitFor((thread) => window.lab.view(thread).outcomes.length === 1, OTHER);
    expect((await tab.view(OTHER)).outcomes).toMatchObject([{ ok: true }]);
  },
);
