import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { holdRuns } from "../../../test/tabs/driver/held-runs.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";

/** What a stranger finds on the demo's page besides the chat itself. */
const engine = inject("engine");
/** What is about the page, not about the engine, is tested in one. */
const testOfPage = engine === "chromium" ? test : test.skip;
const given = useBrowser();

let threads = 0;
let thread: string;
let tabs: Tab[];

beforeEach(() => {
  thread = `front-end-${engine}-${threads++}`;
  tabs = [];
});

afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
});

async function openDemo(options: { beforeLoad?: () => void; threadId?: string } = {}): Promise<Tab> {
  const { threadId = thread, ...rest } = options;
  const tab = await given.browser.newTab(`${inject("origin")}?thread=${threadId}`, rest);
  tabs.push(tab);
  await connected(tab);
  return tab;
}

const connected = (tab: Tab): Promise<unknown> =>
  tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);

/** From now on runs of this test's thread stop in the middle of their answer, until the tab that is returned is closed. */
async function hold(characters = 300): Promise<Tab> {
  const tab = await holdRuns(given.browser, thread, new RegExp(`[^]{${characters},}`));
  tabs.push(tab);
  return tab;
}

/** Asks, and waits for the whole answer. */
async function ask(tab: Tab, text: string): Promise<void> {
  const before = await tab.count("article", "Reader");
  await tab.type("textbox", "Message", text);
  await tab.press("Enter");
  await answered(tab, before + 1);
}

/** The run is over, and there are so many messages of the agent. */
async function answered(tab: Tab, answers = 1): Promise<void> {
  await tab.waitFor(
    (least) =>
      document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false" &&
      document.querySelectorAll("article[aria-label=Reader]").length >= least,
    answers,
  );
}

const focused = (tab: Tab): Promise<string> =>
  tab.evaluate(() => {
    const it = document.activeElement;
    return it?.getAttribute("aria-label") ?? it?.textContent?.trim() ?? "";
  });

const waitForFocus = (tab: Tab, name: string): Promise<unknown> =>
  tab.waitFor((wanted) => {
    const it = document.activeElement;
    return (it?.getAttribute("aria-label") ?? it?.textContent?.trim()) === wanted;
  }, name);

const titles = (tab: Tab): Promise<string[]> =>
  tab.evaluate(() => [...document.querySelectorAll("nav .thread-title")].map((it) => it.textContent?.trim() ?? ""));

const waitForTitles = (tab: Tab, expected: readonly string[]): Promise<unknown> =>
  tab.waitFor(
    (json) =>
      JSON.stringify([...document.querySelectorAll("nav .thread-title")].map((it) => it.textContent?.trim())) === json,
    JSON.stringify(expected),
  );

/** Opens the menu of a thread in the list, and chooses. */
async function choose(tab: Tab, title: string, item: string): Promise<void> {
  await tab.click("button", `Actions for ${title}`);
  await tab.click("menuitem", item);
}

/** Lists only what this test's threads are called. */
const find = (tab: Tab, words: string): Promise<void> => tab.type("searchbox", "Search threads", words);

describe("the first screen", () => {
  test("says what this is, with the line that starts it and the way to the README", async () => {
    const tab = await openDemo();
    const said = await tab.text("log", "Conversation");
    expect(said).toMatch(/ag-ui-local-runtime runs AG-UI agents in a worker that all your tabs share/);
    expect(said).toContain("serveRuntime({ agents: { reader, research }");
    await tab.click("link", "README");
    await tab.waitFor(() => document.querySelector("main.guide h1")?.textContent === "ag-ui-local-runtime");
    await tab.click("link", "guarantees");
    await tab.waitFor(() => document.title.startsWith("Guarantees"));
    expect(tab.errors).toEqual([]);
  });

  test("a sample starts at once, and the answer to its question comes before the report", async () => {
    const tab = await openDemo();
    await tab.type("textbox", "Message", "not sent yet");
    await tab.click("button", "Ask a short story about its notebooks");
    await tab.waitForText("log", "Conversation", /Ask me about it, for example/);
    const said = await tab.text("log", "Conversation");
    expect(said).toContain("the-last-relief.txt");
    expect(said.indexOf("The notebooks were lists of birds")).toBeGreaterThan(0);
    expect(said.indexOf("The notebooks were lists of birds")).toBeLessThan(said.indexOf("Outline"));
    expect(await tab.text("textbox", "Message")).toBe("not sent yet");
  });

  test("a greeting is answered with what the agent can do", async () => {
    const tab = await openDemo();
    await ask(tab, "Hello there!");
    expect(await tab.text("log", "Conversation")).toMatch(/Hello, I am Reader[^]+Drop a file or paste a text/);
  });
});

describe("the menu of a thread", () => {
  test("is walked by keyboard and gives the focus back", async () => {
    const tab = await openDemo();
    await ask(tab, "help");
    await tab.waitFor(() => document.querySelector("nav .menu-anchor button")?.matches(":not(:disabled)"));
    await tab.evaluate(() => document.querySelector<HTMLElement>(".thread-bar .menu-anchor button")?.focus());
    await tab.press("Enter");
    for (const [key, name] of [
      [undefined, "Rename…"],
      ["ArrowDown", "Pin to top"],
      ["End", "Delete…"],
      ["ArrowDown", "Rename…"],
      ["ArrowUp", "Delete…"],
      ["a", "Archive"],
      ["Home", "Rename…"],
    ] as const) {
      if (key !== undefined) await tab.press(key);
      await waitForFocus(tab, name);
    }
    const expanded = (): Promise<string | null | undefined> =>
      tab.evaluate(() => document.querySelector(".thread-bar [aria-haspopup=menu]")?.getAttribute("aria-expanded"));
    expect(await expanded()).toBe("true");
    await tab.press("Escape");
    await waitForFocus(tab, "Actions for help");
    await tab.waitFor(() => document.querySelectorAll("[role=menuitem]").length === 0);
    expect(await expanded()).toBe("false");
    await tab.press("ArrowDown");
    await waitForFocus(tab, "Rename…");
    // A second click on the button closes it, as one beside it does.
    await tab.evaluate(() => document.querySelector<HTMLElement>(".thread-bar .menu-anchor button")?.click());
    await tab.waitFor(() => document.querySelectorAll("[role=menuitem]").length === 0);
  });

  test("renames, pins and archives in all tabs, and brings back", async () => {
    const [first, second] = [`alpha ${thread}`, `beta ${thread}`];
    const a = await openDemo();
    await ask(a, `help ${first}`);
    await a.click("button", "New thread");
    await ask(a, `help ${second}`);
    const b = await openDemo();
    for (const tab of [a, b]) {
      await find(tab, thread);
      await waitForTitles(tab, [`help ${second}`, `help ${first}`]);
    }
    await choose(a, `help ${first}`, "Rename…");
    await a.type("textbox", "Title", first);
    await a.press("Enter");
    await waitForTitles(b, [`help ${second}`, first]);
    await choose(a, first, "Pin to top");
    for (const tab of [a, b]) await waitForTitles(tab, [first, `help ${second}`]);
    expect(await b.text("navigation", "Threads")).toContain("Pinned");
    await choose(b, first, "Archive");
    for (const tab of [a, b]) await waitForTitles(tab, [`help ${second}`]);
    // It is shown in b, which says so.
    await b.waitFor(() => document.querySelector(".thread-bar")?.textContent?.includes("Archived"));
    await a.click("button", "Archived threads");
    await waitForTitles(a, [first]);
    await choose(a, first, "Restore");
    await waitForTitles(a, []);
    await a.click("button", "Back to threads");
    for (const tab of [a, b]) await waitForTitles(tab, [first, `help ${second}`]);
    await find(a, "beta");
    await waitForTitles(a, [`help ${second}`]);
    await find(a, `${thread} nowhere`);
    await a.waitForText("navigation", "Threads", "No thread has");
    expect([...a.errors, ...b.errors]).toEqual([]);
  });

  test("deletes after a question, and the other tab says so", async () => {
    const title = `gone ${thread}`;
    const a = await openDemo();
    await ask(a, `help ${title}`);
    const b = await openDemo();
    await answered(b);
    await find(a, title);
    await choose(a, `help ${title}`, "Delete…");
    await waitForFocus(a, "Cancel");
    await a.press("Enter");
    await a.waitFor(() => document.querySelector("dialog") === null);
    expect(await titles(a)).toEqual([`help ${title}`]);
    await choose(a, `help ${title}`, "Delete…");
    await a.click("button", "Delete");
    await waitForTitles(a, []);
    await a.waitForText("log", "Conversation", "Give it something to read");
    expect(await a.count("alert")).toBe(0);
    expect(await a.url()).not.toContain(`thread=${thread}`);
    await b.waitForText("alert", /^/, "deleted in another tab");
    expect([...a.errors, ...b.errors]).toEqual([]);
  });

  test("exports the thread as Markdown", async () => {
    const tab = await openDemo({
      beforeLoad: () => {
        const make = URL.createObjectURL.bind(URL);
        URL.createObjectURL = (blob: Blob) => {
          void blob.text().then((text) => (document.documentElement.dataset["exported"] = text));
          return make(blob);
        };
        HTMLAnchorElement.prototype.click = function () {
          document.documentElement.dataset["file"] = this.download;
        };
      },
    });
    await ask(tab, `help export`);
    await find(tab, "help export");
    await choose(tab, "help export", "Export as Markdown");
    await tab.waitFor(() => document.documentElement.dataset["exported"] !== undefined);
    expect(await tab.attr("data-file")).toBe("help-export.md");
    expect(await tab.attr("data-exported")).toMatch(/^# help export\n\n## You\n\nhelp export\n\n## Reader\n\n[^]+\n$/);
  });
});

describe("messages", () => {
  test("an answer is copied and given again; a question is changed, with what follows it", async () => {
    const tab = await openDemo({
      beforeLoad: () => {
        Object.defineProperty(navigator, "clipboard", {
          value: { writeText: async (text: string) => void (document.documentElement.dataset["copied"] = text) },
        });
      },
    });
    await ask(tab, "help");
    await ask(tab, "hello");
    await tab.click("button", "Copy answer");
    await tab.waitFor(() => document.documentElement.dataset["copied"]?.startsWith("## Hello, I am Reader"));
    const idOf = (): Promise<string | undefined> =>
      tab.evaluate(() => document.querySelector<HTMLElement>("article[aria-label=Reader]")?.innerText);
    const answer = await idOf();
    // The first one: what follows it leaves the thread.
    await tab.click("button", "Regenerate answer");
    await tab.waitFor(() => document.querySelectorAll("article[aria-label=You]").length === 1);
    await answered(tab);
    expect(await idOf()).toBe(answer);
    await tab.click("button", "Edit question");
    await waitForFocus(tab, "Question");
    await tab.press("Escape");
    await waitForFocus(tab, "Message");
    expect(await tab.count("textbox", "Question")).toBe(0);
    // By keyboard, the last one.
    await tab.press("ArrowUp");
    await waitForFocus(tab, "Question");
    await tab.type("textbox", "Question", "good morning");
    await tab.press("Enter");
    await tab.waitForText("log", "Conversation", /good morning[^]+I am Reader/);
    await answered(tab);
    expect(await tab.count("article", "You")).toBe(1);
    expect(tab.errors).toEqual([]);
  });

  test("after a stop the question is run again in its place", async () => {
    const held = await hold(100);
    const tab = await openDemo();
    await tab.type("textbox", "Message", "help");
    await tab.press("Enter");
    await tab.waitForText("log", "Conversation", /I read documents/);
    await tab.click("button", "Stop");
    await tab.waitForText("log", "Conversation", "Stopped");
    await held.close();
    await tab.click("button", "Run again");
    await tab.waitForText("log", "Conversation", /and I will start reading/);
    await answered(tab);
    expect(await tab.count("article", "You")).toBe(1);
    expect(await tab.text("log", "Conversation")).not.toContain("Stopped");
  });
});

describe("tabs and workers", () => {
  test("a second tab opens beside this one, shows the run, and closes", async () => {
    const held = await hold(100);
    const tab = await openDemo();
    await tab.click("button", "Open a second tab here");
    const inSecond = (words: string): Promise<unknown> =>
      tab.waitFor(
        (text) =>
          document.querySelector("iframe")?.contentDocument?.querySelector("[role=log]")?.textContent?.includes(text),
        words,
      );
    await inSecond("Agents that live");
    await tab.waitForText("button", /Shared worker/, "2 tabs");
    await tab.type("textbox", "Message", "help");
    await tab.press("Enter");
    await inSecond("I read documents");
    await held.close();
    await tab.bringToFront();
    await inSecond("and I will start reading");
    await answered(tab);
    await tab.click("button", "Close second tab here");
    await tab.waitFor(() => document.querySelector("iframe") === null);
    await tab.waitForText("button", /Shared worker/, "1 tab");
    expect(tab.errors).toEqual([]);
  });

  test("a killed worker breaks its run, the next one takes over, the question is run again (L8, L9)", async () => {
    const held = await hold(100);
    const a = await openDemo();
    await a.type("textbox", "Message", "help");
    await a.press("Enter");
    const b = await openDemo();
    for (const tab of [a, b]) await tab.waitForText("log", "Conversation", /I read documents/);
    const boot = (tab: Tab): Promise<string | undefined> =>
      tab.evaluate(() => document.querySelector(".host code + code")?.textContent ?? undefined);
    const before = await boot(a);
    await a.click("button", "Kill the worker");
    for (const tab of [a, b]) {
      await tab.waitForText("log", "Conversation", /I read documents[^]+This run was interrupted: its worker ended/);
      await connected(tab);
    }
    expect(await boot(a)).not.toBe(before);
    await held.close();
    await b.click("button", "Run again");
    for (const tab of [a, b]) {
      await tab.bringToFront();
      await tab.waitForText("log", "Conversation", /and I will start reading/);
      await answered(tab);
      expect(await tab.text("log", "Conversation")).not.toContain("interrupted");
    }
    expect([...a.errors, ...b.errors]).toEqual([]);
  });

  test("a run is “started in another tab” there, and nowhere after a reload", async () => {
    const held = await hold(100);
    const a = await openDemo();
    const b = await openDemo();
    await a.type("textbox", "Message", "help");
    await a.press("Enter");
    const chip = (tab: Tab): Promise<string> =>
      tab.evaluate(() => document.querySelector<HTMLElement>(".run-chip")?.innerText ?? "");
    await b.waitFor(() => document.querySelector(".run-chip")?.textContent?.includes("started in another tab"));
    await a.waitFor(() => document.querySelector(".run-chip") !== null);
    expect(await chip(a)).toBe("Running");
    await a.reload();
    await a.waitFor(() => document.querySelector(".run-chip") !== null);
    expect(await chip(a)).toBe("Running");
    await held.close();
    await answered(b);
  });

  test("the page says when the network is gone, how much is stored, and that it works", async () => {
    const tab = await openDemo();
    await tab.evaluate(() => {
      Object.defineProperty(navigator, "onLine", { configurable: true, get: () => false });
      dispatchEvent(new Event("offline"));
    });
    await tab.waitFor(() => document.querySelector(".chip.is-offline") !== null);
    await tab.click("button", /Shared worker/);
    await tab.waitFor(() => /used\./.test(document.querySelector(".storage")?.textContent ?? ""));
    expect(await tab.evaluate(() => document.querySelector<HTMLElement>(".popover-body")?.innerText)).toMatch(
      /Saved on this device[^]+Offline/,
    );
    await tab.press("Escape");
    await ask(tab, "help");
    expect(tab.errors).toEqual([]);
  });
});

describe("the keyboard", () => {
  test("has shortcuts, and a list of them", async () => {
    const tab = await openDemo();
    await tab.evaluate(() => document.querySelector<HTMLElement>("#conversation")?.focus());
    await tab.press("?");
    await tab.waitForText("dialog", "Keyboard shortcuts", "Search the threads");
    await tab.press("Escape");
    await tab.waitFor(() => document.querySelector("dialog") === null);
    expect(await focused(tab)).toBe("Conversation");
    await tab.press("Control+k");
    await waitForFocus(tab, "Search threads");
    // In a text field it is a character.
    await tab.press("?");
    expect(await tab.text("searchbox", "Search threads")).toBe("?");
    await tab.evaluate(() => document.querySelector<HTMLElement>("#conversation")?.focus());
    await tab.press("/");
    await waitForFocus(tab, "Message");
    expect(await tab.text("textbox", "Message")).toBe("");
  });

  test("walks the whole page, and shows where it is", async () => {
    const tab = await openDemo();
    await ask(tab, "help");
    await find(tab, "a title that no thread has");
    await tab.evaluate(() => document.querySelector<HTMLElement>(".skip")?.focus());
    const seen: string[] = [];
    const unseen: string[] = [];
    for (;;) {
      const at = await tab.evaluate(() => {
        const it = document.activeElement;
        if (!(it instanceof HTMLElement) || it === document.body || it.dataset["walked"] !== undefined)
          return undefined;
        it.dataset["walked"] = "";
        const { outlineStyle, outlineWidth } = getComputedStyle(it);
        const box = it.closest(".composer-box");
        return {
          name: it.getAttribute("aria-label") ?? it.innerText.trim(),
          isShown:
            (outlineStyle !== "none" && outlineWidth !== "0px") ||
            (it.localName === "textarea" && box !== null && getComputedStyle(box).boxShadow !== "none"),
        };
      });
      if (at === undefined) break;
      seen.push(at.name);
      if (!at.isShown) unseen.push(at.name);
      await tab.press("Tab");
    }
    expect(unseen).toEqual([]);
    // In this order.
    const expected = [
      "Skip to the message",
      "Documents",
      "New thread",
      "Search threads",
      "Archived threads",
      "Actions for help",
      "Conversation",
      "Copy question",
      "Edit question",
      "Copy answer",
      "Regenerate answer",
      "Message",
      "Attach file",
      "Open a second tab here",
      "Kill the worker",
      "Shortcuts",
    ];
    expect(seen.filter((name) => expected.includes(name))).toEqual(expected);
  });
});

describe("accessibility", () => {
  const EVERY = ["minor", "moderate", "serious", "critical"];

  /** In each width and colour scheme. */
  async function expectNothing(tab: Tab): Promise<void> {
    for (const width of [1280, 390]) {
      await tab.resize(width, 800);
      for (const scheme of ["light", "dark"] as const) {
        await tab.setColorScheme(scheme);
        expect(await violations(tab, EVERY), `${scheme}, ${width} px`).toEqual([]);
        const wider = await tab.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect(wider).toBe(0);
      }
    }
    await tab.resize(1280, 800);
  }

  testOfPage("axe finds nothing on the first screen", async () => {
    await expectNothing(await openDemo());
  });

  testOfPage("axe finds nothing in a thread, its menu, its editor and the dialogs", async () => {
    const tab = await openDemo();
    await ask(tab, "help");
    await expectNothing(tab);
    await tab.click("button", "Edit question");
    await waitForFocus(tab, "Question");
    await expectNothing(tab);
    await tab.press("Escape");
    await waitForFocus(tab, "Message");
    await tab.evaluate(() => document.querySelector<HTMLElement>(".thread-bar .menu-anchor button")?.click());
    await waitForFocus(tab, "Rename…");
    await expectNothing(tab);
    await tab.press("Enter");
    await tab.waitFor(() => document.querySelector("dialog")?.open);
    await expectNothing(tab);
    await tab.press("Escape");
    await tab.waitFor(() => document.querySelector("dialog") === null);
    await tab.evaluate(() => document.querySelector<HTMLElement>("#conversation")?.focus());
    await tab.press("?");
    await tab.waitFor(() => document.querySelector("dialog")?.open);
    await expectNothing(tab);
  });

  testOfPage("axe finds nothing while a run is live, after a kill, and in the archived list", async () => {
    const held = await hold(100);
    const tab = await openDemo();
    await tab.type("textbox", "Message", "help");
    await tab.press("Enter");
    await tab.waitForText("log", "Conversation", /I read documents/);
    await expectNothing(tab);
    await tab.click("button", "Kill the worker");
    await tab.waitForText("log", "Conversation", /was interrupted/);
    await connected(tab);
    await held.close();
    await expectNothing(tab);
    await tab.click("button", "Archived threads");
    await tab.waitForText("navigation", "Threads", "Archived");
    await expectNothing(tab);
    await tab.resize(390, 800);
    await tab.click("button", "Show threads");
    await tab.waitFor(() => document.querySelector(".with-threads") !== null);
    expect(await violations(tab, EVERY)).toEqual([]);
  });

  testOfPage("axe finds nothing with a second tab beside", async () => {
    const tab = await openDemo();
    await tab.click("button", "Open a second tab here");
    await tab.waitFor(() => document.querySelector("iframe")?.contentDocument?.querySelector("[role=log]") != null);
    expect(await violations(tab, EVERY)).toEqual([]);
  });
});
