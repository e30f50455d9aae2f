import { describe, expect, test } from "vitest";
import { ask, choose, find, newThread, useDemo, waitForFocus, waitForTitles } from "./demo-tabs.js";

/** What is done with a thread as a whole. */
const demo = useDemo("threads");

describe("the menu of a thread", () => {
  test("is walked by keyboard and gives the focus back", async () => {
    const tab = await demo.open();
    await ask(tab, "help");
    await tab.waitFor(() => document.querySelector("nav .menu-anchor button")?.matches(":not(:disabled)"));
    await tab.evaluate(() => document.querySelector<HTMLElement>(".thread-bar .menu-anchor button")?.focus());
    await tab.press("Enter");
    for (const [key, name] of [
      [undefined, "Rename…"],
      ["ArrowDown", "Pin to top"],
      ["End", "Delete"],
      ["ArrowDown", "Rename…"],
      ["ArrowUp", "Delete"],
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
    const [first, second] = [`alpha ${demo.thread}`, `beta ${demo.thread}`];
    const a = await demo.open();
    await ask(a, `help ${first}`);
    await newThread(a);
    await ask(a, `help ${second}`);
    const b = await demo.open();
    for (const tab of [a, b]) {
      await find(tab, demo.thread);
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
    await find(a, `${demo.thread} nowhere`);
    await a.waitForText("navigation", "Threads", "No thread has");
    expect([...a.errors, ...b.errors]).toEqual([]);
  });

  test("exports the thread as Markdown", async () => {
    const tab = await demo.open({
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
