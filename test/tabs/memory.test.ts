import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import type { Browser } from "./driver/browser.js";
import { launch } from "./driver/launch.js";
import { LabTab, numbers, useBrowser } from "./driver/scripted.js";
import { HostTabs, workerSource } from "./hammer-hosts.js";

const engine = inject("engine");
/** With what it was, and why. */
const UNAVAILABLE = expect.stringMatching(/The database cannot be opened/) as string;

describe("a host whose IndexedDB refuses to open", () => {
  const given = useBrowser();
  let tabs: HostTabs;
  beforeEach(() => {
    const host = workerSource("no-storage");
    const hosts = { strict: host, memory: host, "memory-no-locks": workerSource("no-locks-no-storage") };
    tabs = new HostTabs(given, hosts);
  });
  afterEach(() => tabs.close());

  const tabOn = async (agentId: string, host = "memory") => (await tabs.open(host)).follow(agentId, "thread");

  /** Ids of the threads that the tab's host has. */
  const threadsOf = ({ tab }: LabTab): Promise<string[]> =>
    tab.evaluate(async () => (await window.lab.runtime.threads.list()).map(({ threadId }) => threadId));

  describe("and that may not keep threads in memory", () => {
    test("tells each tab why nothing can be kept (L10)", async () => {
      for (const tab of [await tabOn("count", "strict"), await tabOn("count", "strict")]) {
        await tab.tab.waitFor(() => window.lab.status.is === "failed");
        expect(await tab.status()).toMatchObject({ error: { code: "storage-unavailable", message: UNAVAILABLE } });
      }
    });

    test("refuses every call with that, and none hangs (L10, L13)", async () => {
      const tab = await tabOn("count", "strict");
      const refused = { ok: false, name: "RunnerError", code: "storage-unavailable", message: UNAVAILABLE };
      expect(await tab.run("thread", { n: 3 })).toMatchObject(refused);
      expect(await tab.runUnseen("count", "another")).toMatchObject(refused);
      const listed = await tab.tab.evaluate(() =>
        window.lab.runtime.threads.list().then(
          () => "listed",
          (error: unknown) => String(error),
        ),
      );
      expect(listed).toEqual(UNAVAILABLE);
    });
  });

  describe("and that may keep threads in memory", () => {
    test("says that it does (L10)", async () => {
      const tab = await tabOn("count");
      await tab.tab.waitFor(() => window.lab.status.is === "connected");
      expect(await tab.status()).toMatchObject({ host: "shared-worker", durability: "memory" });
    });

    test("says that it does where there are no Web Locks either, and runs (L5, L10)", async () => {
      const url = tabs.url("memory-no-locks").replace("hosts.html", "no-locks.html");
      const tab = await new LabTab(await given.browser.newTab(url)).follow("count", "thread");
      expect(await tab.run("thread", { n: 3 })).toEqual({ ok: true });
      expect(await tab.status()).toMatchObject({ durability: "memory", exclusion: "fence" });
      await tab.tab.close();
    });

    test("two tabs follow one run whole, through the reload of one in the middle of it (L2, L11)", async () => {
      const both = [await tabOn("count"), await tabOn("count")];
      const [starts, stays] = both as [LabTab, LabTab];
      await starts.start("thread", { n: 200, everyMs: 10 });
      for (const tab of both) await tab.counted("thread", 20);
      await starts.tab.reload();
      await starts.follow("count", "thread");
      for (const tab of both) {
        const { text, run, messages } = await tab.settled("thread");
        expect(text).toBe(numbers(200));
        expect(run).toMatchObject({ last: { status: "finished" } });
        expect(messages).toHaveLength(2);
      }
      expect(await threadsOf(stays)).toEqual(["thread"]);
    });

    test("a second run is refused, a stop of the other tab ends the first, and the thread is free (L5, L7)", async () => {
      const both = [await tabOn("silent"), await tabOn("silent")];
      const [holder, other] = both as [LabTab, LabTab];
      await holder.start("thread", "wait", "the-run");
      await other.running("thread");
      expect(await other.runUnseen("count", "thread")).toMatchObject({ code: "thread-busy", runId: "the-run" });
      await other.stop("thread");
      for (const tab of both) expect((await tab.settled("thread")).run).toMatchObject({ last: { status: "stopped" } });
      expect(await other.runUnseen("count", "thread", { n: 3 })).toEqual({ ok: true });
      for (const tab of both) await tab.shows("thread", 3);
    });

    test("a host that ends takes its threads with it: no tab hangs, and they begin anew (L10, L13)", async () => {
      const both = [await tabOn("count"), await tabOn("count")];
      const [starts, other] = both as [LabTab, LabTab];
      await starts.run("thread", { n: 5 });
      await starts.start("thread", { n: 10_000, everyMs: 10 });
      for (const tab of both) await tab.counted("thread", 10);
      await tabs.endHost(starts, "memory");
      for (const tab of both) {
        await tab.tab.waitFor(() => window.lab.status.is === "connected" && window.lab.status.tabs === 2);
        await tab.tab.waitFor(() => window.lab.view("thread").run.is === "idle");
      }
      await starts.tab.waitFor(() => window.lab.view("thread").outcomes.length === 2);
      expect((await starts.view("thread")).outcomes[1]).toMatchObject({ ok: false, name: "RunnerError" });
      expect(await threadsOf(other)).toEqual([]);
      const fresh = await tabOn("count");
      expect((await fresh.view("thread")).messages).toEqual([]);
      expect(await fresh.run("thread", { n: 3 })).toEqual({ ok: true });
      for (const tab of [...both, fresh]) await tab.shows("thread", 3);
    });
  });
});

describe("a browser whose user lets no site keep data", () => {
  let browser: Browser;
  beforeAll(async () => {
    // https://chromium.googlesource.com/chromium/src/+/main/components/content_settings/core/common/content_settings.h:
    // 2 blocks. Firefox: https://searchfox.org/mozilla-central/search?q=network.cookie.cookieBehavior, likewise.
    const preferences =
      engine === "chromium"
        ? { profile: { default_content_setting_values: { cookies: 2 } } }
        : { "network.cookie.cookieBehavior": 2 };
    browser = await launch(engine, { preferences });
  });
  afterAll(() => browser?.close());

  const open = (worker: string) => browser.newTab(`${inject("pages")}plain.html?worker=${worker}`);

  test("a tab is told why nothing can be kept, and so is who runs an agent (L10, L13)", async () => {
    const tab = await open("strict");
    await tab.waitFor(() => window.plain.status.is === "failed");
    expect(await tab.evaluate(() => window.plain.status)).toMatchObject({ error: { code: "storage-unavailable" } });
    await tab.evaluate(() => window.plain.send("first"));
    expect(await tab.waitFor(() => window.plain.outcome)).toMatch(/^storage-unavailable: /);
  });

  test("a tab runs and stops an agent where threads may be kept in memory, and prints no errors (L10, L11)", async () => {
    const tab = await open("memory");
    await tab.waitFor(() => window.plain.status.is === "connected");
    expect(await tab.evaluate(() => window.plain.status)).toMatchObject({ durability: "memory", survives: "nothing" });
    await tab.evaluate(() => window.plain.send("first"));
    await tab.waitFor(() => window.plain.messages().length === 2);
    expect(await tab.evaluate(() => window.plain.messages())).toEqual(["This is first", "This is first"]);
    await tab.evaluate(() => window.plain.stop());
    expect(await tab.waitFor(() => window.plain.outcome)).toBe("ok");
    expect(tab.errors).toEqual([]);
  });
});
