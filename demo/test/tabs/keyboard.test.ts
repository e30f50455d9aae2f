import { describe, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { ask, connected, drawn, find, focus, focused, useDemo, waitForFocus } from "./demo-tabs.js";

/** The page without a mouse, and as assistive technology sees it. */
const demo = useDemo("keyboard");
/** What is about the page, not about the engine, is tested in one. */
const testOfPage = inject("engine") === "chromium" ? test : test.skip;

describe("the keyboard", () => {
  test("has shortcuts, and a list of them", async () => {
    const tab = await demo.open();
    await focus(tab, "#conversation");
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
    await focus(tab, "#conversation");
    await tab.press("/");
    await waitForFocus(tab, "Message");
    expect(await tab.text("textbox", "Message")).toBe("");
  });

  test("has no shortcuts of a single key for who turns them off, in all tabs and after a reload", async () => {
    const tab = await demo.open();
    const turn = async (isOn: boolean): Promise<void> => {
      await tab.click("button", "Shortcuts");
      await tab.click("checkbox", "Shortcuts of a single key");
      await tab.waitFor((wanted) => document.querySelector<HTMLInputElement>("dialog input")?.checked === wanted, isOn);
      await tab.press("Escape");
      await tab.waitFor(() => document.querySelector("dialog") === null);
    };
    /** Keys that would open the list or move the focus, then one with Ctrl, which does. */
    const expectNone = async (other: Tab): Promise<void> => {
      await focus(other, "#conversation");
      await other.press("?");
      await other.press("/");
      await drawn(other);
      expect(await focused(other)).toBe("Conversation");
      await other.press("Control+k");
      await waitForFocus(other, "Search threads");
      expect(await other.count("dialog")).toBe(0);
    };
    const b = await demo.open();
    await turn(false);
    await expectNone(tab);
    await expectNone(b);
    await tab.reload();
    await connected(tab);
    await expectNone(tab);
    await turn(true);
    await focus(tab, "#conversation");
    await tab.press("/");
    await waitForFocus(tab, "Message");
    expect([...tab.errors, ...b.errors]).toEqual([]);
  });

  test("turns them off for this page where the browser stores nothing", async () => {
    const tab = await demo.open({
      beforeLoad: () => {
        const denied = (): never => {
          throw new DOMException("denied", "SecurityError");
        };
        Object.defineProperty(window, "localStorage", { get: denied });
      },
    });
    await tab.click("button", "Shortcuts");
    await tab.click("checkbox", "Shortcuts of a single key");
    await tab.press("Escape");
    await tab.waitFor(() => document.querySelector("dialog") === null);
    await focus(tab, "#conversation");
    await tab.press("/");
    await drawn(tab);
    expect(await focused(tab)).toBe("Conversation");
    await tab.press("Control+k");
    await waitForFocus(tab, "Search threads");
    expect(tab.errors).toEqual([]);
  });

  test("walks the whole page, and shows where it is", async () => {
    const tab = await demo.open();
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
    await expectNothing(await demo.open());
  });

  testOfPage("axe finds nothing in a thread, its menu, its editor and the dialogs", async () => {
    const tab = await demo.open();
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
  });

  testOfPage("axe finds nothing in the list of shortcuts and in the offer to undo", async () => {
    const tab = await demo.open();
    await ask(tab, "help");
    await focus(tab, "#conversation");
    await tab.press("?");
    await tab.waitFor(() => document.querySelector("dialog")?.open);
    await expectNothing(tab);
    await tab.click("checkbox", "Shortcuts of a single key");
    await expectNothing(tab);
    await tab.click("checkbox", "Shortcuts of a single key");
    await tab.press("Escape");
    await tab.waitFor(() => document.querySelector("dialog") === null);
    await tab.evaluate(() => document.querySelector<HTMLElement>(".thread-bar .menu-anchor button")?.click());
    await tab.click("menuitem", "Delete");
    // It stays while it has the focus.
    await focus(tab, ".undo button");
    await expectNothing(tab);
  });

  testOfPage("axe finds nothing while a run is live, after a kill, and in the archived list", async () => {
    const held = await demo.hold();
    const tab = await demo.open();
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
    const tab = await demo.open();
    await tab.click("button", "Open a second tab here");
    await tab.waitFor(() => document.querySelector("iframe")?.contentDocument?.querySelector("[role=log]") != null);
    expect(await violations(tab, EVERY)).toEqual([]);
  });
});
