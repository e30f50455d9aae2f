import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { threadLockName } from "../../src/platform/names.js";
import { type LabTab, numbers, useBrowser } from "./driver/scripted.js";
import { HostTabs, workerSource } from "./hammer-hosts.js";
import type { View } from "./pages/scripted.js";

/** For how long a holder is kept from everything in the long run, in ms, while another thread goes on. */
const HINDERED_MS = 60_000;

const STOPPED = [{ type: "RUN_FINISHED", outcome: "cancelled" }];

const given = useBrowser();
let tabs: HostTabs;
beforeEach(() => {
  tabs = new HostTabs(given, { faulty: workerSource("faulty"), dedicated: "dedicated" });
});
afterEach(() => tabs.close());

const tabOn = async (agentId: string, host: string) => (await tabs.open(host)).follow(agentId, "thread");

/** How many events of the thread's first run stand in the log. */
const chunksOf = ({ tab }: LabTab): Promise<number> =>
  tab.evaluate(
    (dbName) =>
      new Promise<number>((resolve, reject) => {
        const opening = indexedDB.open(dbName);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const db = opening.result;
          const range = IDBKeyRange.bound(["thread", 0], ["thread", 0, []]);
          const reading = db.transaction("chunks").objectStore("chunks").getAll(range);
          // Records of a run that is over may be joined.
          reading.onsuccess = () => resolve(reading.result.reduce((sum: number, it) => sum + Number(it.count), 0));
          reading.onerror = () => reject(reading.error);
          db.close();
        };
      }),
    tabs.dbName,
  );

/** Waits until the agent `deaf` has said ten numbers more. */
async function goesOn({ tab }: LabTab): Promise<void> {
  const before = await tab.evaluate(async () => (await window.lab.notes()).length);
  await tab.waitFor(async (least) => (await window.lab.notes()).length >= least, before + 10);
}

/** All tabs show the same, and were told of the same ends. */
function expectAgreement(views: readonly View[]): void {
  for (const { messages, ends } of views) {
    expect(messages).toEqual(views[0]!.messages);
    expect(ends).toEqual(views[0]!.ends);
  }
}

describe("the thread's lock is stolen in the middle of a run", () => {
  /** A page takes the lock and keeps it until `window.letGo()`. */
  const steal = ({ tab }: LabTab): Promise<void> =>
    tab.evaluate(
      (name) =>
        new Promise<void>((taken) => {
          const kept = new Promise<void>((letGo) => Object.assign(window, { letGo }));
          void navigator.locks.request(name, { steal: true }, () => {
            taken();
            return kept;
          });
        }),
      threadLockName(tabs.dbName, "thread"),
    );
  const letGo = ({ tab }: LabTab): Promise<void> =>
    tab.evaluate(() => (window as unknown as { letGo: () => void }).letGo());

  test("by a page: the run is broken for all tabs, which are told why (L7)", async () => {
    const robbed = await tabOn("deaf", "faulty");
    const others = [await tabOn("deaf", "faulty"), await tabOn("count", "two")];
    await robbed.start("thread", "go", "robbed");
    for (const tab of [robbed, ...others]) await tab.counted("thread", 5);
    await steal(others[1]!);
    const views = await Promise.all([robbed, ...others].map((tab) => tab.settled("thread")));
    for (const { run, ends } of views) {
      expect(run).toMatchObject({
        is: "idle",
        last: { runId: "robbed", status: "broken", error: { code: "RUN_BROKEN" } },
      });
      const message = expect.stringContaining("Another host took the thread over");
      expect(ends).toEqual([{ type: "RUN_ERROR", code: "RUN_BROKEN", message }]);
    }
    expectAgreement(views);
  });

  test("by a page: the agent goes on, and nothing of it is written (L6)", async () => {
    const robbed = await tabOn("deaf", "faulty");
    await robbed.start("thread", "go");
    await robbed.counted("thread", 5);
    await steal(robbed);
    const { text } = await robbed.settled("thread");
    const chunks = await chunksOf(robbed);
    await goesOn(robbed);
    expect(await chunksOf(robbed)).toBe(chunks);
    expect((await robbed.view("thread")).text).toBe(text);
  });

  test("by a page that keeps it: no run is taken; once it lets go, the next one is (L5, L7)", async () => {
    const robbed = await tabOn("deaf", "faulty");
    const other = await tabOn("count", "two");
    await robbed.start("thread", "go");
    await other.counted("thread", 5);
    await steal(other);
    await Promise.all([robbed.settled("thread"), other.settled("thread")]);
    for (const tab of [robbed, other])
      expect(await tab.runUnseen("count", "thread")).toMatchObject({ code: "thread-busy" });
    await letGo(other);
    for (const [index, tab] of [robbed, other].entries()) {
      expect(await tab.runUnseen("count", "thread", { n: 3 + index })).toEqual({ ok: true });
      await Promise.all([robbed.shows("thread", 3 + index), other.shows("thread", 3 + index)]);
    }
  });
});

describe("a run is stopped whose holder", () => {
  interface Hindrance {
    readonly host: string;
    /** Returns what ends it. */
    readonly begin: (holder: LabTab, other: LabTab) => Promise<() => Promise<void>>;
  }

  /** A worker that is held up in a transaction keeps all hosts from theirs. */
  async function betweenTwoNumbers(holder: LabTab): Promise<void> {
    const { text } = await holder.view("thread");
    await holder.counted("thread", text.split(" ").length);
  }

  /** A busy loop in the holder. Over when the holder answers. */
  const blocked = (host: string): Hindrance => ({
    host,
    async begin(holder) {
      const { tab } = holder;
      // In one call: on a busy machine the next number is on its way before a second one is there.
      await tab.evaluate(async (name) => {
        const { text } = window.lab.view("thread");
        while (window.lab.view("thread").text === text) await new Promise((resolve) => setTimeout(resolve, 5));
        await window.lab.blockHost(name, "let go");
      }, tabs.workerName(host));
      await tab.evaluate(() => {
        const ask = (): Promise<void> => window.lab.runtime.threads.list().then(() => undefined, ask);
        void ask().then(() => (document.documentElement.dataset.answered = ""));
      });
      return async () => {
        expect(await tab.attr("data-answered")).toBe(null);
        await tabs.letHostGoOn(host);
        await tab.waitForAttr("data-answered", "");
      };
    },
  });

  /** Chromium freezes the workers of a tab with it: the agent says nothing while another host counts. */
  async function expectStill(other: LabTab): Promise<void> {
    await other.follow("count", "elsewhere");
    const written = async (): Promise<number> => {
      expect(await other.run("elsewhere", { n: 40, everyMs: 20 })).toEqual({ ok: true });
      return chunksOf(other);
    };
    expect(await written()).toBe(await written());
  }

  const hindrances: Readonly<Record<string, Hindrance>> = {
    "is a SharedWorker that is blocked": blocked("one"),
    "is the worker of a tab and is blocked": blocked("dedicated"),
    ...(inject("engine") === "chromium" && {
      "is the worker of a frozen tab": {
        host: "dedicated",
        async begin(holder, other) {
          await other.tab.bringToFront();
          await betweenTwoNumbers(holder);
          await holder.tab.freeze();
          await expectStill(other);
          return () => holder.tab.thaw();
        },
      },
    }),
  };

  for (const [name, { host, begin }] of Object.entries(hindrances)) {
    test(`${name}: it ends as stopped for all, and the thread is free (L6, L7, L11)`, async () => {
      const holder = await tabOn("count", host);
      const other = await tabOn("count", "two");
      await holder.start("thread", { n: 10_000, everyMs: 750 }, "hindered");
      for (const tab of [holder, other]) await tab.counted("thread", 5);
      const end = await begin(holder, other);
      await other.stop("thread");
      const stopped = await other.settled("thread");
      expect(stopped.run).toEqual({ is: "idle", last: { runId: "hindered", status: "stopped" } });
      expect(stopped.ends).toEqual(STOPPED);
      const chunks = await chunksOf(other);
      expect(await other.run("thread", { n: 3 })).toEqual({ ok: true });

      if (inject("propertyFactor") > 1)
        await other.runUnseen("count", "elsewhere", { n: HINDERED_MS / 20, everyMs: 20 });
      await end();
      await holder.shows("thread", 3);
      expect(await chunksOf(other)).toBe(chunks);
      expect(await holder.run("thread", { n: 4 })).toEqual({ ok: true });
      await other.shows("thread", 4);
      const views = await Promise.all([holder, other].map((tab) => tab.view("thread")));
      expectAgreement(views);
      expect(views[0]!.ends).toEqual([...STOPPED, { type: "RUN_FINISHED" }, { type: "RUN_FINISHED" }]);
    });
  }
});

/** No other driver can freeze a tab. */
const testInChromium = inject("engine") === "chromium" ? test : () => undefined;

testInChromium(
  "a frozen tab of a SharedWorker costs the others nothing, and has everything in order when it thaws (L2, L14)",
  async () => {
    const frozen = await tabOn("count", "one");
    const others = [await tabOn("count", "one"), await tabOn("count", "one")];
    await others[0]!.hold("thread");
    await frozen.start("thread", { n: 600, everyMs: 5, heldAt: 300 });
    for (const tab of [frozen, ...others]) await tab.counted("thread", 20);
    await others[0]!.tab.bringToFront();
    await frozen.tab.freeze();
    const { text } = await frozen.view("thread");
    await others[0]!.letGo("thread");
    for (const tab of others) expect(await tab.settled("thread")).toMatchObject({ text: numbers(600) });
    expect(await others[1]!.run("thread", { n: 50 })).toEqual({ ok: true });
    await others[0]!.shows("thread", 50);
    // It was frozen.
    expect(await frozen.view("thread")).toMatchObject({ text, run: { is: "running" } });

    await frozen.tab.thaw();
    await frozen.shows("thread", 50);
    const views = await Promise.all([frozen, ...others].map((tab) => tab.settled("thread")));
    expectAgreement(views);
    expect(views[0]!.ends).toEqual([{ type: "RUN_FINISHED" }, { type: "RUN_FINISHED" }]);
    expect(views[0]!.outcomes).toEqual([{ ok: true }]);
  },
);
