import { afterEach, expect, inject, test } from "vitest";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";
import { pick, randomFrom } from "./hammer-random.js";
import type { Execution, ToolsView } from "./pages/tools.js";

const engine = inject("engine");
const SEED = inject("propertySeed");
const SCHEDULES = Math.ceil(10 * inject("propertyFactor"));
const STEPS = 12;
const TABS = 3;

const given = useBrowser();
const dbName = `tools-${process.pid}`;
let threads = 0;
let tabs: (Tab | undefined)[] = [];

afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab?.close()));
  tabs = [];
});

const urlOf = (thread: string, offers: string, ms = 0): string =>
  `${inject("pages")}tools.html?${new URLSearchParams({ worker: `${dbName}#one`, thread, offers, ms: String(ms) }).toString()}`;

async function open(thread: string, offers: string, ms = 0): Promise<Tab> {
  const tab = await given.browser.newTab(urlOf(thread, offers, ms));
  tabs.push(tab);
  await ready(tab);
  return tab;
}

const ready = (tab: Tab): Promise<unknown> => tab.waitFor(() => "tools" in window && window.tools.view().isReady);
const view = (tab: Tab): Promise<ToolsView> => tab.evaluate(() => window.tools.view());
const ask = (tab: Tab, tools: string): Promise<string> => tab.evaluate((names) => window.tools.ask(names), tools);
const executed = (tab: Tab): Promise<Execution[]> => tab.evaluate(() => window.tools.executed());
const callsAre = (tab: Tab, ...statuses: string[]): Promise<unknown> =>
  tab.waitFor(
    (wanted) => JSON.stringify(window.tools.view().calls.map(({ status }) => status)) === wanted,
    JSON.stringify(statuses),
  );
const says = (tab: Tab, text: string): Promise<unknown> =>
  tab.waitFor((wanted) => {
    const { messages, run } = window.tools.view();
    return run.is === "idle" && messages.at(-1) === wanted;
  }, `assistant: ${text}`);

const fresh = (): string => `thread-${threads++}`;
const LONG_MS = 600_000;

test("a call runs in one tab, once; a reload in the middle of its handler leaves it to another tab", async () => {
  const thread = fresh();
  const a = await open(thread, "a", LONG_MS);
  expect(await ask(a, "a")).toBe("ok");
  await a.waitFor(() => window.tools.executed().then((all) => all.length === 1));
  const b = await open(thread, "a");
  await callsAre(b, "running");
  await a.reload();
  await says(b, "a done");
  await ready(a);
  await says(a, "a done");
  expect(await view(a)).toMatchObject({ calls: [], messages: (await view(b)).messages });
  expect(await b.evaluate(() => window.tools.runs())).toMatchObject([{ status: "finished" }, { status: "finished" }]);
});

test("a call that must not run twice is interrupted by the end of its tab, and runs again when somebody says so", async () => {
  const thread = fresh();
  const a = await open(thread, "b", LONG_MS);
  await ask(a, "b");
  await callsAre(a, "running");
  const b = await open(thread, "b");
  await callsAre(b, "running");
  await a.close();
  await callsAre(b, "interrupted");
  const { toolCallId } = (await view(b)).calls[0]!;
  expect((await executed(b)).filter((one) => one.toolCallId === toolCallId)).toHaveLength(1);
  expect(await b.evaluate((id) => window.tools.runAgain(id), toolCallId)).toBe("ok");
  await says(b, "b done");
});

test("a call that waits survives the browser's death, and is answered in another tab once", async () => {
  const thread = fresh();
  await ask(await open(thread, "ac"), "a c");
  await callsAre(tabs[0]!, "answered", "open");
  await given.killAndRestart();
  tabs = [];
  const [a, b] = [await open(thread, "ac"), await open(thread, "c")];
  for (const tab of [a, b]) await callsAre(tab, "answered", "open");
  const { toolCallId } = (await view(a)).calls[1]!;
  const answers = await Promise.all([a, b].map((tab) => tab.evaluate((id) => window.tools.answer(id), toolCallId)));
  expect(answers.toSorted()).toEqual(["call-over", "ok"]);
  for (const tab of [a, b]) await says(tab, "a done, by hand");
});

test("an interrupt that two tabs answer at once is answered once, and the tab that is too late is told", async () => {
  const thread = fresh();
  const [a, b] = [await open(thread, ""), await open(thread, "")];
  expect(await ask(a, "?")).toBe("ok");
  for (const tab of [a, b]) await tab.waitFor(() => window.tools.view().interrupts.length === 1);
  const [id] = (await view(a)).interrupts;
  const outcomes = await Promise.all([a, b].map((tab, at) => tab.evaluate((by) => window.tools.respond(by), `${at}`)));
  expect(outcomes.filter((outcome) => outcome === "ok")).toHaveLength(1);
  expect(["interrupts-open", "thread-busy", "none"]).toContain(outcomes.find((outcome) => outcome !== "ok"));
  await a.waitFor(() => window.tools.view().run.is === "idle");
  const [last, ...before] = await a.evaluate(() => window.tools.runs());
  expect(before).toHaveLength(1);
  for (const tab of [a, b]) await says(tab, `${id} answered by ${outcomes.indexOf("ok")} in ${last!.runId}`);
});

/** What random tabs did to a thread. */
class Schedule {
  readonly thread = fresh();
  private readonly random: () => number;
  private readonly again: Record<string, number> = {};
  private asked = 0;
  /** What was done, for who has to find out. */
  readonly told: string[] = [];

  constructor(seed: number) {
    this.random = randomFrom(seed);
  }

  private slot(): number {
    return Math.floor(this.random() * TABS);
  }

  private offers(): string {
    return [..."abc"].filter(() => this.random() < 0.7).join("");
  }

  private async openAt(at: number): Promise<void> {
    await tabs[at]?.close();
    const tab = await given.browser.newTab();
    tabs[at] = tab;
    await tab.goto(urlOf(this.thread, this.offers(), Math.floor(this.random() * 80)));
  }

  private some(): Tab | undefined {
    const there = tabs.filter((tab) => tab !== undefined);
    return there.length === 0 ? undefined : pick(this.random, there);
  }

  private async step(): Promise<void> {
    const at = this.slot();
    const tab = this.some();
    const kind = pick(this.random, [
      "open",
      "open",
      "ask",
      "ask",
      "ask",
      "ask for a person",
      "reload",
      "close",
      "crash",
      "answer",
      "answer",
      "worker",
    ] as const);
    this.told.push(`${Date.now() % 1_000_000} ${kind} ${tab === undefined ? -1 : tabs.indexOf(tab)}`);
    if (tab === undefined || kind === "open") return this.openAt(at);
    if (kind === "reload") return tab.reload();
    if (kind === "close" || (kind === "crash" && engine !== "chromium")) {
      tabs[tabs.indexOf(tab)] = undefined;
      return tab.close();
    }
    if (kind === "crash") {
      tabs[tabs.indexOf(tab)] = undefined;
      await tab.crash();
      return tab.close();
    }
    if (kind === "worker") {
      return tab.evaluate((end) => {
        const control = new BroadcastChannel("lab-control");
        control.postMessage({ end });
        control.close();
      }, `${dbName}#one`);
    }
    await ready(tab);
    if (kind === "ask for a person") {
      if ((await ask(tab, "?")) === "ok") this.asked++;
    } else if (kind === "ask") {
      const names = Array.from({ length: 1 + Math.floor(this.random() * 2) }, () => pick(this.random, [..."abc"]));
      const outcome = await ask(tab, names.join(" "));
      this.told.push(`${names.join("+")}: ${outcome}`);
      if (outcome === "ok") this.asked++;
    } else await this.decide(tab);
  }

  /** Somebody answers what waits for a person, or has an interrupted call run again. */
  private async decide(tab: Tab): Promise<void> {
    if ((await view(tab)).interrupts.length > 0) await this.respond();
    for (const { toolCallId, name, status } of (await view(tab)).calls) {
      if (status === "interrupted") {
        this.told.push(`${Date.now() % 1_000_000} again ${toolCallId}`);
        this.again[toolCallId] = (this.again[toolCallId] ?? 0) + 1;
        await tab.evaluate((id) => window.tools.runAgain(id), toolCallId);
      } else if (status === "open" && name === "c") await tab.evaluate((id) => window.tools.answer(id), toolCallId);
    }
  }

  /** All tabs answer what the thread waits for, at once. */
  private async respond(): Promise<void> {
    const outcomes = await Promise.allSettled(
      tabs.map((tab, at) => tab?.evaluate((by) => window.tools?.respond(by), `tab ${at}`)),
    );
    this.told.push(
      `${Date.now() % 1_000_000} respond: ${outcomes.map((it) => (it as { value?: string }).value).join()}`,
    );
  }

  /** @returns what is wrong */
  async run(): Promise<string[]> {
    for (let step = 0; step < STEPS; step++) await this.step().catch(ofDyingTab);
    for (const at of tabs.keys()) await tabs[at]?.close();
    const last = (tabs = [await given.browser.newTab()])[0]!;
    await last.goto(urlOf(this.thread, "abc"));
    await ready(last);
    // Whatever waits, is decided; then the thread takes one more question.
    const isAtRest = async (): Promise<boolean> => {
      await this.decide(last);
      const { run, calls, interrupts } = await view(last);
      return run.is === "idle" && calls.length === 0 && interrupts.length === 0;
    };
    await expect.poll(isAtRest).toBe(true);
    // What waits may be known only now.
    await expect.poll(async () => (await isAtRest()) && ask(last, "a")).toBe("ok");
    await says(last, "a done");
    return this.faults(last);
  }

  private async faults(tab: Tab): Promise<string[]> {
    const found: string[] = [];
    const { messages } = await view(tab);
    const count = (of: readonly string[]): Map<string, number> => {
      const counts = new Map<string, number>();
      for (const one of of) counts.set(one, (counts.get(one) ?? 0) + 1);
      return counts;
    };
    const results = messages.flatMap((message) => /^tool (\S+):/.exec(message)?.[1] ?? []);
    for (const [id, times] of count(results)) if (times > 1) found.push(`${id} has ${times} results`);
    // A run that broke in the middle leaves its interrupt open: somebody answers again.
    const finished = new Set(
      (await tab.evaluate(() => window.tools.runs())).flatMap(({ runId, status }) =>
        status === "finished" ? [runId] : [],
      ),
    );
    const answered = messages.flatMap((message) => {
      const [, id, runId] = /^assistant: (\S+) answered by .* in (\S+)$/.exec(message) ?? [];
      return id !== undefined && finished.has(runId!) ? [id] : [];
    });
    for (const [id, times] of count(answered)) if (times > 1) found.push(`${id} was answered ${times} times`);
    const mustRunOnce = (await executed(tab)).filter(({ name, thread }) => name === "b" && thread === this.thread);
    for (const [id, times] of count(mustRunOnce.map(({ toolCallId }) => toolCallId))) {
      const all = JSON.stringify(mustRunOnce.filter(({ toolCallId }) => toolCallId === id));
      if (times > 1 + (this.again[id] ?? 0)) found.push(`${id} ran ${times} times: ${all}`);
    }
    const questions = messages.filter((message) => message.startsWith("user:")).length;
    if (questions < this.asked + 1) found.push(`${this.asked + 1} questions were taken, ${questions} are there`);
    // Each run of results says them once: between two questions there is at most one such answer.
    for (const turn of messages.join("\n").split(/^user: .*$/m)) {
      const answers = turn
        .split("\n")
        .filter((message) => /^assistant: ./.test(message) && !message.includes(" answered by "));
      if (answers.length > 1) found.push(`went on ${answers.length} times: ${turn}`);
    }
    return found;
  }
}

/** What is asked of a tab that is being loaded, or whose host has just been ended, may have no answer. */
function ofDyingTab(error: unknown): void {
  if (!/context|destroyed|navigat|crash|closed|detached|Target|discarded|undefined|frame/i.test(String(error)))
    throw error;
}

test(
  `${SCHEDULES} random schedules of tabs that come, reload and die: no call runs twice, each result and each answer goes on once, nothing is stuck`,
  async () => {
    for (let n = 0; n < SCHEDULES; n++) {
      const seed = SEED + n;
      if (n % 20 === 0) console.log(`PROPERTY_SEED=${seed}: ${n} of ${SCHEDULES} schedules are done`);
      const schedule = new Schedule(seed);
      const faults = await schedule.run().catch((error: unknown) => [String(error)]);
      expect(faults, `PROPERTY_SEED=${seed}, thread ${schedule.thread}: ${schedule.told.join("; ")}`).toEqual([]);
      await Promise.allSettled(tabs.map((tab) => tab?.close()));
      tabs = [];
    }
  },
  600_000 + 60_000 * SCHEDULES,
);
