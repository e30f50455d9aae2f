import { afterEach, describe, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { refusedByPolicy } from "../../../test/tabs/driver/policy.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";
import { Chat } from "./chat.js";

const given = useBrowser();
const isChromium = inject("engine") === "chromium";
const origins = inject("copilotkit");
const tabs: Tab[] = [];

async function chat(url: string): Promise<Chat> {
  const tab = await given.browser.newTab(url);
  tabs.push(tab);
  return new Chat(tab);
}

/** All that the page loaded or asked for. */
const outside = (tab: Tab): Promise<string[]> =>
  tab.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .map(({ name }) => name)
      .filter((name) => !name.startsWith(location.origin) && !/^(data|blob):/.test(name)),
  );

/** Vite's own connection to a page in development, which a page that sleeps loses. */
const DEVELOPMENT = /^WebSocket connection .* Back-Forward Cache/;

/** CopilotKit brings a zod of its own, which tries whether it may compile code; Firefox prints that it may not. */
const TRIAL = /blocked a JavaScript eval/;

afterEach(async () => {
  for (const tab of tabs) {
    expect(tab.errors.filter((error) => !DEVELOPMENT.test(error) && !TRIAL.test(error))).toEqual([]);
    expect(await outside(tab)).toEqual([]);
  }
  await Promise.allSettled(tabs.splice(0).map((tab) => tab.close()));
});

const APPROVAL = "[aria-label=Approval]";
const BOOKING = "[aria-label=Booking]";
const DIALOG = "dialog[open]";
const ASK_INSTEAD = ".edit button:not([type=button])";

/** Firefox has the main paths alone. */
const modes = [["built", origins.built] as const, ...(isChromium ? [["developed", origins.developed] as const] : [])];

describe.each(modes)("the page, %s", (_, origin) => {
  let threads = 0;
  const fresh = (): string => `${origin}#thread-${process.pid}-${threads++}`;

  test("an answer streams in both tabs, the other stops it, and a reload loses nothing", async () => {
    const url = fresh();
    const a = await chat(url);
    const before = await chat(url);
    await a.send("endless answer");
    await a.shows("word by word");
    const during = await chat(url);
    for (const other of [before, during]) await other.shows("word by word");
    await before.stop();
    for (const each of [a, before, during]) {
      await each.tab.bringToFront();
      await each.isIdle();
    }
    for (const other of [before, during]) await other.showsTheSameAs(a);
    await a.tab.reload();
    await a.showsTheSameAs(before);
  });

  test("a reload in the middle of an answer reads on, while another tab is open", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("slow answer, reloaded");
    await a.shows("word by word");
    await a.tab.reload();
    await a.shows("until the end");
    await b.tab.bringToFront();
    await b.showsTheSameAs(a);
  });

  test("Markdown, reasoning, tools of the agent and of the page, activities, state", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("markdown");
    await a.shows("No network.");
    await a.tab.waitFor(() => document.querySelector("main table td")?.textContent === "agent");
    await a.shows("Thought for");
    await a.send("weather");
    await a.shows("Weather in Lisbon: 21 degrees, sunny");
    await a.isIdle();
    await a.send("colour");
    await a.shows("setColour said: the background is #cfe8dc.");
    await a.tab.waitFor(() => document.querySelector("aside")?.style.background === "rgb(207, 232, 220)");
    await a.isIdle();
    await a.send("chart");
    await a.tab.waitFor(() => document.querySelectorAll("[aria-label^=Chart] rect").length === 5);
    await a.isIdle();
    await a.send("progress");
    await a.shows("Write: done");
    await a.isIdle();
    await a.send("count");
    await a.shows("from 0 to 1.");
    await a.isIdle();
    await a.tab.click("button", "Add ten");
    await a.send("count");
    await a.shows("from 11 to 12.");
    await b.tab.bringToFront();
    await b.shows("from 11 to 12.");
    await b.tab.waitFor(() => document.querySelector("output")?.textContent === "12");
    await b.showsTheSameAs(a);
  });

  test("which run an answer is of is the same in the tab that asked, in another one, and after a reload", async () => {
    const url = fresh();
    const a = await chat(url);
    for (const question of ["first", "second", "third"]) {
      await a.send(question);
      await a.shows(`You said: ${question}.`);
      await a.isIdle();
    }
    const asked = await a.runs();
    expect(asked).toHaveLength(3);
    expect(new Set(asked.map((mark) => mark.split(" ")[1])).size).toBe(3);
    const b = await chat(url);
    await b.showsTheSameAs(a);
    expect(await b.runs()).toEqual(asked);
    await a.tab.reload();
    await a.showsTheSameAs(b);
    expect(await a.runs()).toEqual(asked);
  });

  test("the inspector opens, and asks nobody outside", async () => {
    const a = await chat(fresh().replace("#", "?inspector#"));
    await a.send("hello");
    await a.shows("You said: hello.");
    await a.tab.waitFor(() => {
      const inspector = document.querySelector<HTMLElement & { openInspector?: (by: string) => void }>(
        "cpk-web-inspector",
      );
      inspector?.openInspector?.("floating_button");
      return inspector?.shadowRoot?.querySelector(".inspector-window") != null;
    });
    // What it asks for: fonts by a stylesheet, news, and where its reports go.
    expect(await a.tab.evaluate(() => document.querySelectorAll('link[href^="https:"]').length)).toBe(0);
    const asked = ["https://cdn.copilotkit.ai/notifications/v1.json", "https://telemetry.copilotkit.ai/ingest"];
    const answers = await a.tab.evaluate(
      (urls) => Promise.all(urls.map(async (url) => (await fetch(url)).json())),
      asked,
    );
    expect(answers).toEqual(asked.map(() => ({ schemaVersion: 1, notifications: [] })));
  });

  test("an interrupt is open in all tabs and after a reload; whoever answers first goes on", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("transfer");
    await a.shows("Transfer 100 euros to Ada?");
    await b.press(`${APPROVAL} button:first-of-type`);
    for (const each of [b, a]) {
      await each.tab.bringToFront();
      await each.shows("Transferred.");
      await each.hasNo(APPROVAL);
    }
    await a.send("transfer again");
    await a.shows("Transfer 100 euros to Ada?");
    await a.isIdle();
    await a.tab.reload();
    await a.press(`${APPROVAL} button:last-of-type`);
    await a.shows("Nothing was transferred.");
  });

  test("the custom event on_interrupt is a question, too", async () => {
    const a = await chat(fresh());
    await a.send("pause");
    // The suggestions of the agent, which come later, leave it there.
    await a.shows("Now weather");
    await a.press("[aria-label=Decision] button:first-of-type");
    await a.shows("Decided: yes.");
    await a.hasNo("[aria-label=Decision]");
  });

  test("a human in the loop answers in the tab that asked, in another, and after a reload", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("book one");
    await a.press(`${BOOKING} button:first-of-type`);
    await a.shows("confirmBooking said: booked.");
    await a.isIdle();
    await a.send("book two");
    await a.tab.waitFor((card) => document.querySelector(card) !== null, `${BOOKING} button`);
    await b.press(`${BOOKING} button:last-of-type`);
    for (const each of [b, a]) {
      await each.tab.bringToFront();
      await each.shows("confirmBooking said: declined.");
    }
    const c = await chat(fresh());
    await c.send("book three");
    await c.tab.waitFor((card) => document.querySelector(card) !== null, `${BOOKING} button`);
    await c.isIdle();
    await c.tab.reload();
    await c.press(`${BOOKING} button:first-of-type`);
    await c.shows("confirmBooking said: booked.");
  });

  test.each([
    ["both tabs show it", 0],
    ["both tabs show it, also where the page is slow", 500],
  ])("of two answers of two tabs one wins, and %s", async (__, slowMs) => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    if (slowMs > 0) {
      // What is to be done at once is done when the thread has gone on.
      await b.tab.evaluate((ms) => {
        const { setTimeout } = window;
        window.setTimeout = ((work: TimerHandler, after?: number, ...rest: unknown[]) =>
          setTimeout(work, after || ms, ...rest)) as typeof setTimeout; // Node's types have more
      }, slowMs);
    }
    await a.send("book at once");
    for (const each of [b, a]) {
      await each.tab.bringToFront();
      await each.tab.waitFor((card) => document.querySelector(card) !== null, `${BOOKING} button`);
    }
    // One tab tells the other as it answers.
    await b.tab.evaluate((selector) => {
      const button = document.querySelector<HTMLElement>(selector);
      new BroadcastChannel("test").addEventListener("message", () => button?.click());
    }, `${BOOKING} button:last-of-type`);
    await a.tab.evaluate((selector) => {
      new BroadcastChannel("test").postMessage("now");
      document.querySelector<HTMLElement>(selector)?.click();
    }, `${BOOKING} button:first-of-type`);
    for (const each of [a, b]) {
      await each.tab.bringToFront();
      await each.shows("confirmBooking said:");
      await each.isIdle();
    }
    await b.showsTheSameAs(a);
    expect((await a.messages()).match(/confirmBooking said:/g)).toHaveLength(1);
    // Nothing of the other answer is sent along later.
    for (const [before, each] of [a, b].entries()) {
      await each.tab.bringToFront();
      await each.send("results");
      await each.showsTimes("I was given: 1.", before + 1);
      await each.isIdle();
    }
  });

  test("a tool of the page runs in the tab that asked; in another one when that is closed; the agent goes on once", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.tab.evaluate(() => {
      const { showModal } = HTMLDialogElement.prototype;
      HTMLDialogElement.prototype.showModal = function () {
        document.body.dataset["asked"] = String(Number(document.body.dataset["asked"] ?? 0) + 1);
        showModal.call(this);
      };
    });
    await a.send("seat here");
    // A tab that is hidden before it has the call may be late: the one in front takes it then.
    await a.tab.waitFor((open) => document.querySelector(open) !== null, DIALOG);
    await b.tab.bringToFront();
    await b.shows("“pickSeat” waits in another tab.");
    await a.press(`${DIALOG} button:first-of-type`);
    await a.shows("pickSeat said: 12A.");
    await a.isIdle();
    expect(await a.tab.evaluate(() => document.body.dataset["asked"])).toBe("1");
    await b.hasNo(DIALOG);
    await b.tab.bringToFront();
    await b.shows("pickSeat said: 12A.");
    await b.showsTheSameAs(a);
    await a.send("seat there");
    await a.tab.waitFor((open) => document.querySelector(open) !== null, DIALOG);
    tabs.splice(tabs.indexOf(a.tab), 1);
    await a.tab.close();
    await b.press(`${DIALOG} button:last-of-type`);
    await b.shows("pickSeat said: 12F.");
    await b.isIdle();
    await b.send("seat and reload");
    await b.tab.waitFor((open) => document.querySelector(open) !== null, DIALOG);
    await b.tab.reload();
    await b.press(`${DIALOG} button:first-of-type`);
    await b.showsTimes("pickSeat said: 12A", 2);
    await b.isIdle();
    // Nothing is asked a second time.
    expect((await b.messages()).match(/pickSeat said:/g)).toHaveLength(3);
    await b.hasNo(DIALOG);
  });

  test("a question of a tool stays until it is answered, however often somebody presses Escape", async () => {
    const a = await chat(fresh());
    await a.send("seat in any case");
    for (let times = 0; times < 4; times++) {
      await a.tab.waitFor((open) => document.querySelector(open) !== null, DIALOG);
      await a.tab.press("Escape");
    }
    await a.press(`${DIALOG} button:first-of-type`);
    await a.shows("pickSeat said: 12A.");
    await a.hasNo(DIALOG);
  });

  test("a tool that ends when the chat has gone on without it adds nothing", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("seat too late");
    await a.tab.waitFor((open) => document.querySelector(open) !== null, DIALOG);
    await b.tab.bringToFront();
    await b.shows("seat too late");
    await b.isIdle();
    await b.send("hello instead");
    await b.shows("You said: hello instead.");
    await b.isIdle();
    await a.tab.bringToFront();
    await a.shows("You said: hello instead.");
    await a.press(`${DIALOG} button:first-of-type`);
    await a.hasNo(DIALOG);
    await a.send("results");
    await a.shows("I was given: 0.");
    await a.isIdle();
    await b.tab.bringToFront();
    await b.showsTheSameAs(a);
    expect(await a.messages()).not.toContain("pickSeat said");
    await b.tab.reload();
    await b.showsTheSameAs(a);
  });

  test("a tool that must not run twice is interrupted by a reload, until somebody says what is to be done", async () => {
    const a = await chat(fresh());
    await a.send("pay first");
    await a.tab.waitFor((open) => document.querySelector(open) !== null, DIALOG);
    await a.tab.reload();
    await a.tab.click("button", "It was done");
    await a.shows("pay said: done before.");
    await a.isIdle();
    await a.send("pay second");
    await a.tab.waitFor((open) => document.querySelector(open) !== null, DIALOG);
    await a.tab.reload();
    await a.tab.click("button", "Run it again");
    await a.press(`${DIALOG} button:first-of-type`);
    await a.shows("pay said: paid.");
    await a.hasNo("[aria-label=Interrupted]");
  });

  test("another thread in the middle of a run, and with an interrupt open", async () => {
    const a = await chat(fresh());
    const title = `slow and left ${threads}`;
    await a.send(title);
    await a.shows("word by word");
    await a.press(".agui-thread-new");
    await a.showsNoMore("word by word");
    await a.send("transfer elsewhere");
    await a.shows("Transfer 100 euros to Ada?");
    await a.open(title);
    await a.hasNo(APPROVAL);
    await a.shows("until the end");
    expect(await a.messages()).not.toContain("approval");
    await a.open("transfer elsewhere");
    await a.press(`${APPROVAL} button:first-of-type`);
    await a.shows("Transferred.");
    // It would be in the list of another test.
    await a.press(`[aria-label=${JSON.stringify("Delete transfer elsewhere")}]`);
    await a.press(`[aria-label=${JSON.stringify("Really delete transfer elsewhere")}]`);
    await a.listsNoMore("transfer elsewhere");
  });

  test.runIf(isChromium)("a tab that slept while the thread went on shows it, and asks after it", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("transfer");
    for (const each of [b, a]) {
      await each.tab.bringToFront();
      await each.shows("Transfer 100 euros to Ada?");
    }
    await b.tab.freeze();
    await a.press(`${APPROVAL} button:first-of-type`);
    await a.shows("Transferred.");
    await a.isIdle();
    await a.send("while you slept");
    await a.shows("You said: while you slept.");
    await a.isIdle();
    await b.tab.thaw();
    await b.tab.bringToFront();
    await b.hasNo(APPROVAL);
    await b.showsTheSameAs(a);
    await b.send("awake");
    await b.shows("You said: awake.");
    await b.isIdle();
    await a.tab.bringToFront();
    await a.showsTheSameAs(b);
    await a.showsTimes("Transferred.", 1);
  });

  test("regenerate and edit are branches, in all tabs", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("weather first");
    await a.shows("sunny in Lisbon.");
    await a.isIdle();
    await a.send("hello there");
    await a.shows("You said: hello there.");
    await a.isIdle();
    await a.press("[data-testid=copilot-regenerate-button]");
    await a.isIdle();
    await a.shows("You said: hello there.");
    await a.press("[data-testid=copilot-edit-button]");
    await a.tab.type("textbox", "Other question", "good bye");
    // While another tab's run is live nothing can be edited: the words stay.
    await b.send("endless meanwhile");
    await a.tab.bringToFront();
    await a.shows("word by word");
    await a.tab.waitFor((button) => document.querySelector<HTMLButtonElement>(button)?.disabled, ASK_INSTEAD);
    await a.stop();
    await a.press(ASK_INSTEAD);
    await a.shows("You said: good bye.");
    await a.showsNoMore("hello there");
    await b.tab.bringToFront();
    await b.shows("You said: good bye.");
    await b.showsNoMore("hello there");
  });

  test("an error is told in the chat of all tabs, after a reload, and is gone with the next answer", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("fail");
    for (const each of [a, b]) {
      await each.tab.bringToFront();
      await each.tab.waitForText("alert", "", "The model is out of paper.");
    }
    await b.tab.reload();
    await b.tab.waitForText("alert", "", "The model is out of paper.");
    await b.send("hello again");
    await b.shows("You said: hello again.");
    for (const each of [b, a]) await each.hasNo("[role=alert]");
  });

  test("a message that is refused is told in the chat, until the thread goes on", async () => {
    const a = await chat(fresh());
    await a.send("transfer and ask");
    await a.shows("Transfer 100 euros to Ada?");
    await a.isIdle();
    await a.send("hello too early");
    await a.tab.waitFor(() => document.querySelector("main [role=alert]") !== null);
    await a.press(`${APPROVAL} button:first-of-type`);
    await a.shows("Transferred.");
    await a.hasNo("main [role=alert]");
  });

  test("suggestions of the page, then of the agent", async () => {
    const a = await chat(fresh());
    await a.shows("Show weather");
    await a.tab.click("button", "Show weather");
    await a.shows("sunny in Lisbon.");
    await a.shows("Now chart");
    await a.tab.click("button", "Now chart");
    await a.tab.waitFor(() => document.querySelectorAll("[aria-label^=Chart] rect").length === 5);
  });

  test("the page asks nobody else, and runs no other code", async () => {
    // Not among `tabs`: what the policy refuses is printed.
    const tab = await given.browser.newTab(fresh());
    try {
      expect(await refusedByPolicy(tab)).toEqual(["connect-src", "script-src-elem"]);
    } finally {
      await tab.close();
    }
  });

  test("the list: renamed, archived, restored and deleted in all tabs, and by the rules of accessibility", async () => {
    const [a, b] = [await chat(fresh()), await chat(fresh())];
    const title = `hello ${threads} of ${process.pid}`;
    await a.send(title);
    await a.shows("You said:");
    for (const each of [a, b]) await each.lists(title);
    await a.press(`[aria-label=${JSON.stringify(`Rename ${title}`)}]`);
    const renamed = `${title}, renamed`;
    await a.tab.type("textbox", `New title of ${title}`, `${renamed}\n`);
    for (const each of [a, b]) await each.lists(renamed);
    await b.press(`[aria-label=${JSON.stringify(`Archive ${renamed}`)}]`);
    for (const each of [a, b]) await each.listsNoMore(renamed);
    await a.tab.click("button", "Show archived");
    await a.lists(renamed);
    await a.press(`[aria-label=${JSON.stringify(`Restore ${renamed}`)}]`);
    await b.lists(renamed);
    await a.tab.click("button", "Hide archived");
    await a.lists(renamed);
    expect((await violations(a.tab)).filter((found) => found.includes("agui-"))).toEqual([]);
    await b.press(`[aria-label=${JSON.stringify(`Delete ${renamed}`)}]`);
    await b.press(`[aria-label=${JSON.stringify(`Really delete ${renamed}`)}]`);
    for (const each of [a, b]) await each.listsNoMore(renamed);
    await a.showsNoMore("You said:");
    // The other tab has let go of it: what is asked there begins a new thread.
    expect(await a.tab.evaluate(() => document.querySelector("[role=alert]")?.textContent)).toBeUndefined();
    await a.send(`${title}, again`);
    for (const each of [a, b]) await each.lists(`${title}, again`);
  });
});

describe.runIf(isChromium)("what befalls a browser", () => {
  let threads = 0;
  const fresh = (): string => `${origins.built}#fault-${process.pid}-${threads++}`;

  test("the worker is killed in the middle of an answer: both tabs say so, and go on", async () => {
    const url = fresh();
    const [a, b] = [await chat(url), await chat(url)];
    await a.send("endless and killed");
    for (const each of [a, b]) {
      await each.tab.bringToFront();
      await each.shows("word by word");
    }
    expect(await given.browser.endSharedWorkers()).toBeGreaterThan(0);
    for (const each of [b, a]) {
      await each.tab.bringToFront();
      await each.tab.waitFor(() => document.querySelector("main [role=alert]") !== null);
      await each.isIdle();
    }
    await b.showsTheSameAs(a);
    await a.tab.click("button", "Try again");
    await a.hasNo("main [role=alert]");
    await b.tab.bringToFront();
    await b.hasNo("main [role=alert]");
    await b.shows("word by word");
    await b.stop();
    await b.isIdle();
  });

  test("the browser is killed and started again: everything is there", async () => {
    const url = fresh();
    const a = await chat(url);
    await a.send("transfer kept");
    await a.shows("Transfer 100 euros to Ada?");
    await a.isIdle();
    tabs.length = 0;
    await given.killAndRestart();
    const again = await chat(url);
    await again.lists("transfer kept");
    await again.press(`${APPROVAL} button:first-of-type`);
    await again.shows("Transferred.");
  });
});
