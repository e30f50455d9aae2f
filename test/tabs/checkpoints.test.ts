import { beforeEach, describe, expect, inject, test } from "vitest";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let databases = 0;
let db: string;
beforeEach(() => {
  db = `checkpoints-${process.pid}-${databases++}`;
});

async function open(): Promise<Tab> {
  const tab = await given.browser.newTab(`${inject("pages")}checkpoints.html?db=${db}`);
  await tab.waitFor(() => "checkpoints" in window);
  return tab;
}

describe("the laws of checkpoint stores", () => {
  test("hold in this browser", async () => {
    const tab = await given.browser.newTab(`${inject("pages")}checkpoint-laws.html`);
    await tab.waitFor(() => "outcome" in window);
    const outcome = await tab.evaluate(() => window.outcome);
    expect(outcome.failed).toEqual([]);
    expect(outcome.passed).toBeGreaterThan(100);
  });
});

describe("two tabs at once", () => {
  test("that save checkpoints of their own and shared ones lose none", async () => {
    const tabs = [await open(), await open()];
    await Promise.all(tabs.map((tab, n) => tab.evaluate((who) => window.checkpoints.saveMany(who, 40), `tab ${n}`)));
    const listed = await Promise.all(
      tabs.map((tab) =>
        tab.evaluate(async () => {
          const all = [];
          for (const runId of ["many", "of tab 0", "of tab 1"]) all.push(await window.checkpoints.listed(runId));
          return all;
        }),
      ),
    );
    expect(listed[0]).toEqual(listed[1]);
    const [many, ...shared] = listed[0]!;
    expect(new Set(many!.map(({ id }) => id)).size).toBe(80);
    expect(many!.map(({ timestamp }) => timestamp)).toEqual(Array.from({ length: 80 }, (_, n) => 39 - (n >> 1)));
    // Each shared id is of whoever came last, once.
    const ids = shared.flat().map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([40, 40]);
    expect(
      await tabs[0]!.evaluate(() => window.checkpoints.check({ begun: 0, ended: 0, forksBegun: 0, forksEnded: 0 })),
    ).toEqual([]);
  });

  test("that go on from the run's newest checkpoint with saveIf never go on from one twice", async () => {
    const tabs = [await open(), await open()];
    await Promise.all(tabs.map((tab) => tab.evaluate(() => window.checkpoints.count(25))));
    const listed = await tabs[0]!.evaluate(() => window.checkpoints.listed("counted"));
    expect(listed.map(({ timestamp }) => timestamp)).toEqual(Array.from({ length: 50 }, (_, n) => 50 - n));
  });
});

describe("an end in the middle of save and fork leaves the old or the new, whole", () => {
  test("of the worker, at ever other moments", async () => {
    const tab = await open();
    expect(await tab.evaluate(() => window.checkpoints.endInTheMiddle(8))).toEqual([]);
  });

  test("of the browser", async () => {
    let from = 1;
    for (let round = 0; round < 2; round++) {
      const tab = await open();
      await tab.evaluate((first) => window.checkpoints.write(first), from);
      await tab.waitFor(() => window.checkpoints.progress.forksEnded >= 3);
      // What it has told so far is the least that must be there.
      const told = await tab.evaluate(() => window.checkpoints.progress);
      await given.killAndRestart();
      const after = await open();
      expect(await after.evaluate((progress) => window.checkpoints.check({ ...progress }), told)).toEqual([]);
      from = (await after.evaluate(() => window.checkpoints.listed("run")))[0]!.timestamp + 1;
    }
  });
});
