import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import type { Browser } from "./driver/browser.js";
import { launch } from "./driver/launch.js";
import { type LabTab, numbers } from "./driver/scripted.js";
import { hammer } from "./hammer-drive.js";
import { HostTabs, workerSource } from "./hammer-hosts.js";
import { type InsecureOrigin, startInsecureOrigin } from "./insecure-origin.js";
import { check } from "./soak/check.js";

const engine = inject("engine");
const LONG = { n: 10_000, everyMs: 10 };
const BUSY = { ok: false, name: "RunnerError", code: "thread-busy", message: "Thread already running" };
/** Longer than a holder may be silent before another host takes its threads over, in ms. */
const BLOCKED_MS = 16_000;

let insecure: InsecureOrigin;
let browser: Browser | undefined;
const given = {
  get browser() {
    if (!browser) throw new Error("the browser was not started");
    return browser;
  },
};
beforeAll(async () => {
  insecure = await startInsecureOrigin(engine, inject("pages"));
  browser = await launch(engine, { preferences: insecure.preferences });
});
afterAll(async () => {
  await browser?.close();
  await insecure.close();
});

let tabs: HostTabs;
afterEach(() => tabs.close());

const tabOn = async (agentId: string, host = "one", threadId = "thread") =>
  (await tabs.open(host)).follow(agentId, threadId);

const connectedTabs = ({ tab }: LabTab, count: number): Promise<unknown> =>
  tab.waitFor((n) => window.lab.status.is === "connected" && window.lab.status.tabs === n, count);

/** The chunks of the thread's first run as they stand in the log, as text. */
const chunksOf = ({ tab }: LabTab): Promise<string> =>
  tab.evaluate(
    (name) =>
      new Promise<string>((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const ofRun = IDBKeyRange.bound(["thread", 0], ["thread", 0, []]);
          const reading = opening.result.transaction("chunks").objectStore("chunks").getAll(ofRun);
          opening.result.close();
          reading.onsuccess = () => resolve(JSON.stringify(reading.result));
          reading.onerror = () => reject(reading.error);
        };
      }),
    tabs.dbName,
  );

describe("pages and workers whose navigator has no locks", () => {
  /** The page and the workers of these tabs have lost their Web Locks before any other code of theirs ran. */
  class TabsWithoutLocks extends HostTabs {
    constructor() {
      const host = workerSource("no-locks");
      super(given, { one: host, two: host, deaf: workerSource("no-locks-deaf") });
    }

    override url(host?: string): string {
      return super.url(host).replace("hosts.html", "no-locks.html");
    }
  }
  beforeEach(() => {
    tabs = new TabsWithoutLocks();
  });

  test("the status says that the fence alone keeps a thread to one run (L5)", async () => {
    const tab = await tabOn("count");
    await connectedTabs(tab, 1);
    expect(await tab.status()).toMatchObject({ host: "shared-worker", durability: "durable", exclusion: "fence" });
    expect(await tab.tab.evaluate(() => navigator.locks)).toBe(undefined);
  });

  test("tabs of two hosts follow one run whole, through a reload in the middle of it (L2)", async () => {
    const all = [await tabOn("count"), await tabOn("count"), await tabOn("count", "two")];
    const [starts, reloads] = all as [LabTab, LabTab];
    await starts.start("thread", { n: 200, everyMs: 10 });
    for (const tab of all) await tab.counted("thread", 20);
    await reloads.tab.reload();
    await reloads.follow("count", "thread");
    for (const tab of all) {
      expect(await tab.settled("thread")).toMatchObject({ text: numbers(200), run: { last: { status: "finished" } } });
      expect((await tab.view("thread")).messages).toHaveLength(2);
    }
  });

  test("a second run is refused while the first one is live, by its host and by another (L5)", async () => {
    const holder = await tabOn("count");
    await holder.start("thread", LONG, "the-run");
    await holder.counted("thread", 1);
    for (const host of ["one", "two"]) {
      const other = await tabOn("count", host, "elsewhere");
      expect(await other.runUnseen("count", "thread")).toEqual({ ...BUSY, runId: "the-run" });
    }
    expect((await holder.view("thread")).run).toMatchObject({ is: "running", runId: "the-run" });
    await holder.stop("thread");
    await holder.settled("thread");
  });

  test("of runs started at once on two hosts none overlaps another or breaks it: 20 times (L5)", async () => {
    const both = [await tabOn("noted", "one"), await tabOn("noted", "two")];
    for (let round = 0; round < 20; round++) {
      const order = { n: 20, everyMs: 5 };
      const outcomes = await Promise.all(both.map((tab) => tab.runUnseen("noted", "thread", order)));
      // The two need not overlap; two runs that both succeed came one after the other.
      expect(outcomes.some(({ ok }) => ok)).toBe(true);
      for (const outcome of outcomes) if (!outcome.ok) expect(outcome).toMatchObject(BUSY);
    }
    const notes = await both[0]!.notes();
    const { overlaps, twice } = check({ seen: [], log: [], shown: [], notes });
    expect({ overlaps, twice }).toEqual({ overlaps: [], twice: [] });
    const taken = notes.filter(({ is }) => is === "started").length;
    for (const { tab } of both) {
      await tab.waitFor((least) => window.lab.view("thread").ends.length >= least, taken);
      const ends = await tab.evaluate(() => window.lab.view("thread").ends);
      expect(ends).toEqual(Array.from({ length: taken }, () => ({ type: "RUN_FINISHED" })));
    }
  });

  test("a tab of another host stops a run, and the thread is free for it at once (L7, L11)", async () => {
    const both = [await tabOn("silent"), await tabOn("silent", "two")];
    const [holder, other] = both as [LabTab, LabTab];
    await holder.start("thread", "wait");
    await other.running("thread");
    await other.stop("thread");
    for (const tab of both) {
      const { run, ends } = await tab.settled("thread");
      expect(run).toMatchObject({ last: { status: "stopped" } });
      expect(ends).toEqual([{ type: "RUN_FINISHED", outcome: "cancelled" }]);
    }
    expect(await other.runUnseen("echo", "thread", "next")).toEqual({ ok: true });
  });

  test("a tab that closes counts no more, and its run goes on (L11)", async () => {
    const [closes, stays] = [await tabOn("count"), await tabOn("count")];
    await connectedTabs(stays, 2);
    await closes.start("thread", { n: 150, everyMs: 10 });
    await stays.counted("thread", 5);
    await closes.tab.close();
    await connectedTabs(stays, 1);
    expect((await stays.settled("thread")).text).toBe(numbers(150));
  });

  test.runIf(engine === "chromium")("a tab whose process crashed counts no more (L14)", async () => {
    // The worker lives in the process of the tab that was there first.
    const [stays, crashes] = [await tabOn("count"), await tabOn("count")];
    await connectedTabs(stays, 2);
    await crashes.tab.crash();
    await connectedTabs(stays, 1);
  });

  test("the host of a run dies: it is broken for all, its tab is connected again, the thread is free (L8, L9)", async () => {
    const both = [await tabOn("count"), await tabOn("count", "two")];
    const [holder, other] = both as [LabTab, LabTab];
    await holder.start("thread", LONG, "doomed");
    for (const tab of both) await tab.counted("thread", 20);
    const shown = await Promise.all(both.map((tab) => tab.view("thread")));
    await tabs.endHost(holder);
    const views = await Promise.all(both.map((tab) => tab.settled("thread")));
    for (const [index, { ends, run, text, messages }] of views.entries()) {
      expect(ends).toEqual([{ type: "RUN_ERROR", code: "RUN_BROKEN", message: expect.any(String) }]);
      expect(run).toMatchObject({
        is: "idle",
        last: { runId: "doomed", status: "broken", error: { code: "RUN_BROKEN" } },
      });
      expect(text.startsWith(shown[index]!.text)).toBe(true);
      expect(messages).toEqual(views[0]!.messages);
    }
    await connectedTabs(holder, 1);
    expect(await holder.run("thread", { n: 5 })).toEqual({ ok: true });
    await other.shows("thread", 5);
    expect(await other.run("thread", { n: 7 })).toEqual({ ok: true });
    await holder.shows("thread", 7);
  });

  test("a holder that is blocked for long loses its thread, writes no more, and its tab sees why (L6)", async () => {
    const holder = await tabOn("count", "deaf");
    const other = await tabOn("count", "two");
    // Between two writes: one that is under way would keep everybody out of the database as long as it is blocked.
    await holder.start("thread", { n: 60, everyMs: 50, blockMs: BLOCKED_MS }, "taken");
    await other.counted("thread", 20);
    const broken = { type: "RUN_ERROR", code: "RUN_BROKEN", message: expect.any(String) };
    expect(await other.settled("thread")).toMatchObject({
      ends: [broken],
      run: { last: { runId: "taken", status: "broken" } },
    });
    expect(await other.run("thread", { n: 5 })).toEqual({ ok: true });
    const chunks = await chunksOf(other);

    // It wakes, and its agent goes on until it is told.
    await holder.shows("thread", 5);
    const views = await Promise.all([holder, other].map((tab) => tab.view("thread")));
    for (const { ends, messages } of views) {
      expect(ends).toEqual([broken, { type: "RUN_FINISHED" }]);
      expect(ends).toEqual(views[0]!.ends);
      expect(messages).toEqual(views[0]!.messages);
    }
    await connectedTabs(holder, 1);
    // By now it has given up the run that it lost.
    expect(await holder.runUnseen("echo", "thread", "next")).toEqual({ ok: true });
    expect(await chunksOf(other)).toBe(chunks);
  });

  test("two hosts hammer the same threads: no run overlaps another or is executed twice, everybody shows the same (L2, L3, L5, L7)", async () => {
    const seed = inject("propertySeed");
    const faults = await hammer(tabs, ["one", "two"], { seed, threads: ["north", "east", "south"], slices: 1 });
    expect(faults, `PROPERTY_SEED=${seed}`).toEqual([]);
  });
});

describe("an origin that is not secure", () => {
  beforeEach(() => {
    tabs = new HostTabs(given, {}, insecure.origin);
  });

  /** As `runUnseen`, with ids of its own: an insecure page has no `crypto.randomUUID` either. */
  const run = ({ tab }: LabTab, runId: string, order: unknown) =>
    tab.evaluate(
      async (id, content) => {
        const agent = window.lab.runtime.agent("count", { threadId: "thread" });
        agent.addMessage({ id: `question-${id}`, role: "user", content: JSON.stringify(content) });
        return agent.runAgent({ runId: id }).then(
          () => "ok",
          (error: unknown) => String(error),
        );
      },
      runId,
      order,
    );

  test("runs, follows, refuses and stops over two hosts (L2, L5, L11)", async () => {
    const both = [await tabOn("count"), await tabOn("count", "two")];
    const [holder, other] = both as [LabTab, LabTab];
    expect(await holder.tab.evaluate(() => isSecureContext)).toBe(false);
    await connectedTabs(other, 1);
    expect(await other.status()).toMatchObject({ host: "shared-worker", durability: "durable", exclusion: "fence" });

    expect(await run(holder, "whole", { n: 50, everyMs: 5 })).toBe("ok");
    for (const tab of both) await tab.shows("thread", 50);
    const stopped = run(holder, "stopped", LONG);
    await other.tab.waitFor(() => {
      const { run: known } = window.lab.view("thread");
      return known.is === "running" && known.runId === "stopped";
    });
    expect(await run(other, "refused", LONG)).toBe("RunnerError: Thread already running");
    await other.stop("thread");
    expect(await stopped).toBe("ok");
    expect(await run(other, "next", { n: 5 })).toBe("ok");
    for (const tab of both) await tab.shows("thread", 5);
  });

  test("of runs started at once on two hosts none breaks another: 10 times (L5)", async () => {
    const both = [await tabOn("count"), await tabOn("count", "two")];
    let taken = 0;
    for (let round = 0; round < 10; round++) {
      const outcomes = await Promise.all(both.map((tab, n) => run(tab, `${round}-${n}`, { n: 20, everyMs: 5 })));
      // The two need not overlap; two runs that both succeed came one after the other.
      expect(outcomes).toContain("ok");
      for (const outcome of outcomes) expect(["ok", "RunnerError: Thread already running"]).toContain(outcome);
      taken += outcomes.filter((outcome) => outcome === "ok").length;
    }
    for (const { tab } of both) {
      await tab.waitFor((least) => window.lab.view("thread").ends.length >= least, taken);
      const ends = await tab.evaluate(() => window.lab.view("thread").ends);
      expect(ends).toEqual(Array.from({ length: taken }, () => ({ type: "RUN_FINISHED" })));
    }
  });

  const broken = { type: "RUN_ERROR", code: "RUN_BROKEN", message: expect.any(String) };

  test("the host of a run dies: it is broken for all, and the thread works (L8, L9)", async () => {
    const both = [await tabOn("count"), await tabOn("count", "two")];
    const [holder, other] = both as [LabTab, LabTab];
    void run(holder, "doomed", LONG).catch(() => undefined);
    for (const tab of both) await tab.counted("thread", 20);
    await tabs.endHost(holder);
    for (const tab of both) expect((await tab.settled("thread")).ends).toEqual([broken]);
    await connectedTabs(holder, 1);
    expect(await run(other, "next", { n: 5 })).toBe("ok");
    expect(await run(holder, "last", { n: 7 })).toBe("ok");
    await other.shows("thread", 7);
  });

  test("a holder that is blocked for long loses its thread, and writes no more when it wakes (L6)", async () => {
    const [holder, other] = [await tabOn("count"), await tabOn("count", "two")];
    const blocked = run(holder, "taken", { n: 60, everyMs: 50, blockMs: BLOCKED_MS });
    await other.counted("thread", 20);
    expect((await other.settled("thread")).ends).toEqual([broken]);
    expect(await run(other, "next", { n: 5 })).toBe("ok");
    const chunks = await chunksOf(other);
    await blocked;
    await holder.shows("thread", 5);
    expect((await holder.view("thread")).ends).toEqual([broken, { type: "RUN_FINISHED" }]);
    await connectedTabs(holder, 1);
    expect(await run(holder, "last", { n: 7 })).toBe("ok");
    expect(await chunksOf(other)).toBe(chunks);
  });
});
