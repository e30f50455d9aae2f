import { afterEach, beforeEach, expect, test } from "vitest";
import { LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

test("two tabs see one run whole (L2)", async () => {
  const [a, b] = [await tabs.open(), await tabs.open()];
  await a.follow("count", "thread");
  await b.follow("count", "thread");
  await a.start("thread", { n: 100, everyMs: 10 });
  await b.counted("thread", 5);
  expect((await b.settled("thread")).text).toBe(numbers(100));
  expect((await a.settled("thread")).text).toBe(numbers(100));
});

test("a tab stops the run of another, and both see it as cancelled (L11, L12)", async () => {
  const [a, b] = [await tabs.open(), await tabs.open()];
  await a.follow("count", "thread");
  await b.follow("count", "thread");
  await a.start("thread", { n: 100_000, everyMs: 20 });
  await b.counted("thread", 3);
  await b.stop("thread");
  for (const tab of [a, b]) {
    const { run, ends } = await tab.settled("thread");
    expect(run).toMatchObject({ is: "idle", last: { status: "stopped" } });
    expect(ends).toEqual([{ type: "RUN_FINISHED", outcome: "cancelled" }]);
  }
});

test("a tab that reloads in the middle of a run goes on without gap or repeat (L2)", async () => {
  const [a, b] = [await tabs.open(), await tabs.open()];
  await a.follow("count", "thread");
  await b.follow("count", "thread");
  await b.hold("thread");
  await a.start("thread", { n: 100, everyMs: 20, heldAt: 50 });
  await a.counted("thread", 5);
  await a.tab.reload();
  await a.follow("count", "thread");
  await b.letGo("thread");
  expect((await a.settled("thread")).text).toBe(numbers(100));
  expect((await b.settled("thread")).text).toBe(numbers(100));
});
