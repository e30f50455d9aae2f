import { afterEach, expect, inject, test } from "vitest";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";
import { randomFrom } from "./hammer-random.js";
import type { RecoveryView } from "./pages/recovery.js";

const engine = inject("engine");
const SEED = inject("propertySeed");
const ROUNDS = Math.ceil(6 * inject("propertyFactor"));

const given = useBrowser();
const dbName = `recovery-${process.pid}`;
let threads = 0;
let tabs: (Tab | undefined)[] = [];

afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab?.close()));
  tabs = [];
});

const WORKER = `${dbName}#one`;
const urlOf = (thread: string, agent: string): string =>
  `${inject("pages")}recovery.html?${new URLSearchParams({ worker: WORKER, thread, agent }).toString()}`;

async function open(thread: string, agent = "worker"): Promise<Tab> {
  const tab = await given.browser.newTab(urlOf(thread, agent));
  tabs.push(tab);
  await tab.waitFor(() => "recovery" in window && window.recovery.isReady);
  return tab;
}

/** Ends the worker as a crash would: from outside where the engine can. */
async function endHost(from: Tab): Promise<void> {
  if (engine !== "chromium") return from.evaluate(() => window.recovery.endHost());
  // A new one may be on its way.
  await given.browser.endSharedWorkers(WORKER);
}

const fresh = (): string => `thread-${threads++}`;
const ask = (tab: Tab, content: string, agentId?: string): Promise<void> =>
  tab.evaluate((asked, agent) => window.recovery.ask(asked, agent ?? undefined), content, agentId ?? null);
const view = (tab: Tab): Promise<RecoveryView> => tab.evaluate(() => window.recovery.view());
const ended = (tab: Tab, status: string): Promise<unknown> =>
  tab.waitFor((wanted) => {
    const { run } = window.recovery.view();
    return run.is === "idle" && run.last?.status === wanted;
  }, status);
/** Finished, or left to a person. */
const isOver = (tab: Tab): Promise<unknown> =>
  tab.waitFor(() => {
    const { run } = window.recovery.view();
    if (run.is !== "idle" || run.last === undefined) return false;
    return run.last.status === "finished" || run.last.recovery?.is === "ask";
  });
/** So many words of the thread are shown, or its run is over. */
const shows = (tab: Tab, count: number): Promise<unknown> =>
  tab.waitFor((least) => {
    const { run, said } = window.recovery.view();
    const isDone = run.is === "idle" && (run.last?.status === "finished" || run.last?.recovery?.is === "ask");
    return isDone || said.join(" ").split(" ").length >= least;
  }, count);

const SAID = (tools: number) =>
  [...Array(tools + 1).keys()].map((n) => `assistant: step ${n} of ${tools} says what it has found so far`);

/** What must hold once nothing of a thread is going on any more (issue 16). */
async function isSound(tab: Tab, tools: readonly string[]): Promise<void> {
  const [runs, executed, { said }, afresh] = await Promise.all([
    tab.evaluate(() => window.recovery.runs()),
    tab.evaluate(() => window.recovery.executed()),
    view(tab),
    tab.evaluate(() => window.recovery.afresh()),
  ]);
  const counts = new Map<string, number>();
  for (const { toolCallId, name } of executed) {
    counts.set(toolCallId, (counts.get(toolCallId) ?? 0) + 1);
    if (name === "pay") expect(counts.get(toolCallId)).toBe(1);
  }
  // Who followed sees what a newcomer finds (L2).
  expect(said).toEqual(afresh);
  const last = runs.at(-1)!;
  if (last.status === "finished") {
    expect(said.filter((line) => line.startsWith("assistant"))).toEqual(SAID(tools.length));
    expect(said.filter((line) => line.startsWith("tool")).length).toBe(tools.length);
  } else {
    expect(last).toMatchObject({ status: "broken", recovery: { is: "ask", why: "tools-started", tools: ["pay"] } });
    expect((await view(tab)).run).toMatchObject({ last: { recovery: { is: "ask" } } });
  }
  // Each attempt names the run that it goes on with.
  for (const [n, { attempt, prevRunIndex }] of runs.slice(1).entries()) {
    expect(attempt).toEqual({ of: runs[n]!.runId, number: n + 2 });
    expect(prevRunIndex).toBe(runs[n]!.runIndex);
  }
}

test("a side effect comes only after its trace is in the log, whenever the worker is killed (L8)", async () => {
  const thread = fresh();
  const tab = await open(thread);
  await ask(tab, "20 pay pay");
  await tab.waitFor(() => window.recovery.executed().then((all) => all.length > 0));
  await endHost(tab);
  await isOver(tab);
  const [executed, calls] = await Promise.all([
    tab.evaluate(() => window.recovery.executed()),
    tab.evaluate(() => window.recovery.calls()),
  ]);
  expect(calls).toEqual(expect.arrayContaining(executed.map(({ toolCallId }) => toolCallId)));
  await isSound(tab, ["pay", "pay"]);
});

test("a killed worker's run goes on by itself in the next one: one answer, each result asked for once", async () => {
  const thread = fresh();
  const [a, b] = [await open(thread), await open(thread)];
  await ask(a, "20 search search");
  await shows(b, 12);
  await endHost(a);
  for (const tab of [a, b]) await ended(tab, "finished");
  await isSound(a, ["search", "search"]);
  await isSound(b, ["search", "search"]);
  // What was waited for was told, in both tabs.
  expect((await view(b)).recoveries).toContain("waiting");
});

test("the browser is killed: the run goes on when the page is opened again", async () => {
  const thread = fresh();
  const tab = await open(thread);
  await ask(tab, "20 search search search");
  await shows(tab, 20);
  await given.killAndRestart();
  tabs = [];
  const again = await open(thread);
  await ended(again, "finished");
  await isSound(again, ["search", "search", "search"]);
});

test("the only tab is closed: the run goes on when it is opened again", async () => {
  const thread = fresh();
  const tab = await open(thread);
  await ask(tab, "20 search search");
  await shows(tab, 12);
  await tab.close();
  tabs = [];
  const again = await open(thread);
  await ended(again, "finished");
  await isSound(again, ["search", "search"]);
});

test("after ten crashes in a row it is given up, and the thread is as usable as ever (issue 16, L9)", async () => {
  const thread = fresh();
  const tab = await open(thread, "crasher");
  await ask(tab, "crash");
  await tab.waitFor(() => {
    const { run } = window.recovery.view();
    return run.is === "idle" && run.last?.recovery?.is === "gave-up";
  });
  const runs = await tab.evaluate(() => window.recovery.runs());
  expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => "broken"));
  expect(runs.at(-1)?.recovery).toEqual({ is: "gave-up", why: "attempts", attempts: 10 });
  // One answer: that of the last attempt.
  expect((await view(tab)).said).toEqual(["user: crash", "assistant: attempt 10"]);
  await ask(tab, "1 search", "worker");
  await ended(tab, "finished");
  expect((await view(tab)).said.at(-1)).toBe("assistant: step 1 of 1 says what it has found so far");
});

test(`kills at random moments, ${ROUNDS} threads (seed ${SEED})`, async () => {
  const random = randomFrom(SEED);
  const isKilling = engine === "chromium";
  for (let round = 0; round < ROUNDS; round++) {
    const tools = Array.from({ length: 1 + Math.floor(random() * 3) }, () => (random() < 0.75 ? "search" : "pay"));
    const thread = fresh();
    let tab = await open(thread);
    await ask(tab, `8 ${tools.join(" ")}`);
    for (let kills = Math.floor(random() * 4); kills > 0; kills--) {
      await shows(tab, 3 + Math.floor(random() * 10 * (tools.length + 1)));
      if (random() < 0.7 || !isKilling) await endHost(tab);
      else {
        await tab.close();
        tab = await open(thread);
      }
    }
    await isOver(tab);
    await isSound(tab, tools);
  }
}, 600_000);
