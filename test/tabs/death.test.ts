import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { type LabTab, LabTabs, numbers, useBrowser } from "./driver/scripted.js";
import type { View } from "./pages/scripted.js";

const engine = inject("engine");
const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

/** A test of a fault that only Chromium's driver can cause. */
const testInChromium = (name: string, run: () => Promise<void>): void => {
  if (engine === "chromium") test(name, run);
};

const tabOn = async (agentId: string, host = "one", threadId = "thread") =>
  (await tabs.open(host)).follow(agentId, threadId);

/** What is a matter of luck is tried in several; a worker that ended itself is slow to be replaced in Firefox. */
const SEVERAL = Array.from({ length: engine === "chromium" ? 4 : 2 }, (_, n) => `thread-${n}`);

const LONG = { n: 100_000, everyMs: 10 };

/** What the tabs show of the thread, once each has counted a little. */
async function midRun(following: readonly LabTab[]): Promise<View[]> {
  for (const tab of following) await tab.counted("thread", 20);
  return Promise.all(following.map((tab) => tab.view("thread")));
}

/** All tabs tell the same: the run is broken, once, and nothing that one of them showed is gone (L8, L9). */
async function expectBroken(following: readonly LabTab[], shown: readonly View[], runId: string): Promise<void> {
  const views = await Promise.all(
    following.map(async (tab) => {
      // A new page may know how the run stands before it has loaded what applies its events.
      await tab.tab.waitFor((thread) => window.lab.view(thread).ends.length > 0, "thread");
      return tab.settled("thread");
    }),
  );
  for (const { ends, run, text, messages } of views) {
    expect(ends).toEqual([{ type: "RUN_ERROR", code: "RUN_BROKEN", message: expect.any(String) }]);
    expect(ends).toEqual(views[0]!.ends);
    expect(run).toMatchObject({ is: "idle", last: { runId, status: "broken", error: { code: "RUN_BROKEN" } } });
    expect(messages).toEqual(views[0]!.messages);
    expect(numbers(LONG.n).startsWith(text)).toBe(true);
    for (const before of shown) expect(text.startsWith(before.text)).toBe(true);
  }
}

/** The tab's connection to a host that was not there before. */
async function connectedAnew(tab: LabTab, before: string) {
  await tab.tab.waitFor((old) => {
    const { status } = window.lab;
    return status.is === "connected" && status.bootId !== old;
  }, before);
  const status = await tab.status();
  if (status.is !== "connected") throw new Error(`the tab is ${status.is}`);
  return status;
}

async function bootIdOf(tab: LabTab): Promise<string> {
  return (await connectedAnew(tab, "none")).bootId;
}

describe("the SharedWorker dies in the middle of a run", () => {
  test("three tabs see the same end, and nothing that they showed is gone (L8, L9)", async () => {
    const all = [await tabOn("count"), await tabOn("count"), await tabOn("count")];
    await all[1]!.start("thread", LONG, "doomed");
    const shown = await midRun(all);
    await tabs.endHost(all[0]!);
    await expectBroken(all, shown, "doomed");
  });

  test("the tabs meet in one new host, and none was reloaded (L9)", async () => {
    const all = [await tabOn("count"), await tabOn("count"), await tabOn("count")];
    const loaded = () => Promise.all(all.map(({ tab }) => tab.evaluate(() => performance.timeOrigin)));
    const before = await bootIdOf(all[0]!);
    const origins = await loaded();
    await all[0]!.start("thread", LONG);
    await midRun(all);
    await tabs.endHost(all[0]!);
    const anew = await Promise.all(all.map((tab) => connectedAnew(tab, before)));
    expect(new Set(anew.map(({ bootId }) => bootId)).size).toBe(1);
    for (const { tab } of all) {
      await tab.waitFor(() => window.lab.status.is === "connected" && window.lab.status.tabs === 3);
    }
    expect(await loaded()).toEqual(origins);
  });

  test("the next run works, in each tab (L9)", async () => {
    const all = [await tabOn("count"), await tabOn("count"), await tabOn("count")];
    await all[0]!.start("thread", LONG);
    await midRun(all);
    await tabs.endHost(all[0]!);
    for (const tab of all) await tab.settled("thread");
    for (const [index, tab] of all.entries()) {
      expect(await tab.run("thread", { n: 5 + index })).toEqual({ ok: true });
      for (const other of all) {
        await other.shows("thread", 5 + index);
      }
    }
  });

  test("a run started the moment the tab is connected again stays in its messages: several times (L2)", async () => {
    const tab = await tabs.open();
    for (const thread of SEVERAL) {
      await tab.follow("count", thread);
      await tab.run(thread, { n: 3 });
      const next = tab.tab.evaluate(
        (id) =>
          new Promise((resolve) => {
            let lost = false;
            const watching = window.lab.runtime.status$.subscribe((status) => {
              if (status.is === "connected" && lost) {
                setTimeout(() => watching.unsubscribe());
                resolve(window.lab.run(id, { n: 20, everyMs: 5 }));
              }
              lost = status.is === "reconnecting";
            });
          }),
        thread,
      );
      await tabs.endHost(tab);
      expect(await next).toEqual({ ok: true });
      // Another follower has what the thread has: the first one has to agree, and to stay with it.
      const other = await tabOn("count", "one", thread);
      await other.tab.waitFor((it) => window.lab.view(it).messages.length === 4, thread);
      expect(await tab.view(thread)).toMatchObject({
        text: numbers(20),
        messages: (await other.view(thread)).messages,
        ends: [{ type: "RUN_FINISHED" }, { type: "RUN_FINISHED" }],
      });
    }
  });

  test("it dies three times, in three runs: each is broken and keeps what it had (L9)", async () => {
    const all = [await tabOn("count"), await tabOn("count")];
    for (const runId of ["first", "second", "third"]) {
      const before = await bootIdOf(all[0]!);
      await all[1]!.start("thread", LONG, runId);
      for (const tab of all) {
        await tab.tab.waitFor((id) => {
          const { run, text } = window.lab.view("thread");
          return run.is === "running" && run.runId === id && text.split(" ").length > 5;
        }, runId);
      }
      await tabs.endHost(all[0]!);
      for (const tab of all) {
        await tab.tab.waitFor((id) => {
          const { run } = window.lab.view("thread");
          return run.is === "idle" && run.last?.runId === id && run.last.status === "broken";
        }, runId);
        await connectedAnew(tab, before);
      }
    }
    const views = await Promise.all(all.map((tab) => tab.view("thread")));
    for (const { ends, messages } of views) {
      expect(ends.map(({ code }) => code)).toEqual(["RUN_BROKEN", "RUN_BROKEN", "RUN_BROKEN"]);
      expect(messages).toHaveLength(6);
      expect(messages).toEqual(views[0]!.messages);
    }
  });
});

describe("a SharedWorker that never answers", () => {
  test("is passed over: a tab that comes gets one of another name, and so does the next one (L13)", async () => {
    const one = await tabOn("count");
    const firstHost = await bootIdOf(one);
    await tabs.blockHost(one);
    const come = (): Promise<unknown> =>
      one.tab.evaluate(async (name) => {
        const runtime = window.lab.connect(name, "shared-worker", 9_000);
        await runtime.threads.list();
        return new Promise((resolve) =>
          runtime.status$.subscribe((status) => {
            if (status.is === "connected") resolve({ host: status.host, bootId: status.bootId });
          }),
        );
      }, tabs.workerName("one"));
    const [second, third] = [await come(), await come()];
    expect(second).toMatchObject({ host: "shared-worker", bootId: expect.not.stringContaining(firstHost) });
    expect(third).toEqual(second);
  });
});

describe("calls that are under way when the SharedWorker dies", () => {
  test("a run that was asked for as it died is executed once, or ends with an error: several times (L5, L13)", async () => {
    const tab = await tabs.open();
    for (const thread of SEVERAL) {
      await tab.follow("noted", thread);
      const before = await bootIdOf(tab);
      const [outcome] = await Promise.all([tab.run(thread, { n: 5 }), tabs.endHost(tab)]);
      await connectedAnew(tab, before);
      if (!outcome.ok) {
        expect(outcome).toMatchObject({ name: "RunnerError", code: "host-lost" });
        continue;
      }
      const { ends, text } = await tab.settled(thread);
      expect(ends).toHaveLength(1);
      const [end] = ends;
      if (end?.type === "RUN_FINISHED") expect(text).toBe(numbers(5));
      else expect(end).toMatchObject({ type: "RUN_ERROR", code: "RUN_BROKEN" });
      // Whatever became of it, the thread takes the next.
      expect(await tab.run(thread, { n: 7 })).toEqual({ ok: true });
      expect((await tab.view(thread)).text).toBe(numbers(7));
    }
    const started = (await tab.notes()).filter(({ is }) => is === "started");
    expect(new Set(started.map(({ runId }) => runId)).size).toBe(started.length);
  });

  testInChromium("a run that the host never took is executed by the next one, once (L13)", async () => {
    const tab = await tabOn("noted");
    const before = await bootIdOf(tab);
    await tabs.blockHost(tab, "one", "ended");
    await tab.start("thread", { n: 5 }, "late");
    await tabs.endHost(tab);
    expect(await tab.settled("thread")).toMatchObject({
      text: numbers(5),
      ends: [{ type: "RUN_FINISHED" }],
      outcomes: [{ ok: true }],
      run: { last: { runId: "late", status: "finished" } },
    });
    expect((await bootIdOf(tab)) === before).toBe(false);
    expect((await tab.notes()).filter(({ is }) => is === "started")).toHaveLength(1);
  });

  testInChromium("a list that the host did not give is given by the next one (L13)", async () => {
    const tab = await tabOn("count");
    await tab.run("thread", { n: 3 });
    // A worker that ends before it has said that it obeys would be waited for.
    await tabs.blockHost(tab, "one", "ended");
    const listing = tab.tab.evaluate(async () => {
      const threads = await window.lab.runtime.threads.list();
      return threads.map(({ threadId }) => threadId);
    });
    await tabs.endHost(tab);
    expect(await listing).toEqual(["thread"]);
  });

  testInChromium("a stop that the own host did not pass on reaches the run by the next one (L11, L13)", async () => {
    const holder = await tabOn("count", "one");
    const other = await tabOn("count", "two");
    await holder.start("thread", LONG, "the-run");
    await other.counted("thread", 5);
    await other.tab.evaluate(async (worker) => {
      await window.lab.blockHost(worker, "ended");
      window.lab.stop("thread");
    }, tabs.workerName("two"));
    await tabs.endHost(other, "two");
    for (const tab of [holder, other]) {
      expect((await tab.settled("thread")).run).toEqual({ is: "idle", last: { runId: "the-run", status: "stopped" } });
    }
  });

  test("a stop as it dies: the run ends once, stopped or broken, and the thread is free (L7, L13)", async () => {
    const all = [await tabOn("count"), await tabOn("count")];
    await all[0]!.start("thread", LONG);
    await midRun(all);
    await Promise.all([all[1]!.stop("thread"), tabs.endHost(all[0]!)]);
    const [a, b] = await Promise.all(all.map((tab) => tab.settled("thread")));
    expect(a!.ends).toHaveLength(1);
    expect(b!.ends).toEqual(a!.ends);
    expect(["stopped", "broken"]).toContain(a!.run.is === "idle" && a!.run.last?.status);
    expect(await all[1]!.run("thread", { n: 4 })).toEqual({ ok: true });
  });
});

describe("the tab of a run is gone", () => {
  testInChromium("its process crashes, and the run goes on for the others (L11)", async () => {
    // The worker lives in the process of the tab that was there first.
    const first = await tabOn("count");
    const runs = await tabOn("count");
    await first.hold("thread");
    await runs.start("thread", { n: 150, everyMs: 10, heldAt: 100 });
    await midRun([first, runs]);
    await runs.tab.crash();
    await first.letGo("thread");
    expect(await first.settled("thread")).toMatchObject({
      text: numbers(150),
      ends: [{ type: "RUN_FINISHED" }],
      run: { last: { status: "finished" } },
    });
  });

  testInChromium("the worker goes down with its process: the run is broken for the others (L8, L9)", async () => {
    const runs = await tabOn("count");
    const others = [await tabOn("count"), await tabOn("count")];
    await runs.start("thread", LONG, "doomed");
    const shown = await midRun([runs, ...others]);
    await runs.tab.crash();
    await expectBroken(others, shown, "doomed");
    expect(await others[0]!.run("thread", { n: 5 })).toEqual({ ok: true });
    // The crashed tab, loaded again, shows what the others show.
    await runs.tab.reload();
    await runs.follow("count", "thread");
    await runs.shows("thread", 5);
    expect((await runs.view("thread")).messages).toEqual((await others[0]!.view("thread")).messages);
  });

  test("it was the only one and came back: the thread takes the next run (L9)", async () => {
    const before = await tabOn("count");
    await before.start("thread", LONG);
    const [shown] = await midRun([before]);
    await tabs.endHost(before);
    await before.tab.close();
    const after = await tabOn("count");
    const { text, run } = await after.settled("thread");
    expect(run).toMatchObject({ last: { status: "broken" } });
    expect(text.startsWith(shown!.text)).toBe(true);
    expect(await after.run("thread", { n: 5 })).toEqual({ ok: true });
  });
});

describe("the whole browser is killed in the middle of a run", () => {
  test("what was shown is there, the run is broken once, and the next one works (L8, L9)", async () => {
    const before = [await tabOn("count"), await tabOn("count")];
    await before[0]!.run("thread", { n: 3 });
    await before[0]!.start("thread", LONG, "doomed");
    const shown = await midRun(before);
    await given.killAndRestart();
    const after = [await tabOn("count"), await tabOn("count")];
    await expectBroken(after, shown, "doomed");
    expect((await after[0]!.view("thread")).messages.slice(0, 2)).toEqual([
      `user: {"n":3}`,
      `assistant: ${numbers(3)}`,
    ]);
    expect(await after[1]!.run("thread", { n: 5 })).toEqual({ ok: true });
    for (const tab of after) {
      await tab.shows("thread", 5);
      expect((await tab.view("thread")).ends.map(({ type }) => type)).toEqual(["RUN_ERROR", "RUN_FINISHED"]);
    }
  });

  test("runs of several threads under way are all broken, and all threads are free (L9)", async () => {
    const before = await tabs.open();
    for (const thread of SEVERAL) {
      await before.follow("count", thread);
      await before.start(thread, LONG);
    }
    for (const thread of SEVERAL) await before.counted(thread, 5);
    await given.killAndRestart();
    const after = await tabs.open();
    for (const thread of SEVERAL) {
      await after.follow("count", thread);
      expect((await after.settled(thread)).run).toMatchObject({ last: { status: "broken" } });
      expect(await after.run(thread, { n: 2 })).toEqual({ ok: true });
    }
  });
});

describe("of two hosts of the database", () => {
  test("one that runs nothing dies: nothing happens to the run of the other (L5)", async () => {
    const holder = await tabOn("count", "one");
    const other = await tabOn("count", "two");
    await holder.hold("thread");
    await holder.start("thread", { n: 200, everyMs: 10, heldAt: 100 }, "the-run");
    await midRun([holder, other]);
    await tabs.endHost(other, "two");
    await holder.letGo("thread");
    for (const tab of [holder, other]) {
      expect(await tab.settled("thread")).toMatchObject({
        text: numbers(200),
        ends: [{ type: "RUN_FINISHED" }],
        run: { last: { runId: "the-run", status: "finished" } },
      });
    }
  });

  test("the holder dies: who follows by the other sees it broken, once, and the thread is free (L9)", async () => {
    const holder = await tabOn("count", "one");
    const others = [await tabOn("count", "two"), await tabOn("count", "two")];
    await holder.start("thread", LONG, "doomed");
    const shown = await midRun([holder, ...others]);
    await tabs.endHost(holder, "one");
    await expectBroken([holder, ...others], shown, "doomed");
    expect(await others[0]!.run("thread", { n: 5 })).toEqual({ ok: true });
    await holder.shows("thread", 5);
  });

  testInChromium("both die at once: the run is broken once for all (L9)", async () => {
    const all = [await tabOn("count", "one"), await tabOn("count", "two")];
    await all[0]!.start("thread", LONG, "doomed");
    const shown = await midRun(all);
    expect(await given.browser.endSharedWorkers(tabs.workerName(""))).toBe(2);
    await expectBroken(all, shown, "doomed");
    expect(await all[1]!.run("thread", { n: 5 })).toEqual({ ok: true });
    await all[0]!.shows("thread", 5);
  });
});
