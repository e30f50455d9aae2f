import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { holdRuns } from "../../../test/tabs/driver/held-runs.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";

/** What impatient people and hostile documents do to the demo. */
const engine = inject("engine");
const given = useBrowser();

/** What Reader says about it is long. */
const BOOK = {
  name: "log-book.md",
  content: Array.from({ length: 120 }, (_, i) => {
    const ships = Array.from(
      { length: 5 },
      (__, k) => `In Cove${i} the keeper counted ${i * 10 + k} ships by lamp ${k}.`,
    );
    return `## Chapter ${i + 1}: Cove${i}\n\n${ships.join(" ")}\n`;
  }).join("\n"),
};

let threads = 0;
let thread: string;
let tabs: Tab[];

beforeEach(() => {
  thread = `hostile-${engine}-${threads++}`;
  tabs = [];
});

afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
});

async function openDemo(threadId = thread): Promise<Tab> {
  const tab = await given.browser.newTab(`${inject("origin")}?thread=${encodeURIComponent(threadId)}`);
  tabs.push(tab);
  await connected(tab);
  return tab;
}

/** From now on runs of this test's thread stop once they have said so much, until the tab that is returned is closed. */
async function hold(characters = 300): Promise<Tab> {
  const tab = await holdRuns(given.browser, thread, new RegExp(`[^]{${characters},}`));
  tabs.push(tab);
  return tab;
}

const connected = (tab: Tab): Promise<unknown> =>
  tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);
const idle = (tab: Tab): Promise<void> => tab.waitForAttr("data-run-state", "idle");
const conversation = (tab: Tab): Promise<string> => tab.text("log", "Conversation");
const draft = (tab: Tab): Promise<string> => tab.text("textbox", "Message");

/** The whole answer stands there and nothing more is to come. */
async function answered(tab: Tab, answers = 1): Promise<void> {
  await tab.waitFor(
    (least) =>
      document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false" &&
      document.querySelectorAll("article[aria-label=Reader]").length >= least,
    answers,
  );
}

async function sendBook(tab: Tab): Promise<void> {
  await tab.attachFile(BOOK);
  await tab.waitForText("list", "Attached files", BOOK.name);
  await tab.click("button", "Send");
  await tab.waitForText("log", "Conversation", /Reader\n[^]{100,}/);
}

/** Presses Send, and in the same turn of the event loop something else. */
const sendAnd = {
  async reload(tab: Tab): Promise<void> {
    await tab.evaluate(() => {
      document.documentElement.dataset["before"] = "";
      document.querySelector("form")?.requestSubmit();
      location.reload();
    });
    await tab.waitFor(() => document.documentElement.dataset["before"] === undefined);
    await connected(tab);
  },
  leaveAndComeBack: (tab: Tab): Promise<void> =>
    tab.evaluate(() => {
      document.querySelector("form")?.requestSubmit();
      document.querySelector<HTMLElement>(".threads-head button")?.click();
      history.back();
    }),
};

describe("sending", () => {
  test("two tabs that send at the same instant: both messages are sent and answered, one after the other (L5)", async () => {
    const pair = [await openDemo(), await openDemo()];
    for (let round = 1; round <= 5; round++) {
      for (const [i, tab] of pair.entries()) await tab.type("textbox", "Message", `help ${i}`);
      await Promise.all(pair.map((tab) => tab.evaluate(() => document.querySelector("form")?.requestSubmit())));
      for (const tab of pair) {
        await tab.bringToFront();
        await answered(tab, 2 * round);
        await tab.waitFor((count) => document.querySelectorAll("article[aria-label=You]").length === count, 2 * round);
        expect(await draft(tab)).toBe("");
      }
      expect(await conversation(pair[1]!)).toBe(await conversation(pair[0]!));
    }
  });

  for (const [what, how] of Object.entries(sendAnd)) {
    test(`what was sent is no draft any more: ${what} right after Send (L2)`, async () => {
      await openDemo();
      const tab = await openDemo();
      await tab.type("textbox", "Message", "help me, now");
      await how(tab);
      await tab.waitFor(() => document.querySelector("[aria-label=You]")?.textContent?.includes("help me, now"));
      await tab.waitFor(() => document.querySelector<HTMLTextAreaElement>("#message")?.value === "");
      expect(await tab.url()).toContain(thread);
      expect(await tab.count("article", "You")).toBe(1);
      // Here and in the tab's memory of drafts.
      await idle(tab);
      await tab.reload();
      await tab.waitForText("log", "Conversation", "help me, now");
      expect(await draft(tab)).toBe("");
    });
  }

  test("a message whose tab closes right after Send is sent and answered once (L11)", async () => {
    const witness = await openDemo();
    const tab = await openDemo();
    await tab.type("textbox", "Message", "help");
    await tab.evaluate(() => document.querySelector("form")?.requestSubmit());
    await tab.close();
    await witness.bringToFront();
    await answered(witness);
    expect(await witness.count("article", "You")).toBe(1);
    expect(await witness.count("article", "Reader")).toBe(1);
  });
});

describe("a run under way", () => {
  test("leaving its thread and coming back twenty times doubles and loses nothing (L2)", async () => {
    const other = `${thread}-other`;
    const a = await openDemo(other);
    await a.type("textbox", "Message", "help");
    await a.click("button", "Send");
    await answered(a);
    const held = await hold();
    const stayed = await openDemo();
    const moving = await openDemo();
    await sendBook(moving);
    // Each has the link of the other.
    await moving.waitFor(
      (ids) => {
        const listed = [...document.querySelectorAll<HTMLAnchorElement>("nav li:has(time) a")].map(({ href }) => href);
        return ids.every((id) => listed.some((href) => new URL(href).searchParams.get("thread") === id));
      },
      [other, thread],
    );
    await moving.evaluate(
      async (ids) => {
        for (let i = 0; i < 20; i++) {
          const link = [...document.querySelectorAll<HTMLAnchorElement>("nav a")].find(
            ({ href }) => new URL(href).searchParams.get("thread") === ids[i % 2],
          );
          if (!link) throw new Error(`${ids[i % 2]} is not in the list`);
          link.click();
          // Some in the same turn, some in the next ones, some a few frames later.
          for (let turns = 0; turns < i % 5; turns++) await new Promise((resolve) => setTimeout(resolve));
        }
      },
      [other, thread],
    );
    await moving.waitFor(() => document.querySelector("#stop") !== null);
    await held.close();
    for (const tab of [moving, stayed]) {
      await tab.bringToFront();
      await tab.waitForText("log", "Conversation", /Ask me about it, for example: .+”/);
      await idle(tab);
      await tab.waitFor(() => document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false");
    }
    expect(await conversation(moving)).toBe(await conversation(stayed));
  });

  test("Stop pressed twice in each of three tabs ends it once, as stopped (L11, L12)", async () => {
    await hold();
    const all = [await openDemo(), await openDemo(), await openDemo()];
    await sendBook(all[0]!);
    for (const tab of all) await tab.waitFor(() => document.querySelector("#stop") !== null);
    await Promise.all(
      all.map((tab) =>
        tab.evaluate(() => {
          const stop = document.querySelector<HTMLElement>("#stop");
          stop?.click();
          stop?.click();
        }),
      ),
    );
    for (const tab of all) {
      await tab.bringToFront();
      await tab.waitFor(() => document.querySelectorAll(".ending").length === 1);
      expect(await tab.text("log", "Conversation")).toMatch(/Stopped\s+Run again$/);
      expect(await tab.count("alert")).toBe(0);
    }
  });

  test("its end leaves the focus of who stood on Stop in the message", async () => {
    const held = await hold(20);
    const tab = await openDemo();
    await tab.type("textbox", "Message", "help");
    await tab.evaluate(() => document.querySelector("form")?.requestSubmit());
    await tab.waitFor(() => {
      document.querySelector<HTMLElement>("#stop")?.focus();
      return document.activeElement?.id === "stop";
    });
    await held.close();
    await tab.bringToFront();
    await answered(tab);
    await tab.waitFor(() => document.activeElement?.id === "message");
  });
});

describe("what comes in", () => {
  for (const id of ["__proto__", "🏮 & ?#%", "<img src=x onerror=alert(1)>", "x".repeat(3_000)]) {
    test(`a thread may be called ${id.slice(0, 30)} (L2)`, async () => {
      const tab = await openDemo(`${id}${thread}`);
      await tab.type("textbox", "Message", "help");
      await tab.click("button", "Send");
      await answered(tab);
      const shown = await conversation(tab);
      await tab.reload();
      await answered(tab);
      expect(await conversation(tab)).toBe(shown);
      expect(tab.errors).toEqual([]);
    });
  }

  test("markup, scripts and links of a document are shown, never followed", async () => {
    const tab = await openDemo();
    await tab.attachFile({
      name: "evil<img src=x onerror=document.title=1>.md",
      content: [
        '# <img src=x onerror="window.pwned=1"> The lamp [here](javascript:window.pwned=2)',
        "<script>window.pwned=3</script> The lamp is [bright](javascript:alert(1)) and ![pic](https://evil.example/x.png) burns.",
        `The lamp ${"x".repeat(10_000)} is a long word about the lamp. \u202EThe lamp turns.\u202C \u001b[31mThe lamp is red.`,
        "## | a | b | <svg/onload=alert(1)>\n\nThe lamp, ``` and **more of the lamp.",
      ].join("\n\n"),
    });
    await tab.type("textbox", "Message", "What does it say about the lamp?");
    await tab.click("button", "Send");
    await answered(tab, 2);
    expect(await conversation(tab)).toContain("<script>window.pwned=3</script>");
    const found = await tab.evaluate(() => ({
      pwned: "pwned" in window,
      foreign: document.querySelectorAll("#app :is(script, iframe, .message img, .message svg:not(.icon), aside img)")
        .length,
      scripted: document.querySelectorAll("#app [href^='javascript:' i], #app [onerror], #app [onload]").length,
      wider: document.querySelector("[role=log]")!.scrollWidth - document.querySelector("[role=log]")!.clientWidth,
    }));
    expect(found).toEqual({ pwned: false, foreign: 0, scripted: 0, wider: 0 });
    expect(tab.errors).toEqual([]);
  });

  test("figures of any size fit the panel, and the panel does not lengthen the page", async () => {
    const tab = await openDemo();
    const rows = Array.from({ length: 40 }, (_, i) => `1e308,${i},${"<b>".repeat(i)},${i % 3}`);
    await tab.attachFile({
      name: "huge.csv",
      content: [`huge,__proto__,${"w".repeat(2_000)},kind`, ...rows].join("\n"),
    });
    await tab.attachFile(BOOK);
    await tab.waitForText("list", "Attached files", BOOK.name);
    await tab.click("button", "Send");
    await tab.waitForText("complementary", "Documents", /constructor|__proto__/);
    await tab.waitForText("complementary", "Documents", "Key terms");
    const beyond = await tab.evaluate(() => {
      const panel = document.querySelector("aside")!;
      const page = document.documentElement;
      return [panel.scrollWidth - panel.clientWidth, page.scrollHeight - page.clientHeight];
    });
    expect(beyond).toEqual([0, 0]);
  });

  test("a file of one byte over 5 MB is refused, and the sentence does not say that it has 5 MB", async () => {
    const tab = await openDemo();
    await tab.attachFile({ name: "over.txt", content: `${"a ".repeat(2.5 * 1024 * 1024)}.` });
    await tab.waitFor(() => document.querySelector("[role=alert]")?.textContent?.includes("“over.txt” has 5.1 MB"));
    expect(await tab.count("list", "Attached files")).toBe(0);
  });
});
