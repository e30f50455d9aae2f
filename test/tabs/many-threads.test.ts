import { afterEach, beforeEach, expect, test } from "vitest";
import { type LabTab, LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

const THREADS = Array.from({ length: 20 }, (_, n) => `thread-${n}`);
const BLOCKING = THREADS[7]!;
const COUNTED = 240;

/** What every thread shows, once it is idle. */
const ends = async (tab: LabTab): Promise<unknown[]> => {
  const all: unknown[] = [];
  for (const thread of THREADS) {
    const { text, run } = await tab.settled(thread);
    all.push({ thread, text, last: run.is === "idle" && run.last?.status });
  }
  return all;
};

test("20 threads run at once in one host while an agent blocks it for 2 s: nothing is lost or taken over (L5, L7)", async () => {
  const here = await tabs.open("one");
  const elsewhere = await tabs.open("two");
  for (const thread of THREADS) {
    await here.follow("count", thread);
    await elsewhere.follow("count", thread);
  }
  for (const thread of THREADS) await here.hold(thread);
  await here.tab.evaluate(
    (threads, blocking, n) => {
      for (const thread of threads) {
        window.lab.start(thread, { n, everyMs: 10, heldAt: n - 1, ...(thread === blocking && { blockMs: 2_000 }) });
      }
    },
    THREADS,
    BLOCKING,
    COUNTED,
  );
  // Another host asks for all threads, shortly before and while the agent blocks: none may be given to it.
  await here.counted(BLOCKING, COUNTED / 2 - 40);
  const refusals = await elsewhere.tab.evaluate(async (threads) => {
    const outcomes = [];
    for (let times = 0; times < 3; times++) {
      outcomes.push(...(await Promise.all(threads.map((thread) => window.lab.runUnseen("echo", thread, "?")))));
    }
    return outcomes;
  }, THREADS);
  for (const thread of THREADS) await here.letGo(thread);
  expect(refusals).toMatchObject(refusals.map(() => ({ code: "thread-busy", message: "Thread already running" })));

  for (const tab of [here, elsewhere]) {
    for (const thread of THREADS) {
      await tab.settled(thread);
      const { messages, ends: terminals } = await tab.view(thread);
      expect(messages).toEqual([expect.stringContaining("user: "), `assistant: ${numbers(COUNTED)}`]);
      expect(terminals.filter(({ type }) => type === "RUN_ERROR")).toEqual([]);
    }
  }

  // Stops and refusals still do what they should.
  for (const thread of THREADS) await here.start(thread, { n: 100_000, everyMs: 10 });
  for (const thread of THREADS) await elsewhere.running(thread);
  expect(await elsewhere.runUnseen("echo", BLOCKING)).toMatchObject({ ok: false, code: "thread-busy" });
  expect(await here.runUnseen("echo", BLOCKING)).toMatchObject({ ok: false, code: "thread-busy" });
  for (const thread of THREADS) await elsewhere.stop(thread);
  for (const tab of [here, elsewhere]) {
    expect(await ends(tab)).toMatchObject(THREADS.map((thread) => ({ thread, last: "stopped" })));
  }
});
