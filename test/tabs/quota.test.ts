import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { type LabTab, LabTabs, numbers, useBrowser } from "./driver/scripted.js";

/** Only Chromium lets a test say how much an origin may store. */
describe.runIf(inject("engine") === "chromium")("a full disk", () => {
  const given = useBrowser();
  const { origin } = new URL(inject("pages"));
  let tabs: LabTabs;
  let quota = 0;
  /** A little each time: the browser goes on for 30 s with the room that it found. */
  const makeRoom = (): Promise<void> => given.browser.setQuota(origin, (quota += 3_000_000));
  beforeEach(async () => {
    tabs = new LabTabs(given);
    await makeRoom();
  });
  afterEach(() => tabs.close());

  const lost = { is: "idle", last: { status: "broken" } };
  const full = { ok: false, name: "RunnerError", code: "quota-exceeded" };
  /** Has room nowhere: the browser cannot compress it. */
  const large = randomBytes(100_000).toString("base64");

  /** Until the end of a run has no room either: what is too large for the rest leaves room for what is smaller. */
  const fill = async (tab: LabTab): Promise<void> => {
    for (const kilobytes of [100, 5, 0]) {
      const order = { n: 100_000, everyMs: 1, kilobytes };
      expect(await tab.runUnseen("fill", `ballast ${kilobytes}`, order)).toMatchObject(full);
    }
  };

  /** Waits until the thread's stopped run is over for this tab. Its end has no room, unless the browser has tidied its files. */
  const seesItOver = async (tab: LabTab, threadId: string): Promise<void> => {
    await tab.settled(threadId);
    const { run } = await tab.view(threadId);
    const { status, error } = (run.is === "idle" && run.last) || {};
    expect(["broken quota-exceeded", "stopped undefined"]).toContain(`${status} ${error?.code}`);
  };

  /** The same of one that nobody stopped. */
  const seesItBroken = async (tab: LabTab, threadId: string): Promise<void> => {
    await tab.settled(threadId);
    const { run } = await tab.view(threadId);
    expect(run).toMatchObject(lost);
    expect(["quota-exceeded", "RUN_BROKEN"]).toContain(run.is === "idle" && run.last?.error?.code);
  };

  test("ends a run with a typed error in every tab; what was shown stays, and the thread goes on once there is room (L8, L10)", async () => {
    const a = await (await tabs.open()).follow("fill", "thread");
    const b = await (await tabs.open()).follow("fill", "thread");
    const elsewhere = await (await tabs.open("two")).follow("fill", "thread");
    await a.start("thread", { n: 100_000, everyMs: 10 });
    for (const tab of [a, b, elsewhere]) await tab.running("thread");
    await fill(a);
    for (const tab of [a, b, elsewhere]) await seesItBroken(tab, "thread");
    const { text } = await b.view("thread");
    expect(text).not.toBe("");
    expect(numbers(100_000).startsWith(text)).toBe(true);

    // History can be read, in every host.
    await b.tab.reload();
    await b.follow("fill", "thread");
    await seesItBroken(b, "thread");
    expect((await b.view("thread")).text.startsWith(text)).toBe(true);
    expect(await b.runUnseen("echo", "thread", { large })).toMatchObject(full);
    expect(await b.runUnseen("echo", "another", { large })).toMatchObject(full);

    await makeRoom();
    for (const tab of [a, b, elsewhere]) {
      // Its end is written now, without anybody's doing.
      await tab.tab.waitFor(() => window.lab.view("thread").ends.at(-1)?.code === "RUN_BROKEN");
      const { run, ends } = await tab.view("thread");
      expect(run).toMatchObject({ is: "idle", last: { status: "broken", error: { code: "RUN_BROKEN" } } });
      expect(ends.at(-1)?.message).toContain("quota");
    }
    expect(await a.run("thread", { n: 3, kilobytes: 1 })).toEqual({ ok: true });
    for (const tab of [a, b, elsewhere]) {
      expect((await tab.settled("thread")).text).toBe(numbers(3));
      expect((await tab.view("thread")).messages).toHaveLength(4);
    }
  });

  test("does not keep a run from being stopped, in its own host and in another (L7, L10, L11)", async () => {
    const a = await (await tabs.open()).follow("silent", "first");
    await a.follow("silent", "second");
    const elsewhere = await (await tabs.open("two")).follow("silent", "first");
    await a.start("first", "wait");
    await a.start("second", "wait");
    await elsewhere.running("first");
    await fill(a);
    await elsewhere.stop("first");
    await a.stop("second");
    for (const [tab, thread] of [
      [a, "first"],
      [elsewhere, "first"],
      [a, "second"],
    ] as const)
      await seesItOver(tab, thread);

    await makeRoom();
    for (const [tab, thread] of [
      [a, "first"],
      [elsewhere, "first"],
      [a, "second"],
    ] as const) {
      await tab.tab.waitFor((it) => {
        const { run, ends } = window.lab.view(it);
        return ends.at(-1)?.outcome === "cancelled" && run.is === "idle" && run.last?.status === "stopped";
      }, thread);
    }
  });
});
