import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { type NatsServers, startNats } from "../setup/nats.mjs";
import { canRemove, isInFiles, managerOf, streamOf } from "../sync/kit.js";
import { linkTo, type Link } from "../sync/link.js";
import type { Tab } from "./driver/browser.js";
import { launch } from "./driver/launch.js";
import { numbers } from "./driver/scripted.js";
import { type DeviceSettings, deviceWorkerName } from "./pages/sync-name.js";

/*
 * Two browser profiles as two devices, kept in step over real NATS servers.
 */

const engine = inject("engine");
const isChromium = engine === "chromium";
const T = "thread";
let tests = 0;

type Launched = Awaited<ReturnType<typeof launch>>;

class Device {
  browser: Launched | undefined;
  tabs: Tab[] = [];
  dbName = "";
  #url = "";

  constructor(readonly name: string) {}

  async start(profile?: string): Promise<void> {
    this.browser = await launch(engine, profile === undefined ? {} : { profile });
  }

  /** Fresh for a test. */
  joins(
    space: string,
    servers: readonly string[],
    isEncrypted = false,
    keep: DeviceSettings["keep"] = "all",
    dbName = space,
  ): void {
    this.dbName = dbName;
    const worker = deviceWorkerName({ dbName, servers, space, device: this.name, isEncrypted, keep });
    this.#url = `${inject("pages")}sync-device.html?worker=${encodeURIComponent(worker)}`;
  }

  async open(...threads: string[]): Promise<Tab> {
    const tab = await this.browser!.newTab(this.#url);
    this.tabs.push(tab);
    await tab.waitFor(() => "synced" in window);
    for (const thread of threads) await tab.evaluate((id) => window.synced.open(id), thread);
    return tab;
  }

  /** WebKitGTK keeps nothing of a browser that a driver has started. */
  async startAnew(): Promise<void> {
    if (engine === "webkit") await this.closeTabs();
    else await this.killAndRestart();
  }

  async killAndRestart(): Promise<void> {
    const { profile } = this.browser!;
    await this.browser!.kill();
    this.tabs = [];
    await this.start(profile);
  }

  async endHost(): Promise<void> {
    if (!isChromium) return this.tabs[0]!.evaluate(() => window.synced.endHost());
    expect(await this.browser!.endSharedWorkers(this.dbName)).toBe(1);
  }

  async closeTabs(): Promise<void> {
    await Promise.allSettled(this.tabs.map((tab) => tab.close()));
    this.tabs = [];
  }
}

const phone = new Device("Phone");
const laptop = new Device("Laptop");
let nats: NatsServers;

beforeAll(async () => {
  nats = await startNats();
  await phone.start();
  await laptop.start();
});
afterAll(async () => {
  await phone.browser?.close();
  await laptop.browser?.close();
  await nats?.stop();
});
beforeEach(() => both(nats.wsUrls));
afterEach(async () => {
  await phone.closeTabs();
  await laptop.closeTabs();
});

function both(servers: readonly string[], ofPhone = servers, isEncrypted = false): void {
  const space = `sync-${process.pid}-${tests++}`;
  phone.joins(space, ofPhone, isEncrypted);
  laptop.joins(space, servers, isEncrypted);
}

/** A tab of each device that shows the thread, both in step. */
async function pair(): Promise<[ofPhone: Tab, ofLaptop: Tab]> {
  const tabs = [await phone.open(T), await laptop.open(T)] as const;
  for (const tab of tabs) await current(tab, 2);
  return [...tabs];
}

const view = (tab: Tab, thread = T) => tab.evaluate((id) => window.synced.view(id), thread);
const start = (tab: Tab, order: unknown, runId: string, thread = T) =>
  tab.evaluate((id, it, run) => window.synced.start(id, it, run), thread, order, runId);
const hold = (tab: Tab) => tab.evaluate((id) => window.synced.hold(id), T);
const letGo = (tab: Tab) => tab.evaluate((id) => window.synced.letGo(id), T);
const log = (tab: Tab, thread = T) => tab.evaluate((id) => window.synced.log(id), thread);
const messages = (tab: Tab) => tab.evaluate((id) => window.synced.messages(id), T);

/** Waits until the tab's device has everything, and as many devices are online. */
const current = (tab: Tab, devices?: number) =>
  tab.waitFor((many) => {
    const { sync } = window.synced;
    return sync?.isCurrent === true && (many === null || sync.devices.length === many);
  }, devices ?? null);
const offline = (tab: Tab) => tab.waitFor(() => window.synced.sync?.is !== "online");
const shows = (tab: Tab, text: string) => tab.waitFor((id, it) => window.synced.view(id).text === it, T, text);
const isIdle = (tab: Tab) => tab.waitFor((id) => window.synced.view(id).run.is === "idle", T);
const treeIs = (tab: Tab, expected: Record<string, string>) =>
  tab.waitFor(
    async (id, wanted) => JSON.stringify(await window.synced.tree(id)) === wanted,
    T,
    JSON.stringify(expected),
  );
const sameShown = async (...tabs: Tab[]): Promise<string[]> => {
  const [first, ...others] = await Promise.all(tabs.map((tab) => view(tab)));
  for (const other of others) expect(other.messages).toEqual(first!.messages);
  for (const { isShorter } of [first!, ...others]) expect(isShorter).toBe(false);
  return first!.messages;
};
const noErrors = (): void => {
  for (const { name, tabs } of [phone, laptop])
    for (const { errors } of tabs) expect([name, ...errors]).toEqual([name]);
};

const PATIENT = { timeout: 0.5 * Number(process.env["TEST_LIMIT_MS"] ?? 150_000) };

/** A thread that changes again rests anew: up to two minutes. */
const RESTING = { timeout: 4 * PATIENT.timeout };

/** Counts to 29, and on to the end when it is let go. */
const HELD = { n: 60, heldAt: 30 };

describe("a run of one device", () => {
  test("streams into all tabs of the other before it ends, and is in its database (L5)", async () => {
    const [a, b] = await pair();
    const b2 = await laptop.open(T);
    await hold(a);
    await start(a, HELD, "run-one");
    for (const tab of [a, b, b2]) await shows(tab, numbers(30));
    for (const tab of [a, b, b2]) expect((await view(tab)).run).toMatchObject({ is: "running", runId: "run-one" });
    await letGo(a);
    for (const tab of [a, b, b2]) {
      await shows(tab, numbers(60));
      await isIdle(tab);
    }
    await sameShown(a, b, b2);
    for (const tab of [b, b2]) expect((await view(tab)).ends).toEqual(["RUN_FINISHED"]);
    const [ofPhone, ofLaptop] = [await log(a), await log(b)];
    expect(ofLaptop).toEqual(ofPhone);
    expect(ofLaptop.runs).toMatchObject([{ runId: "run-one", status: "finished" }]);
    const records = await b.evaluate(() => window.synced.recordsOf("run-one"));
    expect(records["runs"]).toBe(1);
    expect(await b.evaluate((id) => window.synced.deviceOf(id, "run-one"), T)).toBe("Phone");
    expect(await a.evaluate(async (id) => (await window.synced.deviceOf(id, "run-one")) ?? "here", T)).toBe("here");
    noErrors();
  });

  test("keeps the thread from the other, by name, and is stopped from there (L1)", async () => {
    const [a, b] = await pair();
    const [a2, b2] = [await phone.open(T), await laptop.open(T)];
    await hold(a);
    await start(a, HELD, "run-a");
    for (const tab of [a, a2, b, b2]) await shows(tab, numbers(30));
    const other = await laptop.open("elsewhere");
    // Who follows the thread knows by itself; who does not is told by the host. Both say which device it is.
    await start(b2, { n: 3 }, "run-b");
    await b2.waitFor((id) => window.synced.view(id).outcomes.length === 1, T);
    expect((await view(b2)).outcomes).toMatchObject([{ code: "thread-busy", runId: "run-a", device: "Phone" }]);
    expect(await other.evaluate((id) => window.synced.runUnseen(id, { n: 3 }, "run-b"), T)).toEqual({
      code: "thread-busy",
      runId: "run-a",
      device: "Phone",
    });
    expect(await b.evaluate((id) => window.synced.stop(id), T)).toBe(true);
    for (const tab of [a, a2, b, b2]) {
      await isIdle(tab);
      await treeIs(tab, { "run-a": "stopped after nothing" });
    }
    await letGo(a);
    const shown = await sameShown(a, a2, b);
    expect(shown).toEqual([expect.stringContaining("user run-a-u"), expect.stringContaining(numbers(30))]);
    // And the thread is free, there too.
    await start(b, { n: 4 }, "run-c");
    for (const tab of [a, a2, b]) await shows(tab, numbers(4));
    await start(other, { n: 2 }, "run-d", "elsewhere");
    await a.waitFor(async () => (await window.synced.listed()).length === 2);
  });
});

describe("without servers", () => {
  async function goOnApart(servers: NatsServers, numbersOfThem: readonly number[]): Promise<void> {
    const [a, b] = await pair();
    await start(a, { n: 3 }, "first");
    for (const tab of [a, b]) await shows(tab, numbers(3));
    for (const tab of [a, b]) await treeIs(tab, { first: "finished after nothing" });
    for (const at of numbersOfThem) await servers.kill(at);
    for (const tab of [a, b]) await offline(tab);
    await start(a, { n: 7 }, "of-phone");
    await shows(a, numbers(7));
    await start(b, { n: 9 }, "of-laptop");
    await shows(b, numbers(9));
    // None of a cluster is ready alone.
    await Promise.all(numbersOfThem.map((at) => servers.restart(at)));
    const expected = {
      first: "finished after nothing",
      "of-laptop": "finished after first",
      "of-phone": "finished after first",
    };
    for (const tab of [a, b]) {
      await current(tab, 2);
      await treeIs(tab, expected);
    }
    const [ofPhone, ofLaptop] = await Promise.all([log(a), log(b)]);
    const byId = ({ runs }: typeof ofPhone) => Object.fromEntries(runs.map((run) => [run.runId, run]));
    expect(byId(ofLaptop)).toEqual(byId(ofPhone));
    // Which of the two was published first nobody knows; all devices agree.
    await a.waitFor(async (id, wanted) => wanted.includes(JSON.stringify(await window.synced.messages(id))), T, [
      JSON.stringify(await messages(b)),
    ]);
    expect([numbers(7), numbers(9)].some((text) => JSON.stringify(ofPhone.messages).includes(text))).toBe(true);
    const path = await messages(b);
    for (const tab of [a, b]) {
      await tab.waitFor(
        (id, wanted) => JSON.stringify(window.synced.view(id).messages) === wanted,
        T,
        JSON.stringify(path),
      );
    }
    await start(a, { n: 12 }, "after");
    for (const tab of [a, b]) await shows(tab, numbers(12));
    expect((await messages(b)).slice(0, path.length)).toEqual(path);
  }

  test("both devices go on, and have both branches and one active path when the server is back (L8)", () =>
    goOnApart(nats, [0]));

  test("a branch that people take up, and go on from, is the active path when the server is back (L20)", async () => {
    const [a, b] = await pair();
    await start(a, { n: 3 }, "first");
    for (const tab of [a, b]) await shows(tab, numbers(3));
    for (const tab of [a, b]) await treeIs(tab, { first: "finished after nothing" });
    await nats.kill(0);
    for (const tab of [a, b]) await offline(tab);
    await start(a, { n: 5 }, "left");
    await shows(a, numbers(5));
    await isIdle(a);
    await a.evaluate((id) => window.synced.instead(id, { n: 6 }, "instead"), T);
    await shows(a, numbers(6));
    await isIdle(a);
    await a.evaluate((id) => window.synced.takeUp(id, "left"), T);
    await shows(a, numbers(5));
    await start(a, { n: 8 }, "on");
    await shows(a, numbers(8));
    await nats.restart(0);
    const expected = {
      first: "finished after nothing",
      instead: "finished after first",
      left: "finished after first",
      on: "finished after left",
    };
    for (const tab of [a, b]) {
      await current(tab, 2);
      await treeIs(tab, expected);
      await shows(tab, numbers(8));
    }
    expect(await messages(b)).toEqual(await messages(a));
    noErrors();
  });

  test("both answer under the id of the run that asked: all have both answers, and one active path (L8)", async () => {
    const [a, b] = await pair();
    for (const tab of [a, b]) await tab.evaluate((id) => window.synced.open(id, "asker"), T);
    await start(a, {}, "asks");
    for (const tab of [a, b]) await shows(tab, "May I?");
    for (const tab of [a, b]) await treeIs(tab, { asks: "finished after nothing" });
    await nats.kill(0);
    for (const tab of [a, b]) await offline(tab);
    for (const [tab, said] of [[a, "yes"] as const, [b, "no"] as const]) {
      await tab.evaluate((id, what) => window.synced.answer(id, what, "asks"), T, said);
      await shows(tab, said);
    }
    await nats.restart(0);
    const runsOf = (tab: Tab) => tab.evaluate((id) => window.synced.runsOf(id, "asks"), T);
    for (const tab of [a, b]) {
      await current(tab, 2);
      await tab.waitFor(async (id) => (await window.synced.runsOf(id, "asks")).length === 3, T);
    }
    expect(await runsOf(b)).toEqual(await runsOf(a));
    await vi.waitFor(async () => expect(await messages(a)).toEqual(await messages(b)), PATIENT);
    expect((await messages(a)).at(-1)).toMatch(/: (yes|no)$/);
    for (const tab of [a, b]) await shows(tab, (await view(a)).text);
    noErrors();
  });

  test("a cluster of three that is gone as a whole, and one of it later", async () => {
    const cluster = await startNats({ servers: 3 });
    onTestFinished(() => cluster.stop());
    both(cluster.wsUrls);
    await goOnApart(cluster, [0, 1, 2]);
    const [a, b] = [phone.tabs[0]!, laptop.tabs[0]!];
    await cluster.kill(1);
    for (const [n, tab] of [a, b].entries()) {
      await current(tab);
      await start(tab, { n: 20 + n }, `with-two-${n}`);
      for (const one of [a, b]) await shows(one, numbers(20 + n));
    }
  });
});

test.runIf(isChromium)("a device is killed in the middle of a run, and returns on its profile (L8, L9)", async () => {
  const [a, b] = await pair();
  await hold(a);
  await start(a, HELD, "doomed");
  await shows(b, numbers(30));
  const before = await view(b);
  await phone.killAndRestart();
  await b.waitFor((id) => window.synced.view(id).run.is === "idle", T);
  await treeIs(b, { doomed: "broken after nothing" });
  expect((await view(b)).messages).toEqual(before.messages);
  await start(b, { n: 5 }, "next");
  await shows(b, numbers(5));
  await isIdle(b);
  const again = await phone.open(T);
  for (const tab of [again, b]) {
    await current(tab, 2);
    await treeIs(tab, { doomed: "broken after nothing", next: "finished after doomed" });
  }
  await shows(again, numbers(5));
  await sameShown(again, b);
  // How it ended is what its own device says.
  const own = await log(again);
  expect(JSON.stringify(own.messages)).toContain(numbers(30));
  await expect.poll(() => log(b), PATIENT).toEqual(own);
});

test.runIf(isChromium)(
  "the watching device's host dies: its tabs go on with the run to its real end (L5, L9)",
  async () => {
    const [a, b] = await pair();
    const b2 = await laptop.open(T);
    await hold(a);
    await start(a, { ...HELD, n: 2_000, everyMs: 1 }, "long");
    for (const tab of [b, b2]) await shows(tab, numbers(30));
    await laptop.endHost();
    await letGo(a);
    for (const tab of [a, b, b2]) {
      await shows(tab, numbers(2_000));
      await isIdle(tab);
      await treeIs(tab, { long: "finished after nothing" });
    }
    await sameShown(a, b, b2);
    expect(await log(b)).toEqual(await log(a));
    for (const tab of [b, b2]) expect((await view(tab)).ends.filter((end) => end === "RUN_FINISHED")).toHaveLength(1);
  },
);

test("a thread is renamed, archived and deleted in the open tabs of the other", async () => {
  const [a, b] = await pair();
  await start(a, { n: 3 }, "run");
  await shows(b, numbers(3));
  await isIdle(b);
  const is = (tab: Tab, wanted: unknown) =>
    tab.waitFor(async (id, it) => JSON.stringify(await window.synced.thread(id)) === it, T, JSON.stringify(wanted));
  await a.evaluate((id) => window.synced.rename(id, "A name"), T);
  await is(b, { title: "A name", archived: false });
  await b.evaluate((id) => window.synced.archive(id), T);
  await is(a, { title: "A name", archived: true });
  await a.evaluate((id) => window.synced.remove(id), T);
  await is(b, "none");
  await b.waitFor((id) => window.synced.view(id).messages.length === 0, T);
  expect(await b.evaluate(() => window.synced.listed())).toEqual([]);
  noErrors();
});

test("a new device with little room has the list, then what is opened; offline, an absent thread comes later (L2, L8)", async () => {
  const space = `sync-new-${process.pid}-${tests++}`;
  const link = await linkTo(nats.wsUrls[0]!);
  laptop.joins(space, nats.wsUrls);
  phone.joins(space, [link.url], false, "opened");
  const b = await laptop.open(T, "two", "three");
  await current(b, 1);
  for (const [n, thread] of [T, "two", "three"].entries()) {
    await start(b, { n: 10 + n }, `run-${n}`, thread);
    await b.waitFor((id, it) => window.synced.view(id).text === it, thread, numbers(10 + n));
  }
  await b.evaluate((id) => window.synced.rename(id, "Renamed"), "two");
  const a = await phone.open();
  const wanted = JSON.stringify(await b.evaluate(() => window.synced.listed()));
  await a.waitFor(async (list) => JSON.stringify(await window.synced.listed()) === list, wanted);
  expect(await a.evaluate(() => window.synced.absent())).toEqual([T, "three", "two"].toSorted());
  expect((await a.evaluate(() => window.synced.recordsOf("run-1")))["runs"]).toBe(0);
  await a.evaluate((id) => window.synced.open(id), T);
  await shows(a, numbers(10));
  expect(await log(a)).toEqual(await log(b));
  // It follows from then on, and the others stay away.
  await start(b, { n: 15 }, "later");
  await shows(a, numbers(15));
  expect(await a.evaluate(() => window.synced.absent())).toEqual(["three", "two"]);
  link.cut();
  await offline(a);
  expect(await a.evaluate((id) => window.synced.codeOfReading(id), "two")).toBe("offline");
  await a.evaluate((id) => window.synced.open(id), "two");
  link.mend();
  await a.waitFor((id, it) => window.synced.view(id).text === it, "two", numbers(11));
  expect(await a.evaluate(() => window.synced.absent())).toEqual(["three"]);
  // A restart changes nothing of that.
  await phone.closeTabs();
  const a2 = await phone.open("three");
  await a2.waitFor((id, it) => window.synced.view(id).text === it, "three", numbers(12));
  expect(await a2.evaluate(() => window.synced.absent())).toEqual([]);
});

test("threads beyond a device's limit leave it when it starts anew, and come whole when they are opened again (L2)", async () => {
  const space = `sync-limit-${process.pid}-${tests++}`;
  laptop.joins(space, nats.wsUrls);
  phone.joins(space, nats.wsUrls, false, 1);
  const b = await laptop.open(T, "two", "three");
  await current(b, 1);
  for (const [n, thread] of [T, "two", "three"].entries()) {
    await start(b, { n: 10 + n }, `run-${n}`, thread);
    await b.waitFor((id, it) => window.synced.view(id).text === it, thread, numbers(10 + n));
  }
  const a = await phone.open(T, "two", "three");
  const haveAll = async (tab: Tab): Promise<void> => {
    for (const [n, thread] of [T, "two", "three"].entries())
      await tab.waitFor((id, it) => window.synced.view(id).text === it, thread, numbers(10 + n));
  };
  // What was opened stays while this worker lives.
  await haveAll(a);
  expect(await a.evaluate(() => window.synced.absent())).toEqual([]);
  const listed = JSON.stringify(await a.evaluate(() => window.synced.listed()));
  await phone.startAnew();
  const a2 = await phone.open();
  await a2.waitFor(async () => (await window.synced.absent()).length === 2);
  expect(await a2.evaluate(() => window.synced.absent())).toEqual([T, "two"]);
  expect(JSON.stringify(await a2.evaluate(() => window.synced.listed()))).toBe(listed);
  // Nothing of them is left in the database.
  await a2.waitFor(async () => {
    const counts = await Promise.all(["run-0", "run-1"].map((run) => window.synced.recordsOf(run)));
    return counts.every((stores) => Object.entries(stores).every(([store, n]) => store === "absent" || n === 0));
  });
  for (const thread of [T, "two", "three"]) await a2.evaluate((id) => window.synced.open(id), thread);
  await haveAll(a2);
  for (const thread of [T, "two"]) expect(await log(a2, thread)).toEqual(await log(b, thread));
  // The laptop, which keeps all, lost nothing.
  expect(await b.evaluate(() => window.synced.absent())).toEqual([]);
  await haveAll(b);
});

test(
  "the entries of threads at rest become few, and a device that was away or is new has all (L2, L8)",
  RESTING,
  async ({ skip }) => {
    skip(!(await canRemove(nats)), "these servers are too old for that");
    both(nats.wsUrls);
    const space = phone.dbName;
    const manager = await managerOf(nats);
    const entries = async (): Promise<number> => (await manager.streams.info(streamOf(space))).state.messages;
    const [a, b] = await pair();
    await start(a, { n: 400, everyMs: 8 }, "streamed");
    for (const tab of [a, b]) await shows(tab, numbers(400));
    await b.evaluate((id) => window.synced.open(id), "gone");
    await start(b, { n: 3 }, "gone", "gone");
    await b.waitFor((id) => window.synced.view(id).run.is === "idle", "gone");
    await treeIs(b, { streamed: "finished after nothing" });
    expect(await entries()).toBeGreaterThan(64);
    const known = await log(a);
    // The phone has not read all when it is closed, and misses what comes then.
    await phone.closeTabs();
    await b.evaluate((id) => window.synced.remove(id), "gone");
    await start(b, { n: 80, everyMs: 5 }, "more");
    await shows(b, numbers(80));
    await vi.waitFor(async () => expect(await entries()).toBeLessThan(8), {
      timeout: 2 * PATIENT.timeout,
      interval: 500,
    });
    const expected = await messages(b);
    const back = await phone.open(T);
    await current(back);
    await shows(back, numbers(80));
    expect(await messages(back)).toEqual(expected);
    expect((await log(back)).runs).toMatchObject([{ runId: "more", status: "finished" }, known.runs[0]]);
    expect(await back.evaluate(() => window.synced.listed())).toHaveLength(1);
    await start(back, { n: 4 }, "next");
    for (const tab of [back, b]) await shows(tab, numbers(4));
    await phone.closeTabs();
    // A database that was never here.
    phone.joins(space, nats.wsUrls, false, "all", `${space}-new`);
    const fresh = await phone.open(T);
    await shows(fresh, numbers(4));
    expect(await messages(fresh)).toEqual(await messages(b));
    noErrors();
  },
);

describe("the network of one device", () => {
  async function linked(): Promise<[Link, Tab, Tab]> {
    const link = await linkTo(nats.wsUrls[0]!);
    both(nats.wsUrls, [link.url]);
    const [a, b] = await pair();
    return [link, a, b];
  }

  test.runIf(isChromium)("is cut in the middle of its run: the other gets the rest when it is back (L8)", async () => {
    const [link, a, b] = await linked();
    await hold(a);
    await start(a, HELD, "run");
    await shows(b, numbers(30));
    link.cut();
    await offline(a);
    await letGo(a);
    await shows(a, numbers(60));
    expect((await view(b)).text).toBe(numbers(30));
    link.mend();
    await shows(b, numbers(60));
    for (const tab of [a, b]) await treeIs(tab, { run: "finished after nothing" });
    await sameShown(a, b);
    expect(await log(b)).toEqual(await log(a));
  });

  test.runIf(isChromium)(
    "is cut for longer than a device counts as there: its run goes on in place of the broken one",
    async () => {
      const [link, a, b] = await linked();
      await hold(a);
      await start(a, HELD, "run");
      await shows(b, numbers(30));
      link.cut();
      await treeIs(b, { run: "broken after nothing" });
      await letGo(a);
      await shows(a, numbers(60));
      link.mend();
      for (const tab of [a, b]) {
        await treeIs(tab, { run: "finished after nothing" });
        await shows(tab, numbers(60));
      }
      await sameShown(a, b);
      expect(await log(b)).toEqual(await log(a));
    },
  );

  test.runIf(isChromium)(
    "is silent, and nobody is told: it is offline after a while, and in step when it is back",
    async () => {
      const [link, a, b] = await linked();
      link.freeze();
      await start(b, { n: 5 }, "of-laptop");
      await shows(b, numbers(5));
      await offline(a);
      link.mend();
      await shows(a, numbers(5));
      await sameShown(a, b);
    },
  );

  test.runIf(isChromium)("is slow: everything arrives, in order", async () => {
    const [link, a, b] = await linked();
    link.slow(300);
    await start(a, { n: 300, everyMs: 2 }, "run");
    for (const tab of [a, b]) await shows(tab, numbers(300));
    await start(b, { n: 10 }, "back");
    for (const tab of [a, b]) {
      await shows(tab, numbers(10));
      await treeIs(tab, { back: "finished after run", run: "finished after nothing" });
    }
    await sameShown(a, b);
    expect(await log(b)).toEqual(await log(a));
  });
});

/** The code of encrypted spaces. */
const SEALED = /sealed-space/;

test("with encryption, devices are in step while they are unlocked, and what they say is readable nowhere else", async () => {
  both(nats.wsUrls, nats.wsUrls, true);
  const PASSPHRASE = "correct horse battery staple";
  const PLANTED = "PLANTED-in-a-run";
  const [a, b] = [await phone.open(T), await laptop.open(T)];
  const isLocked = (tab: Tab) =>
    tab.waitFor(() => {
      const { is, message = "" } = window.synced.sync ?? {};
      return is === "offline" && message.includes("locked");
    });
  for (const tab of [a, b]) await isLocked(tab);
  for (const tab of [a, b]) await tab.evaluate((passphrase) => window.synced.unlock(passphrase), PASSPHRASE);
  for (const tab of [a, b]) await current(tab, 2);
  await start(a, { n: 30, note: PLANTED }, "run-one");
  for (const tab of [a, b]) await shows(tab, numbers(30));
  await start(b, { n: 5, note: PLANTED }, "run-two");
  for (const tab of [a, b]) {
    await shows(tab, numbers(5));
    await treeIs(tab, { "run-one": "finished after nothing", "run-two": "finished after run-one" });
  }
  expect((await sameShown(a, b)).filter((line) => line.includes(PLANTED))).toHaveLength(2);
  await a.evaluate((id, title) => window.synced.rename(id, title), T, PLANTED);
  await b.waitFor(async (id, title) => JSON.stringify(await window.synced.thread(id)).includes(title), T, PLANTED);
  for (const tab of [a, b])
    expect(await tab.evaluate((text) => window.synced.databasesWith(text), PLANTED)).toEqual([]);
  // Ids of runs are not encrypted there: what is in them would be found.
  expect(await a.evaluate((text) => window.synced.databasesWith(text), "run-one")).not.toEqual([]);
  expect(isInFiles(nats.folder, PLANTED)).toBe(false);
  expect((await a.evaluate(() => window.synced.loaded())).filter((name) => SEALED.test(name))).not.toEqual([]);
  await b.evaluate(() => window.synced.lock());
  await isLocked(b);
  await current(a, 1);
  await start(a, { n: 7 }, "run-three");
  await shows(a, numbers(7));
  await b.evaluate((passphrase) => window.synced.unlock(passphrase), PASSPHRASE);
  await current(b, 2);
  await treeIs(b, {
    "run-one": "finished after nothing",
    "run-three": "finished after run-two",
    "run-two": "finished after run-one",
  });
});

describe("calls of front-end tools", () => {
  const offered = (tab: Tab) => tab.evaluate(() => window.synced.offered());
  const callsAre = (tab: Tab, ...calls: string[]) =>
    tab.waitFor((wanted) => JSON.stringify(window.synced.offered().calls) === wanted, JSON.stringify(calls));
  const answerCall = (tab: Tab, result: string) => tab.evaluate((it) => window.synced.answerCall(it), result);
  const says = (tab: Tab, text: string) =>
    tab.waitFor((wanted) => window.synced.offered().said.at(-1) === wanted, `assistant: ${text}`);

  /** A tab of each device that shows the thread of an agent, and offers its tools. */
  async function offering(): Promise<[ofPhone: Tab, ofLaptop: Tab]> {
    const tabs = [await phone.open(), await laptop.open()] as const;
    for (const tab of tabs) await current(tab, 2);
    for (const tab of tabs) await tab.evaluate((id) => window.synced.offer(id), T);
    for (const tab of tabs) await tab.waitFor(() => window.synced.offered().isReady);
    return [...tabs];
  }

  test("a person answers on the other device, once, and the agent goes on with that", async () => {
    const [a, b] = await offering();
    await a.evaluate(() => window.synced.call("c"));
    await callsAre(a, "c open");
    await callsAre(b, "c open elsewhere");
    expect(await answerCall(b, "from the laptop")).toBe("ok");
    for (const tab of [a, b]) await says(tab, "from the laptop");
    for (const tab of [a, b]) await callsAre(tab);
    expect((await offered(a)).said).toEqual((await offered(b)).said);
    noErrors();
  });

  test("a handler runs on the device that has called; what a person is asked waits also when that device is gone", async () => {
    const [a, b] = await offering();
    await a.evaluate(() => window.synced.call("a"));
    for (const tab of [a, b]) await says(tab, "a of Phone");
    await a.evaluate(() => window.synced.call("c a"));
    await callsAre(a, "c open", "a answered");
    await callsAre(b, "c open elsewhere", "a answered elsewhere");
    await phone.closeTabs();
    expect(await answerCall(b, "late")).toBe("ok");
    await says(b, "late, a of Phone");
    noErrors();
  });
});

test("a host without the option loads nothing of it", async () => {
  const loaded = (tab: Tab) => tab.evaluate(() => window.synced.loaded());
  const [a] = await pair();
  // WebKit lists what was loaded a while later.
  const natsIsThere = async () => (await loaded(a)).some((name) => name.includes("nats"));
  await expect.poll(natsIsThere, PATIENT).toBe(true);
  const ofSync = (await loaded(a)).filter((name) => /nats|sync|start-/.test(name));
  const own = ofSync.filter((name) => !name.includes("sync-name"));
  // And with it, nothing of encryption.
  expect((await loaded(a)).filter((name) => SEALED.test(name))).toEqual([]);
  await phone.closeTabs();
  both([]);
  const alone = await phone.open(T);
  await start(alone, { n: 3 }, "run");
  await shows(alone, numbers(3));
  const names = await loaded(alone);
  for (const name of own) expect(names).not.toContain(name);
  expect(await alone.evaluate(() => JSON.stringify(window.synced.sync ?? "none"))).toBe('"none"');
  noErrors();
});
