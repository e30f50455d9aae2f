import { afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { holdRuns } from "../../../test/tabs/driver/held-runs.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";
import { ROOT } from "../../../test/tabs/driver/server.js";
import { newThread } from "./demo-tabs.js";

/** The demo in a thread that is too long to be shown at once. */
const engine = inject("engine");
/** What is about the page, not about the engine, is tested in one. */
const testOfPage = engine === "chromium" ? test : test.skip;
const given = useBrowser();

const EARLIER = "Show earlier messages";

/** What Reader says about it is long. */
const BOOK = {
  name: "book.md",
  content: Array.from({ length: 80 }, (_, i) => {
    const ships = Array.from(
      { length: 5 },
      (__, k) => `In Bay${i} the keeper counted ${i * 10 + k} ships by fog ${k}.`,
    );
    return `## Chapter ${i + 1}: Bay${i}\n\n${ships.join(" ")}\n`;
  }).join("\n"),
};

let threads = 0;
let thread: string;
let tabs: Tab[];

/** Written once, for the tests that only look at it. */
const LONG = `pages-${engine}`;

beforeAll(async () => {
  thread = LONG;
  await writeLong();
});

beforeEach(() => {
  thread = `pages-${engine}-${threads++}`;
  tabs = [];
});

afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
});

interface Said {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** Notes of one person and two of the agent in turn, numbered from `from`. */
const notes = (from: number, count: number): Said[] =>
  Array.from({ length: count }, (_, i) => ({
    role: i % 3 === 2 ? "user" : "assistant",
    content: `Note ${from + i} of the keeper`,
  }));

/**
 * Puts these messages into the thread, each list with a run that answers the last question in it. Ids are
 * `<thread>/<number>`.
 *
 * @param last `broken`: the last run's host ends while it runs
 */
async function write(runs: readonly (readonly Said[])[], last: "answered" | "broken" = "answered"): Promise<void> {
  const tab = await given.browser.newTab(`${inject("origin")}?thread=writer`);
  const source = `async () => {
    const { connectRuntime } = await import("/@fs/${ROOT.replaceAll("\\", "/").replace(/^\//, "")}/src/client/index.ts");
    const runtime = connectRuntime({
      hosts: { dedicated: () => new Worker("/agents.worker.ts?worker_file&type=module", { type: "module" }) },
      startTimeoutMs: 120_000,
    });
    const threadId = ${JSON.stringify(thread)};
    const agent = runtime.agent("reader", { threadId });
    let count = 0;
    for (const messages of ${JSON.stringify(runs)}) {
      agent.addMessages(messages.map((message) => ({ ...message, id: threadId + "/" + ++count })));
      const answered = agent.runAgent();
      const begun = new Promise((resolve) => agent.run$.subscribe((run) => run.is === "running" && resolve()));
      await (${last === "broken"} && count === ${runs.flat().length} ? begun : answered);
    }
    if (${last === "answered"}) await runtime.close();
  }`;
  await tab.evaluateSource(source);
  await tab.close();
}

const HELP: Said = { role: "user", content: "help" };

/** 132 messages: notes 1 to 69, a question and its answer, notes 70 to 128, a question and its answer. */
const writeLong = (): Promise<void> =>
  write([
    [...notes(1, 69), HELP],
    [...notes(70, 59), HELP],
  ]);

async function openDemo(): Promise<Tab> {
  const tab = await given.browser.newTab(`${inject("origin")}?thread=${thread}`);
  tabs.push(tab);
  await tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);
  return tab;
}

/** From now on runs of this test's thread stop in the middle of their report, until the tab that is returned is closed. */
async function hold(): Promise<Tab> {
  const tab = await holdRuns(given.browser, thread, /Chapter[^]{100,}/);
  tabs.push(tab);
  return tab;
}

/** The same, when the newest messages are shown. */
async function openLong(): Promise<Tab> {
  const tab = await openDemo();
  await tab.waitFor(() => document.querySelectorAll(".message").length >= 30);
  return tab;
}

/** The numbers of the notes that are shown, from the top. */
const shownNotes = (tab: Tab): Promise<number[]> =>
  tab.evaluate(() =>
    [...document.querySelectorAll(".message")].flatMap(({ textContent }) =>
      [...(textContent ?? "").matchAll(/Note (\d+)/g)].map(([, number]) => Number(number)),
    ),
  );

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** At the beginning of what is shown, as somebody who has scrolled there. */
async function scrollUp(tab: Tab): Promise<void> {
  await tab.bringToFront();
  await tab.waitFor(() => {
    const log = document.querySelector("[role=log]")!;
    if (log.scrollTop > 0) log.scrollTop = 0;
    return document.querySelector(".jump") !== null && log.scrollTop === 0;
  });
}

/** Where the first thing of these words stands on the screen, two frames from now: nothing more moves then. */
const placeOf = (tab: Tab, words: string): Promise<number> =>
  tab.evaluate(async (text) => {
    for (let frames = 0; frames < 2; frames++) await new Promise((resolve) => requestAnimationFrame(resolve));
    const found = [...document.querySelectorAll(".message p:not(.byline)")].find((it) =>
      it.textContent?.includes(text),
    );
    if (!found) throw new Error(`${text} is not shown`);
    return found.getBoundingClientRect().top;
  }, words);

/** Presses the button, and waits until the note of this number is shown. */
async function loadUpTo(tab: Tab, note: number): Promise<void> {
  await tab.click("button", EARLIER);
  await tab.waitFor((text) => document.querySelector(".message")?.textContent?.includes(text), `Note ${note} `);
}

/** Up to the beginning of the thread. */
async function loadAll(tab: Tab): Promise<void> {
  while ((await tab.count("button", EARLIER)) > 0) {
    const before = (await shownNotes(tab))[0];
    await tab.click("button", EARLIER);
    await tab.waitFor(
      (text) => !document.querySelector(".message")?.textContent?.includes(text),
      `Note ${String(before)} `,
    );
  }
}

const calm = (tab: Tab): Promise<unknown> =>
  tab.waitFor(() => document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false");

const said = (tab: Tab): Promise<string> =>
  tab.evaluate(() => document.querySelector(".sr-only[role=status]")?.textContent ?? "");

describe("a long thread", () => {
  test("opens with its last messages, and its beginning comes by pages, in order (L2)", async () => {
    thread = LONG;
    const tab = await openLong();
    expect(await shownNotes(tab)).toEqual(range(101, 128));
    for (const first of [71, 43, 13, 1]) {
      await loadUpTo(tab, first);
      expect(await shownNotes(tab)).toEqual(range(first, 128));
    }
    expect(await tab.count("button", EARLIER)).toBe(0);
    expect(await tab.count("article", "You")).toBe(range(1, 69).filter((n) => n % 3 === 0).length + 19 + 2);
    expect(tab.errors).toEqual([]);
  });

  test("what is read stays where it is on the screen", async () => {
    thread = LONG;
    const tab = await openLong();
    for (const [first, next] of [
      [101, 71],
      [71, 43],
    ] as const) {
      await scrollUp(tab);
      const before = await placeOf(tab, `Note ${first} `);
      await loadUpTo(tab, next);
      expect(Math.abs((await placeOf(tab, `Note ${first} `)) - before)).toBeLessThan(1.5);
    }
  });

  test("by keyboard: the focus stays on the button while there is one, a screen reader is told how many came", async () => {
    thread = LONG;
    const tab = await openLong();
    for (const [first, count] of [
      [71, "30 earlier messages"],
      [43, "30 earlier messages"],
      [13, "30 earlier messages"],
      [1, "12 earlier messages. This is the beginning of the thread"],
    ] as const) {
      await tab.type("button", EARLIER, "\n");
      await tab.waitFor((text) => document.querySelector(".message")?.textContent?.includes(text), `Note ${first} `);
      expect((await said(tab)).trim()).toBe(count);
      const focused = await tab.evaluate(() => document.activeElement?.textContent?.trim());
      if (first > 1) expect(focused).toBe(EARLIER);
    }
    expect(await tab.evaluate(() => document.activeElement?.id)).toBe("conversation");
    // The log is a live region: what comes from earlier is no news in it.
    const silent = await tab.evaluate(() =>
      [...document.querySelectorAll(".message")].map((message) => message.getAttribute("aria-live") === "off"),
    );
    expect(silent).toEqual([...Array(102).fill(true), ...Array(30).fill(false)]);
  });

  test("a second tab in the middle of a run loads earlier messages, and the run goes on at its place (L2)", async () => {
    await writeLong();
    const held = await hold();
    const a = await openLong();
    await a.attachFile(BOOK);
    await a.waitForText("list", "Attached files", BOOK.name);
    await a.click("button", "Send");
    await a.waitForText("log", "Conversation", "Chapter");
    const b = await openLong();
    await b.waitForAttr("data-run-state", "running");
    await scrollUp(b);
    const [first] = await shownNotes(b);
    const before = await placeOf(b, `Note ${first} `);
    const length = (await b.text("log", "Conversation")).length;
    await b.click("button", EARLIER);
    await b.waitFor((text) => !document.querySelector(".message")?.textContent?.includes(text), `Note ${first} `);
    expect(await a.attr("data-run-state")).toBe("running");
    await b.waitFor((least) => document.querySelector(".messages")!.textContent!.length > least, length);
    expect(Math.abs((await placeOf(b, `Note ${first} `)) - before)).toBeLessThan(1.5);
    await held.close();
    for (const tab of [a, b]) {
      await tab.bringToFront();
      await tab.waitForText("log", "Conversation", /Ask me about it, for example: .+”/);
      await calm(tab);
      await loadAll(tab);
      expect(await shownNotes(tab)).toEqual(range(1, 128));
    }
    expect(await a.text("log", "Conversation")).toBe(await b.text("log", "Conversation"));
  });

  test("a run of it is stopped as any other, and the next one answers (L11, L12)", async () => {
    await writeLong();
    await hold();
    const a = await openLong();
    const b = await openLong();
    await loadUpTo(b, 71);
    await b.attachFile(BOOK);
    await b.waitForText("list", "Attached files", BOOK.name);
    await b.click("button", "Send");
    await b.waitForText("log", "Conversation", "Chapter");
    await a.click("button", "Stop");
    for (const tab of [a, b]) {
      await tab.bringToFront();
      await tab.waitForText("log", "Conversation", /Stopped\s+Run again$/);
      await calm(tab);
    }
    await b.type("textbox", "Message", "hello");
    await b.click("button", "Send");
    await b.waitForText("log", "Conversation", /hello[^]{40,}/);
    await calm(b);
    expect(await shownNotes(b)).toEqual(range(71, 128));
    expect(await b.count("alert")).toBe(0);
  });
});

testOfPage("a short thread shows no button", async () => {
  await write([[...notes(1, 10), HELP]]);
  const tab = await openDemo();
  await tab.waitForText("log", "Conversation", "Drop one, and I will start reading");
  await calm(tab);
  expect(await shownNotes(tab)).toEqual(range(1, 10));
  expect(await tab.count("button", EARLIER)).toBe(0);
});

/** What becomes of the tab's question for earlier messages. */
type Fate = "held" | "failed" | "sent";

/** From now on. What was held is sent on when it is no longer to be. */
const decide = (tab: Tab, fate: Fate): Promise<void> =>
  tab.evaluate((now) => {
    const page = window as unknown as { fate?: Fate; letOn?: () => void };
    page.fate = now;
    if (page.letOn) return page.letOn();
    const waiting: (() => void)[] = [];
    page.letOn = () => waiting.splice(0).forEach((post) => post());
    const { postMessage } = MessagePort.prototype;
    MessagePort.prototype.postMessage = function (this: MessagePort, ...args: [unknown, never]) {
      const asks = (args[0] as { path?: string[] } | undefined)?.path?.[0] === "messages";
      if (asks && page.fate === "failed") throw new Error("the line is dead");
      if (asks && page.fate === "held") waiting.push(() => postMessage.apply(this, args));
      else postMessage.apply(this, args);
    };
  }, fate);

/** The rules look at the page, not at the engine; the color scheme can be set in Chromium only. */
async function expectAccessible(tab: Tab): Promise<void> {
  if (engine !== "chromium") return;
  for (const scheme of ["light", "dark"] as const) {
    await tab.setColorScheme(scheme);
    expect(await violations(tab)).toEqual([]);
  }
}

describe("loading", () => {
  test("is shown as such and keeps the focus", async () => {
    thread = LONG;
    const tab = await openLong();
    await decide(tab, "held");
    await tab.type("button", EARLIER, "\n");
    await tab.waitFor(() => document.querySelector(".earlier button")?.getAttribute("aria-busy") === "true");
    expect(await tab.isDisabled("button", "Loading earlier messages…")).toBe(true);
    expect(await tab.evaluate(() => document.activeElement?.closest(".earlier") !== null)).toBe(true);
    expect(await shownNotes(tab)).toEqual(range(101, 128));
    await expectAccessible(tab);
    await decide(tab, "sent");
    await tab.waitFor(() => document.querySelector(".earlier button")?.getAttribute("aria-busy") === "false");
    expect(await shownNotes(tab)).toEqual(range(71, 128));
  });

  test("says where the reader is why it failed, and can be tried again", async () => {
    thread = LONG;
    const tab = await openLong();
    await decide(tab, "failed");
    await scrollUp(tab);
    await tab.click("button", EARLIER);
    const words = await tab.waitFor(() => document.querySelector(".earlier [role=alert]")?.textContent?.trim());
    expect(words).toMatch(/could not be loaded: .*the line is dead/);
    const inView = await tab.evaluate(() => {
      const tops = ["[role=log]", ".earlier [role=alert]", ".earlier button", ".message"].map(
        (selector) => document.querySelector(selector)!.getBoundingClientRect().top,
      );
      return tops.every((top, n) => n === 0 || top > tops[n - 1]!);
    });
    expect(inView).toBe(true);
    await expectAccessible(tab);
    await decide(tab, "sent");
    await tab.click("button", "Try again");
    await tab.waitFor(() => document.querySelector(".message")?.textContent?.includes("Note 71 "));
    expect(await tab.count("alert")).toBe(0);
    expect(await shownNotes(tab)).toEqual(range(71, 128));
  });

  testOfPage("of a thread that was left meanwhile shows nothing in the next one", async () => {
    thread = LONG;
    const tab = await openLong();
    await decide(tab, "held");
    await tab.click("button", EARLIER);
    await newThread(tab);
    await decide(tab, "sent");
    await tab.type("textbox", "Message", "still here");
    expect(await said(tab)).not.toContain("earlier");
    await tab.evaluate(() => history.back());
    await tab.waitFor(() => document.querySelectorAll(".message").length >= 30);
    expect(await shownNotes(tab)).toEqual(range(101, 128));
    expect(await tab.isDisabled("button", EARLIER)).toBe(false);
    await loadUpTo(tab, 71);
    expect(tab.errors).toEqual([]);
  });
});

testOfPage("what was sent long ago is no draft any more, what was not sent is one", async () => {
  thread = LONG;
  for (const [messageId, kept] of [
    [`${thread}/5`, ""],
    [`${thread}/of-another`, "help"],
  ] as const) {
    const tab = await openLong();
    await tab.evaluate(
      (key, id) => {
        const sent = { messageId: id, text: "help", fileIds: [] };
        sessionStorage.setItem(key, JSON.stringify({ text: "help", files: [], sent }));
      },
      `reader:draft:${thread}`,
      messageId,
    );
    await tab.reload();
    await tab.waitFor(() => document.querySelectorAll(".message").length >= 30);
    if (kept === "") await tab.waitFor(() => document.querySelector<HTMLTextAreaElement>("#message")?.value === "");
    // Asked behind the page's own question, so that one was answered.
    else await loadUpTo(tab, 71);
    expect(await tab.text("textbox", "Message")).toBe(kept);
    await tab.close();
  }
});

testOfPage("Run again finds a question that is not among the newest messages (L9)", async () => {
  const answers = notes(61, 60).map(({ content }): Said => ({ role: "assistant", content }));
  await write([[...notes(1, 60), HELP, ...answers]], "broken");
  const tab = await openLong();
  expect(await tab.count("article", "You")).toBe(0);
  await tab.click("button", "Run again");
  await tab.waitForText("log", "Conversation", /help[^]+Drop one, and I will start reading/);
  await calm(tab);
  // What had come of the broken run gives way.
  expect((await shownNotes(tab)).at(-1)).toBe(60);
  expect(await tab.text("log", "Conversation")).not.toContain("was interrupted");
  expect(tab.errors).toEqual([]);
});

testOfPage("what has not changed is not drawn again while a run streams", async () => {
  const tab = await openDemo();
  await tab.attachFile({ name: "ships.csv", content: "ship,port\nGull,Bay\nTern,Cove\nSkua,Bay\n" });
  await tab.waitForText("list", "Attached files", "ships.csv");
  await tab.type("textbox", "Message", "how many rows where port is Bay");
  await tab.click("button", "Send");
  await tab.waitFor(() => document.querySelector(".tool-call .fold-body pre + p + pre") !== null);
  await calm(tab);
  await tab.evaluate(() => {
    const page = window as unknown as { drawn: string[] };
    page.drawn = [];
    const { parse } = JSON;
    const args = JSON.stringify(parse(document.querySelector(".tool-call pre")?.textContent ?? ""));
    JSON.parse = (text: string, ...more: []) => {
      if (text === args) page.drawn.push(text);
      return parse(text, ...more) as unknown;
    };
  });
  await tab.type("textbox", "Message", "help");
  await tab.click("button", "Send");
  await tab.waitForText("log", "Conversation", /help[^]+I am Reader/);
  await calm(tab);
  expect(await tab.evaluate(() => (window as unknown as { drawn: string[] }).drawn)).toEqual([]);
});
