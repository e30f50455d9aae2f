import { afterEach, beforeEach, expect, inject, test } from "vitest";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";
import { LAB_CHANNEL } from "./pages/lab-orders.js";
import type { ModelsView } from "./pages/models.js";

const engine = inject("engine");
const given = useBrowser();
let worker: string;
let count = 0;
let tabs: Tab[] = [];

beforeEach(() => {
  worker = `tab-model-${process.pid}-${count++}#one`;
});
afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
  tabs = [];
});

interface Opened {
  readonly offers?: "no" | "plain" | "continues";
  readonly is?: string;
  readonly agent?: string;
  readonly thread?: string;
}

/** A tab whose thread was read. */
async function open({ thread = "thread", ...more }: Opened = {}): Promise<Tab> {
  const query = new URLSearchParams({ worker, thread, ...more });
  const tab = await given.browser.newTab(`${inject("pages")}models.html?${query.toString()}`);
  tabs.push(tab);
  await tab.waitFor(() => "models" in window && window.models.view().isReady);
  return tab;
}

const view = (tab: Tab): Promise<ModelsView> => tab.evaluate(() => window.models.view());
const ask = (tab: Tab, question: string): Promise<string> =>
  tab.evaluate((asked) => window.models.ask(asked), question);
/** The tab's model has begun to answer so many prompts. */
const prompted = (tab: Tab, times = 1): Promise<unknown> =>
  tab.waitFor((wanted) => window.models.view().prompts >= wanted, times);
/** The last message is this, so far. */
const shows = (tab: Tab, text: string): Promise<unknown> =>
  tab.waitFor((wanted) => window.models.view().messages.at(-1) === `assistant: ${wanted}`, text);
/** The run is over, and the last message is this. */
async function says(tab: Tab, text: string): Promise<void> {
  await tab.waitFor((wanted) => {
    const { run, messages } = window.models.view();
    return run.is === "idle" && messages.at(-1) === `assistant: ${wanted}`;
  }, text);
  expect((await view(tab)).run).toMatchObject({ last: { status: "finished" } });
}
/** The run has failed. @returns its error */
async function failure(tab: Tab): Promise<{ code?: string; message: string }> {
  const last = await tab.waitFor(() => {
    const { run } = window.models.view();
    return run.is === "idle" && run.last?.status === "errored" && run.last.error;
  });
  return last as { code?: string; message: string };
}
const numbers = (to: number): string => Array.from({ length: to }, (_, n) => `${n + 1} `).join("");

test("a run of one tab is answered by the model of another, and shown in all", async () => {
  const serving = await open({ offers: "continues", thread: "other" });
  const [asking, watching] = [await open(), await open()];
  expect(await ask(asking, "count 200")).toBe("ok");
  for (const tab of [asking, watching]) await says(tab, numbers(200));
  expect(await view(serving)).toMatchObject({ prompts: 1, failures: [] });
  expect(await view(asking)).toMatchObject({ creates: 0, prompts: 0 });
});

test("the tab that serves is closed before it has said anything: the next one is asked", async () => {
  const serving = await open({ offers: "plain", thread: "other" });
  const asking = await open();
  void ask(asking, "count 9 hold 0");
  await prompted(serving);
  const next = await open({ offers: "plain", thread: "other" });
  await serving.close();
  await prompted(next);
  await next.evaluate(() => window.models.model.goOn());
  await says(asking, numbers(9));
});

test("the tab that serves is closed in the middle: another one that continues goes on, and every word stands once", async () => {
  const serving = await open({ offers: "continues", thread: "other" });
  const asking = await open();
  void ask(asking, "count 30 hold 12");
  await shows(asking, numbers(12));
  await open({ offers: "continues", thread: "other" });
  await serving.close();
  await says(asking, numbers(30));
});

test("the tab that serves is closed in the middle, and no model continues: the run fails, what it said stays", async () => {
  const serving = await open({ offers: "plain", thread: "other" });
  const asking = await open();
  void ask(asking, "count 30 hold 12");
  await shows(asking, numbers(12));
  await open({ offers: "plain", thread: "other" });
  await serving.close();
  expect(await failure(asking)).toMatchObject({
    code: "PROVIDER_UNAVAILABLE",
    message: expect.stringContaining("is gone"),
  });
  expect((await view(asking)).messages.at(-1)).toBe(`assistant: ${numbers(12)}`);
  void ask(asking, "count 4");
  await says(asking, numbers(4));
});

test("a run waits for a tab that offers the model; offers end and are made again", async () => {
  const asking = await open();
  void ask(asking, "count 3");
  await asking.waitFor(() => window.models.view().run.is === "running");
  const serving = await open({ offers: "plain", thread: "other" });
  await says(asking, numbers(3));
  await serving.evaluate(() => window.models.endOffer());
  const hasty = await open({ agent: "hasty", thread: "hasty" });
  // The end comes on another port than the run.
  await hasty.waitFor(async () => {
    const { run } = window.models.view();
    if (run.is === "idle" && run.last?.status === "errored") return true;
    if (run.is === "idle") await window.models.ask("count 3");
    return false;
  });
  expect(await failure(hasty)).toMatchObject({
    code: "PROVIDER_UNAVAILABLE",
    message: expect.stringContaining("open a tab that offers it"),
  });
  await asking.evaluate(() => window.models.offer(true));
  void ask(asking, "count 5");
  await says(asking, numbers(5));
});

test("nothing is downloaded unasked: by a click alone, with its progress shown, and offered when it is ready", async () => {
  const serving = await open({ offers: "continues", is: "downloadable", thread: "other" });
  await serving.waitForText("status", "Model", "downloadable");
  const hasty = await open({ agent: "hasty", thread: "hasty" });
  await ask(hasty, "count 3");
  expect(await failure(hasty)).toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
  expect((await view(serving)).creates).toBe(0);
  await serving.click("button", "Download");
  await serving.waitForText("status", "Model", "downloading 0 %");
  await serving.evaluate(() => window.models.model.progress(0.42));
  await serving.waitForText("status", "Model", "downloading 42 %");
  const asking = await open();
  void ask(asking, "count 3");
  await asking.waitFor(() => window.models.view().run.is === "running");
  await serving.evaluate(() => window.models.model.done());
  await serving.waitForText("status", "Model", "ready");
  await says(asking, numbers(3));
  expect(await view(serving)).toMatchObject({ prompts: 1, failures: [] });
});

test("stop stops the tab's model (L12)", async () => {
  const serving = await open({ offers: "continues", thread: "other" });
  const asking = await open();
  void ask(asking, "count 30 hold 5");
  await shows(asking, numbers(5));
  await asking.evaluate(() => window.models.stop());
  await serving.waitFor(() => window.models.view().stopped === 1);
  await asking.waitFor(() => {
    const { run } = window.models.view();
    return run.is === "idle" && run.last?.status === "stopped";
  });
});

test("the worker dies: the tab's work is stopped, and its offer is made to the next one", async () => {
  const serving = await open({ offers: "continues", thread: "other" });
  const asking = await open();
  const { bootId } = await view(asking);
  void ask(asking, "count 30 hold 5");
  await shows(asking, numbers(5));
  await endWorker(asking);
  await serving.waitFor((before) => ![undefined, before].includes(window.models.view().bootId), bootId);
  await serving.waitFor(() => window.models.view().stopped === 1);
  await asking.waitFor(() => window.models.view().run.is === "idle");
  void ask(asking, "count 7");
  await says(asking, numbers(7));
});

async function endWorker(from: Tab): Promise<void> {
  if (engine === "chromium") return void (await given.browser.endSharedWorkers(worker));
  await from.evaluate(
    (channel, end) =>
      new Promise<void>((resolve) => {
        const control = new BroadcastChannel(channel);
        control.onmessage = () => resolve();
        control.postMessage({ end });
      }),
    LAB_CHANNEL,
    worker,
  );
}

test.runIf(engine === "chromium")("a frozen tab is left for another one, before and in the middle (L14)", async () => {
  const serving = await open({ offers: "continues", thread: "other" });
  const asking = await open();
  void ask(asking, "count 30 hold 12");
  await shows(asking, numbers(12));
  await asking.bringToFront();
  await serving.freeze();
  await open({ offers: "continues", thread: "other" });
  await says(asking, numbers(30));
  void ask(asking, "count 8");
  await says(asking, numbers(8));
  await serving.thaw();
  await serving.waitFor(() => window.models.view().stopped === 1);
});

test("how much goes through the port of a tab", async () => {
  await open({ offers: "continues", thread: "other" });
  const asking = await open({ agent: "meter" });
  for (const _ of [1, 2, 3]) {
    await ask(asking, "count 20000");
    await asking.waitFor(() => {
      const { run, messages } = window.models.view();
      return run.is === "idle" && messages.at(-1)?.startsWith("assistant: {");
    });
  }
  const answers = (await view(asking)).messages.filter((message) => message.startsWith("assistant"));
  for (const answer of answers) expect(answer).toContain('"parts":20004');
  console.log(`through a tab's port in ${engine}: ${answers.join(" ")}`);
});
