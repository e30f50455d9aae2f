import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { type LabTab, useBrowser } from "./driver/scripted.js";
import { FAULTS } from "./hammer-channel.js";
import { hammer } from "./hammer-drive.js";
import { HostTabs, workerSource } from "./hammer-hosts.js";

const LONG = { n: 10_000, everyMs: 20 };
const BUSY = { ok: false, name: "RunnerError", code: "thread-busy", message: "Thread already running" };
/** The faults are the same code in all engines: elsewhere all of them at once, and the one that is something else. */
const TRIED = inject("engine") === "chromium" ? FAULTS : (["misbehaves", "deafens"] as const);

const given = useBrowser();

describe.each(TRIED)("two hosts on a channel that %s", (fault) => {
  const [one, two] = [`${fault}-1`, `${fault}-2`];
  let tabs: HostTabs;
  let here: LabTab;
  let there: LabTab;
  beforeAll(async () => {
    tabs = new HostTabs(given, { [one]: workerSource("faulty"), [two]: workerSource("faulty") });
    [here, there] = [await tabs.open(one), await tabs.open(two)];
  });
  afterAll(() => tabs.close());

  test("a run is followed in the other host, there and back (L2)", async () => {
    for (const tab of [here, there]) await tab.follow("count", "followed");
    for (const [index, [runs, follows]] of [[here, there] as const, [there, here] as const].entries()) {
      const n = 40 + index;
      expect(await runs.run("followed", { n, everyMs: 5 })).toEqual({ ok: true });
      await follows.shows("followed", n);
    }
    const [a, b] = [await here.view("followed"), await there.view("followed")];
    expect(a.messages).toEqual(b.messages);
    expect(a.messages).toHaveLength(4);
  });

  test("a second run is refused by the other host while the first goes on (L5)", async () => {
    await here.follow("count", "taken");
    await here.start("taken", LONG, "first");
    await here.counted("taken", 1);
    for (let n = 0; n < 3; n++) expect(await there.runUnseen("count", "taken")).toMatchObject(BUSY);
    expect((await here.view("taken")).run).toMatchObject({ is: "running", runId: "first" });
    await here.stop("taken");
    await here.settled("taken");
    expect(await there.runUnseen("count", "taken", { n: 1 })).toEqual({ ok: true });
  });

  test("a stop of the other host ends a run that says nothing (L7, L11)", async () => {
    await here.follow("silent", "stopped");
    await here.start("stopped", "wait");
    await here.running("stopped");
    await there.follow("silent", "stopped");
    await there.running("stopped");
    await there.stop("stopped");
    for (const tab of [here, there]) {
      const { run, ends } = await tab.settled("stopped");
      expect(run).toMatchObject({ last: { status: "stopped" } });
      expect(ends).toEqual([{ type: "RUN_FINISHED", outcome: "cancelled" }]);
    }
    expect(await there.runUnseen("count", "stopped", { n: 1 })).toEqual({ ok: true });
  });

  // The last one: the first host is another one after it.
  test("the host of a run dies: the run is broken for all, once, and keeps what it had (L8, L9)", async () => {
    await here.follow("count", "broken");
    await here.start("broken", LONG, "doomed");
    await here.counted("broken", 1);
    await there.follow("count", "broken");
    for (const tab of [here, there]) await tab.counted("broken", 3);
    const shown = await Promise.all([here, there].map((tab) => tab.view("broken")));
    await tabs.endHost(here, one);
    const views = await Promise.all([here, there].map((tab) => tab.settled("broken")));
    for (const { run, ends, text } of views) {
      expect(run).toMatchObject({
        is: "idle",
        last: { runId: "doomed", status: "broken", error: { code: "RUN_BROKEN" } },
      });
      expect(ends).toEqual([{ type: "RUN_ERROR", code: "RUN_BROKEN", message: expect.any(String) }]);
      for (const before of shown) expect(text.startsWith(before.text)).toBe(true);
    }
    expect(views[0]!.messages).toEqual(views[1]!.messages);
    expect(await there.runUnseen("count", "broken", { n: 1 })).toEqual({ ok: true });
  });
});

test("hosts hammer the same threads over channels of every fault: no law is broken (L2, L3, L5, L7)", async () => {
  const hosts = ["misbehaves-1", "misbehaves-2", "deafens-1"];
  const tabs = new HostTabs(given, Object.fromEntries(hosts.map((host) => [host, workerSource("faulty")])));
  onTestFinished(() => tabs.close());
  const faults = await hammer(tabs, hosts, { seed: inject("propertySeed"), threads: ["x", "y"], slices: 1 });
  expect(faults, `PROPERTY_SEED=${inject("propertySeed")}`).toEqual([]);
});
