import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { DB_NAME } from "../../database.js";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { holdRuns } from "../../../test/tabs/driver/held-runs.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";
import { newThread } from "./demo-tabs.js";

const engine = inject("engine");
const given = useBrowser();

/** Every paragraph has a word of its own. */
const BOOK = {
  name: "book.md",
  content: Array.from({ length: 150 }, (_, i) => {
    const place = `Lighthouse${String.fromCharCode(65 + (i % 26), 97 + Math.floor(i / 26))}`;
    const sentences = Array.from(
      { length: 6 },
      (__, k) => `In ${place} the keeper counted ${i * 10 + k} ships before the fog of morning ${k} had cleared.`,
    );
    return `## Chapter ${i + 1}: ${place}\n\n${sentences.join(" ")}\n`;
  }).join("\n"),
};

let threads = 0;
let thread: string;
let tabs: Tab[];

beforeEach(() => {
  thread = `${engine}-${threads++}`;
  tabs = [];
});

afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
});

/** A tab on the demo, at this test's thread, when it is connected. */
async function openDemo(options: { beforeLoad?: () => void; url?: string } = {}): Promise<Tab> {
  const { url = `${inject("origin")}?thread=${thread}`, ...rest } = options;
  const tab = await given.browser.newTab(url, rest);
  tabs.push(tab);
  await tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);
  return tab;
}

/** From now on runs of this test's thread stop in the middle of their answer, until the tab that is returned is closed. */
async function hold(): Promise<Tab> {
  const tab = await holdRuns(given.browser, thread, /[^]{300,}/);
  tabs.push(tab);
  return tab;
}

/** Sends the book; resolves when the answer streams. */
async function sendBook(tab: Tab): Promise<void> {
  await tab.attachFile(BOOK);
  await tab.waitForText("list", "Attached files", BOOK.name);
  await tab.click("button", "Send");
  await streaming(tab);
}

async function sendText(tab: Tab, text: string): Promise<void> {
  await tab.type("textbox", "Message", text);
  await tab.click("button", "Send");
}

/** Waits until the run is shown as live with at least so many characters of answer. */
async function streaming(tab: Tab, characters = 40): Promise<void> {
  await tab.waitForAttr("data-run-state", "running");
  await tab.waitForText("log", "Conversation", new RegExp(`Reader\\n[^]{${characters},}`));
}

const idle = (tab: Tab): Promise<void> => tab.waitForAttr("data-run-state", "idle");
const conversation = (tab: Tab): Promise<string> => tab.text("log", "Conversation");

/** How Reader's report on a file ends. */
const LAST_WORDS = /Ask me about it, for example: .+”/;

/** The conversation with the whole report on the book. */
async function finalText(tab: Tab): Promise<string> {
  await idle(tab);
  await tab.waitForText("log", "Conversation", LAST_WORDS);
  // Drawn with the text: nothing more is to come.
  await tab.waitFor(() => document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false");
  return conversation(tab);
}

describe("one run in two tabs", () => {
  test("a tab with the same address shows the run while it streams (L2)", async () => {
    const held = await hold();
    const a = await openDemo();
    await sendBook(a);
    const b = await openDemo();
    await streaming(b);
    expect(await a.attr("data-run-state")).toBe("running");
    const begun = (await conversation(b)).slice(0, 60);
    await a.waitForText("log", "Conversation", begun);
    await held.close();
    expect(await finalText(b)).toBe(await finalText(a));
  });

  test("a tab that reloads in the middle shows what a tab that stayed shows (L2)", async () => {
    const held = await hold();
    const a = await openDemo();
    await sendBook(a);
    const b = await openDemo();
    await streaming(b);
    await a.reload();
    await streaming(a);
    await held.close();
    const stayed = await finalText(b);
    expect(await finalText(a)).toBe(stayed);
    // And what the agent says to the same file when nothing happens meanwhile.
    thread += "-undisturbed";
    const alone = await openDemo();
    await sendBook(alone);
    expect(await finalText(alone)).toBe(stayed);
  });

  test("a tab stops the run of another, and both show it as stopped, not as failed (L11, L12)", async () => {
    await hold();
    const a = await openDemo();
    await sendBook(a);
    const b = await openDemo();
    await streaming(b);
    await b.click("button", "Stop");
    for (const tab of [a, b]) {
      await idle(tab);
      await tab.waitForText("log", "Conversation", "Stopped");
      expect(await conversation(tab)).not.toMatch(/failed|error|interrupted/i);
      expect(await tab.count("alert")).toBe(0);
      expect(await tab.count("button", "Run again")).toBe(1);
    }
  });

  test("a run goes on for the other tab when the one that started it closes (L11)", async () => {
    const held = await hold();
    const a = await openDemo();
    await sendBook(a);
    const b = await openDemo();
    await streaming(b);
    const before = (await conversation(b)).length;
    await a.close();
    await held.close();
    const after = await finalText(b);
    expect(after.length).toBeGreaterThan(before);
    expect(after).not.toMatch(/interrupted|Stopped/);
  });

  test.runIf(engine === "chromium")("the reload of the only tab does not end its run (L11)", async () => {
    const held = await hold();
    const a = await openDemo();
    await sendBook(a);
    await a.reload();
    await streaming(a);
    await held.close();
    const reloaded = await finalText(a);
    expect(reloaded).not.toMatch(/interrupted|Stopped/);
    thread += "-undisturbed";
    const alone = await openDemo();
    await sendBook(alone);
    expect(await finalText(alone)).toBe(reloaded);
  });

  test.runIf(engine === "firefox")("a run that the reload of the only tab ended can be run again (L9)", async () => {
    const held = await hold();
    const a = await openDemo();
    await sendBook(a);
    const begun = (await conversation(a)).length;
    await a.reload();
    await a.waitForText("log", "Conversation", /was interrupted/);
    await held.close();
    // Its messages may come after that.
    await a.waitForText("log", "Conversation", new RegExp(`[^]{${begun + 1},}`));
    await a.click("button", "Run again");
    await streaming(a);
    expect(await finalText(a)).not.toMatch(/Stopped/);
  });

  test("what is sent while a run of another tab is live waits for its turn, and is answered then (L5)", async () => {
    const held = await hold();
    const a = await openDemo();
    const b = await openDemo();
    await sendBook(a);
    await b.waitForAttr("data-run-state", "running");
    await sendText(b, "help");
    for (const tab of [a, b])
      await tab.waitForText("log", "Conversation", /1 message waits\s+help\s+Next, when this answer is done/);
    // While it is held: let go, it catches up at once, and may be over before the click.
    await a.click("button", "Stop");
    await held.close();
    for (const tab of [a, b]) await tab.waitForText("log", "Conversation", /help[^]+I am Reader/);
  });
});

describe("history", () => {
  test("a new tab shows the whole conversation after all tabs were closed (L1, L8)", async () => {
    const a = await openDemo();
    await sendBook(a);
    const whole = await finalText(a);
    await a.close();
    const b = await openDemo();
    await b.waitForText("log", "Conversation", BOOK.name);
    expect(await finalText(b)).toBe(whole);
  });

  test("an address of an unknown thread shows an empty conversation that takes a message", async () => {
    const a = await openDemo();
    await a.waitForText("log", "Conversation", "Give it something to read");
    await sendText(a, "Hello");
    await a.waitForText("log", "Conversation", /Hello[^]+\w/);
    await idle(a);
    expect(a.errors).toEqual([]);
  });

  test("a tab whose database is deleted says so, shows nothing that is gone, and takes a message (L2, L10)", async () => {
    const a = await openDemo();
    await sendText(a, "Hello");
    await a.waitForText("log", "Conversation", /Hello[^]+\w/);
    await idle(a);
    await a.evaluate(async (name) => {
      await new Promise((resolve, reject) => {
        const deleting = indexedDB.deleteDatabase(name);
        deleting.addEventListener("success", resolve);
        deleting.addEventListener("error", reject);
      });
    }, DB_NAME);
    await a.waitForText("alert", /^/, "all threads with it");
    await a.waitForText("log", "Conversation", "Give it something to read");
    expect(await conversation(a)).not.toContain("Hello");
    expect(await violations(a)).toEqual([]);
    await a.click("button", "Dismiss");
    await sendText(a, "Once more");
    await a.waitForText("log", "Conversation", /Once more[^]+\w/);
    await idle(a);
    expect(a.errors).toEqual([]);
  });

  test("the list has each thread that was begun, in every tab", async () => {
    const a = await openDemo();
    const b = await openDemo();
    const [first, second] = [`First of ${thread}`, `Second of ${thread}`];
    await sendText(a, first);
    await a.waitForText("navigation", "Threads", first);
    await idle(a);
    await newThread(a);
    expect(await a.url()).not.toContain(`thread=${thread}`);
    await sendText(a, second);
    for (const tab of [a, b]) {
      await tab.waitForText("navigation", "Threads", first);
      await tab.waitForText("navigation", "Threads", second);
    }
    await b.click("link", new RegExp(`^${second}`));
    await b.waitForText("log", "Conversation", second);
  });
});

describe("files", () => {
  for (const [what, file, sentence] of [
    ["an unknown kind", { name: "photo.heic", content: "x" }, /photo\.heic.+not a kind of file/],
    ["an empty file", { name: "empty.md", content: "" }, /empty\.md.+\w+ \w+/],
    ["bytes that are no text", { name: "noise.txt", content: new Uint8Array([0xff, 0xfe, 0, 0xd8, 1]) }, /noise\.txt/],
    ["zeros", { name: "zeros.csv", content: new Uint8Array(64) }, /zeros\.csv/],
  ] as const) {
    test(`${what} is refused with a sentence`, async () => {
      const a = await openDemo();
      await a.attachFile(file);
      await a.waitFor(() => document.querySelector("[role=alert]") !== null);
      const said = await a.evaluate(() => document.querySelector("[role=alert]")?.textContent?.trim() ?? "");
      expect(said).toMatch(sentence);
      expect(await a.count("list", "Attached files")).toBe(0);
      expect(await a.isDisabled("button", "Send")).toBe(true);
    });
  }
});

describe("hosts", () => {
  test("the page says which host it has and that it keeps what it shows", async () => {
    const a = await openDemo();
    expect(await a.attr("data-host")).toBe("shared-worker");
    expect(await a.attr("data-durability")).toBe("durable");
  });

  test("without SharedWorker the tab's own worker runs the agent, and the page says what that means (L11)", async () => {
    const a = await openDemo({ beforeLoad: () => Reflect.deleteProperty(globalThis, "SharedWorker") });
    expect(await a.attr("data-host")).toBe("worker");
    await a.click("button", /This tab.s worker/);
    const says = await a.evaluate(() => document.body.innerText);
    expect(says).toMatch(/no shared worker/);
    expect(says).toMatch(/ends? with this tab/);
    await sendText(a, "Hello");
    await a.waitForText("log", "Conversation", /Hello[^]+\w/);
    await idle(a);
  });
});

/** The rules look at the page, not at the engine; the color scheme can be set in Chromium only. */
function accessibility(): void {
  for (const scheme of ["light", "dark"] as const) {
    test(`the empty page has no serious violations, ${scheme}`, async () => {
      const a = await openDemo();
      await a.setColorScheme(scheme);
      expect(await violations(a)).toEqual([]);
    });

    test(`the streaming and the finished page have no serious violations, ${scheme}`, async () => {
      const held = await hold();
      const a = await openDemo();
      await a.setColorScheme(scheme);
      await sendBook(a);
      expect(await violations(a)).toEqual([]);
      await held.close();
      await finalText(a);
      expect(await violations(a)).toEqual([]);
    });
  }
}

if (engine === "chromium") describe("accessibility", accessibility);
