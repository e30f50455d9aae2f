import { afterEach, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { refusedByPolicy } from "../../../test/tabs/driver/policy.js";
import { press } from "../../../test/tabs/driver/press.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";

const given = useBrowser();
const tabs: Tab[] = [];

afterEach(async () => {
  for (const tab of tabs) expect(tab.errors).toEqual([]);
  await Promise.allSettled(tabs.splice(0).map((tab) => tab.close()));
});

async function open(thread?: string): Promise<Tab> {
  const tab = await given.browser.newTab(`${inject("assistantUi")}index.html`);
  tabs.push(tab);
  await tab.waitForText("navigation", "Threads", "New thread");
  if (thread !== undefined) await press(tab, thread);
  return tab;
}

async function send(tab: Tab, text: string): Promise<void> {
  await tab.type("textbox", "Message", text);
  await press(tab, "Send");
}

const shows = (tab: Tab, text: string | RegExp): Promise<string> => tab.waitForText("log", "Conversation", text);
const lists = (tab: Tab, text: string | RegExp): Promise<string> => tab.waitForText("navigation", "Threads", text);

/** Waits until it shows more of the answer than now. */
async function goesOn(tab: Tab): Promise<void> {
  const { length } = await shows(tab, "I say it");
  await tab.waitFor((before) => document.querySelector("[role=log]")!.textContent!.length > before + 20, length);
  expect(await shows(tab, "I say it")).not.toContain("Stopped.");
}

test("two tabs show an answer as it comes; the one stops what the other began; a reload loses nothing", async () => {
  const a = await open();
  await send(a, "a long one");
  await shows(a, "You said: a long one. I say it");
  const b = await open("a long one");
  await shows(b, "You said: a long one. I say it");
  await press(b, "Stop");
  for (const tab of [a, b]) await shows(tab, "Stopped.");
  const shown = await shows(a, "Stopped.");
  expect(shown).not.toContain("until the end");
  expect(await shows(b, "Stopped.")).toBe(shown);
  await a.reload();
  await press(a, "a long one");
  expect(await shows(a, "Stopped.")).toBe(shown);
  expect(await violations(a)).toEqual([]);
  // What is sent next, in either tab, comes behind it in both.
  await send(a, "once more");
  await shows(b, "You said: once more. I say it");
  for (const tab of [a, b]) {
    const whole = await shows(tab, /until the end/);
    expect(whole, whole).toContain("You said: a long one.");
  }
});

test("a tab that reloads in the middle has the rest; a thread that is left in the middle of a run goes on", async () => {
  // Another tab is there, so that the host outlives the reload in each browser.
  const [a] = [await open(), await open()];
  await send(a, "second");
  await shows(a, "You said: second. I say it");
  await a.reload();
  await press(a, "second");
  await shows(a, "You said: second. I say it");
  await press(a, "New thread");
  await a.waitFor(() => document.querySelector("[role=log]")?.textContent?.trim() === "");
  await send(a, "third");
  await shows(a, "You said: third. I say it");
  await press(a, "second");
  await shows(a, /You said: second\.[^]*until the end/);
  await press(a, "third");
  await shows(a, /You said: third\.[^]*until the end/);
});

test("an assistant that is closed in the middle of an answer stops nothing (L11); opened again, it reads on", async () => {
  const a = await open();
  await send(a, "closed, long");
  await shows(a, "You said: closed, long. I say it");
  const b = await open("closed, long");
  await shows(b, "You said: closed, long. I say it");
  for (const [closing, other] of [
    [a, b], // its own run
    [b, a], // one that it reads
  ] as const) {
    await press(closing, "Close the assistant");
    await closing.waitFor(() => document.querySelector("nav") === null);
    await goesOn(other);
    await press(closing, "Open the assistant");
    await press(closing, "closed, long");
    await goesOn(closing);
  }
  await press(b, "Stop");
  for (const tab of [a, b]) await shows(tab, "Stopped.");
});

/** Two tabs on a thread, which have sent at the same time: "from a" and "from b", with this before it. */
async function sentAtOnce(thread: string, before = ""): Promise<[a: Tab, b: Tab]> {
  const a = await open();
  await send(a, thread);
  await shows(a, /until the end/);
  const b = await open(thread);
  await shows(b, /until the end/);
  await a.type("textbox", "Message", `${before}from a`);
  await b.type("textbox", "Message", `${before}from b`);
  await Promise.all([press(a, "Send"), press(b, "Send")]);
  return [a, b];
}

test("two tabs that send at the same time: both are answered, in both (L20)", async () => {
  const [a, b] = await sentAtOnce("at once");
  for (const tab of [a, b]) {
    await shows(tab, /You said: from a\.[^]*until the end/);
    await shows(tab, /You said: from b\.[^]*until the end/);
  }
  await shows(b, await a.text("log", "Conversation"));
});

test.each([
  ["", () => undefined],
  // At a stop, assistant-ui writes what it shows back into its messages, by a timer; here, that comes before React shows
  // what the thread has become meanwhile.
  [
    " in a busy page",
    () => {
      const { setTimeout } = window;
      const { postMessage } = MessagePort.prototype;
      const late = (handler: TimerHandler, ms = 0): number => setTimeout(handler, Math.max(ms, 100));
      Object.assign(window, { setTimeout: late });
      // React's scheduler posts null to itself.
      MessagePort.prototype.postMessage = function (message: unknown, transfer: unknown = []) {
        const post = (): void => postMessage.call(this, message, transfer as StructuredSerializeOptions);
        if (message === null) setTimeout(post, 300);
        else post();
      };
    },
  ],
])("what waits for another tab's answer is taken back by Stop, which does not stop that%s", async (page, prepare) => {
  const [a, b] = await sentAtOnce(`taken back${page}`, "long ");
  const [answered, waits] = await Promise.any([
    shows(a, "You said: long from a").then(() => [a, b] as const),
    shows(b, "You said: long from b").then(() => [b, a] as const),
  ]);
  await waits.evaluate(prepare);
  await press(waits, "Stop");
  const asked = answered === a ? "long from a" : "long from b";
  await shows(waits, new RegExp(`user: ${asked}[^]*You said: ${asked}`));
  await goesOn(answered);
  await goesOn(waits);
  await press(waits, "Stop");
  for (const tab of [a, b]) await shows(tab, "Stopped.");
});

test("a thread is renamed, archived, brought back and deleted in all tabs", async () => {
  const [a, b] = [await open(), await open()];
  await send(a, "listed");
  await lists(b, "listed");
  await b.click("button", "Rename listed");
  await lists(a, "listed (renamed)");
  await a.click("button", "Archive listed (renamed)");
  for (const tab of [a, b]) await lists(tab, /Archived\s+listed \(renamed\)/i);
  await b.click("button", "Unarchive listed (renamed)");
  for (const tab of [a, b]) await lists(tab, /listed \(renamed\)[^]*Archived/i);
  await a.click("button", "Delete listed (renamed)");
  for (const tab of [a, b]) {
    await tab.waitFor(() => !document.querySelector("nav")!.innerText.includes("listed"));
  }
});

test("calls of tools are shown: the agent's own, and the page's, which the page answers", async () => {
  const a = await open();
  await send(a, "look there");
  await shows(a, 'look({"at":"the sea"}) = "It is calm."');
  await shows(a, "You said: look there. I say it");
  await press(a, "New thread");
  await send(a, "colour of it");
  await shows(a, 'colour({"at":"the sea"}) = "the sea is blue"');
  await shows(a, "You said: the sea is blue");
  const b = await open("colour of it");
  await shows(b, 'colour({"at":"the sea"}) = "the sea is blue"');
});

test("a run that fails says why, in each tab; the next one is answered", async () => {
  const a = await open();
  await send(a, "fail now");
  await shows(a, "The poet has lost the thread.");
  const b = await open("fail now");
  await shows(b, "The poet has lost the thread.");
  await send(b, "and now a long one");
  await shows(a, "You said: and now a long one. I say it");
  await press(a, "Stop");
});

test("an interrupt is answered in another tab than the one that asked", async () => {
  const a = await open();
  await send(a, "ask me long");
  await shows(a, "Shall I go on?");
  const b = await open("ask me long");
  await shows(b, "Shall I go on?");
  await press(b, "Shall I go on?");
  for (const tab of [a, b]) await shows(tab, "You answered: resolved.");
  await a.waitFor(() => !document.querySelector("[role=log]")!.textContent!.includes("Shall I go on?"));
  await press(a, "Stop");
});

/** In the first moment of a page: types as React hears of it, and presses one button after the other. */
const atOnce = (tab: Tab, text: string, ...buttons: string[]): Promise<unknown> =>
  tab.waitFor(
    async (typed, ...names) => {
      const field = document.querySelector("textarea");
      if (field === null) return false;
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")!.set!.call(field, typed);
      field.dispatchEvent(new Event("input", { bubbles: true }));
      for (const name of names) {
        for (;;) {
          const found = [...document.querySelectorAll("button")].find(({ innerText }) => innerText === name);
          if (found?.disabled === false) {
            found.click();
            break;
          }
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      }
      return true;
    },
    text,
    ...buttons,
  );

/** A page whose worker has still to start. */
async function openCold(): Promise<Tab> {
  tabs.length = 0; // they die with it
  await given.killAndRestart();
  const tab = await given.browser.newTab(`${inject("assistantUi")}index.html`);
  tabs.push(tab);
  return tab;
}

test("what is sent before the thread was read is shown with its answer", async () => {
  const cold = await openCold();
  await atOnce(cold, "ask at once", "Send");
  await shows(cold, "Shall I go on?");
  const warm = await given.browser.newTab(`${inject("assistantUi")}index.html`);
  tabs.push(warm);
  await atOnce(warm, "said at once", "Send");
  await shows(warm, /user: said at once\s+assistant: You said: said at once\..*until the end/);
});

test("a run that is over before the page draws is shown with its end", async () => {
  const tab = await open();
  // The store tells of a change with the next frame, or after a while where none is drawn.
  await tab.evaluate(() => void (window.requestAnimationFrame = () => 0));
  await send(tab, "ask in between");
  await shows(tab, "Shall I go on?");
});

test("what is stopped before the thread was read does not run", async () => {
  const a = await openCold();
  await atOnce(a, "unwanted", "Send", "Stop");
  await send(a, "wanted");
  await shows(a, /You said: wanted\..*until the end/);
  const b = await open();
  // The title is the first question that the thread has: a stopped one goes with the next, where it is still shown.
  await b.waitFor(() => {
    const found = [...document.querySelectorAll("button")].find(({ innerText }) => /^(un)?wanted$/.test(innerText));
    found?.click();
    return found !== undefined;
  });
  expect(await shows(b, "until the end")).not.toContain("You said: unwanted");
});

test("a browser that was killed has all that was shown", async () => {
  const a = await open();
  await send(a, "survivor");
  await shows(a, "You said: survivor. I say it");
  tabs.length = 0; // they die with it
  await given.killAndRestart();
  const b = await open("survivor");
  await shows(b, "You said: survivor. I say it");
  await send(b, "still there");
  await shows(b, "You said: still there. I say it");
});

test("the page asks nobody else, and runs no other code", async () => {
  // Not among `tabs`: what the policy refuses is printed.
  const tab = await given.browser.newTab(`${inject("assistantUi")}index.html`);
  try {
    expect(await refusedByPolicy(tab)).toEqual(["connect-src", "script-src-elem"]);
  } finally {
    await tab.close();
  }
});
