import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { type LabTab, LabTabs, numbers, useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

/** The database of the test's hosts. */
const dbName = (): string => tabs.workerName().split("#")[0]!;

/** What a newer build does when its page is opened: it upgrades the database, and keeps it open. */
const openNewer = (tab: LabTab): Promise<number> =>
  tab.tab.evaluate(
    (name) =>
      new Promise<number>((resolve, reject) => {
        const opening = indexedDB.open(name, 999);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const chunks = opening.result.transaction("chunks").objectStore("chunks").count();
          chunks.onsuccess = () => resolve(chunks.result);
          chunks.onerror = () => reject(chunks.error);
        };
      }),
    dbName(),
  );

describe("a newer build that takes the database over in the middle of a run", () => {
  for (const kind of ["shared-worker", "worker", "page"] as const) {
    test(`ends the run as broken, and every tab is told what to do (${kind}; L10, L13)`, async () => {
      const a = await (await tabs.open("one", kind)).follow("count", "thread");
      const b = await (await tabs.open("one", kind)).follow("count", "thread");
      // Slowly: a tab that is behind by a window is not sent the end before the host says goodbye.
      await a.start("thread", { n: 100_000, everyMs: 50 });
      await b.counted("thread", 10);
      // What a tab of another host may lack is only what it had no time to read.
      const { text } = await a.view("thread");
      await b.counted("thread", Number(text.split(" ").at(-1)));
      const newer = await tabs.open("newer");
      // It does not wait for long, and finds what there was.
      expect(await openNewer(newer)).toBeGreaterThan(0);

      for (const tab of [a, b]) {
        await tab.tab.waitFor(() => window.lab.status.is === "failed");
        expect(await tab.status()).toMatchObject({ error: { code: "outdated" } });
        await tab.tab.waitFor(() => window.lab.view("thread").run.is === "idle");
        const view = await tab.view("thread");
        expect(view.text.startsWith(text)).toBe(true);
        expect(numbers(100_000).startsWith(view.text)).toBe(true);
        expect(await tab.runUnseen("count", "thread")).toMatchObject({ ok: false, code: "outdated" });
      }
      await a.tab.waitFor(() => window.lab.view("thread").ends.length > 0);
      expect((await a.view("thread")).ends).toMatchObject([{ type: "RUN_ERROR", code: "RUN_BROKEN" }]);
      // A tab that comes now is told at once.
      const late = await tabs.open("one", kind);
      await late.tab.waitFor(() => window.lab.status.is === "failed");
      expect(await late.status()).toMatchObject({ error: { code: "outdated" } });
    });
  }
});

test("a database that is deleted in the middle of a run ends it, and the thread begins anew for everybody (L2, L9, L10)", async () => {
  const a = await (await tabs.open()).follow("count", "thread");
  const b = await (await tabs.open("two")).follow("count", "thread");
  await a.run("thread", { n: 5 });
  await a.start("thread", { n: 100_000, everyMs: 10 });
  await b.counted("thread", 10);
  await b.tab.evaluate(
    (name) =>
      new Promise<void>((resolve, reject) => {
        const deleting = indexedDB.deleteDatabase(name);
        deleting.onsuccess = () => resolve();
        deleting.onerror = () => reject(deleting.error);
      }),
    dbName(),
  );
  await a.settled("thread");
  expect((await a.view("thread")).ends).toContainEqual(expect.objectContaining({ code: "RUN_BROKEN" }));
  await a.tab.waitFor(async () => (await window.lab.runUnseen("count", "thread", { n: 3 })).ok);
  for (const tab of [a, b]) {
    await tab.shows("thread", 3);
    expect((await tab.view("thread")).messages.slice(0, -1)).toEqual(['user: {"n":3}']);
  }
});

/** What every tab must be told once the database is gone. */
async function toldOfDeletion(tab: LabTab): Promise<void> {
  const error = { code: "storage-deleted", message: expect.stringContaining("was deleted") };
  await tab.tab.waitFor(() => window.lab.view("thread").messages.length === 0);
  await tab.tab.waitFor(() => window.lab.changes.at(-1)?.type === "anew");
  await tab.tab.waitFor(() => window.lab.status.is === "connected" && window.lab.status.error !== undefined);
  const { run } = await tab.view("thread");
  expect(run).toMatchObject({ is: "idle", gone: error });
  expect(await tab.tab.evaluate(() => window.lab.changes.at(-1))).toMatchObject({ type: "anew", error });
  expect(await tab.status()).toMatchObject({ is: "connected", error });
}

describe("a database that is deleted while nobody runs", () => {
  const ways: [string, (tab: LabTab) => Promise<unknown>][] = [
    ["by another tab", (tab) => tab.tab.evaluate((name) => window.lab.deleteDatabase(name), dbName())],
  ];
  if (inject("engine") === "chromium") {
    ways.push(["by who clears the site's data", () => given.browser.clearSiteData(new URL(inject("pages")).origin)]);
  }
  test.each(ways)("%s is told at once to followers and watchers of every host (L2, L10)", async (_, remove) => {
    const a = await (await tabs.open()).follow("count", "thread");
    const b = await (await tabs.open()).follow("count", "thread");
    const elsewhere = await (await tabs.open("two")).follow("count", "thread");
    const all = [a, b, elsewhere];
    for (const { tab } of all) await tab.evaluate(() => window.lab.watch());
    await a.run("thread", { n: 5 });
    for (const tab of all) await tab.shows("thread", 5);

    const bystander = await tabs.open("three");
    await bystander.tab.waitFor(() => "lab" in window);
    await remove(bystander);
    for (const tab of all) await toldOfDeletion(tab);

    expect(await elsewhere.run("thread", { n: 3 })).toEqual({ ok: true });
    for (const tab of all) {
      await tab.shows("thread", 3);
      expect((await tab.view("thread")).messages.slice(0, -1)).toEqual(['user: {"n":3}']);
    }
  });
});
