import { afterEach, expect, inject, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";
import { startPreview } from "../../../test/tabs/driver/server.js";

/** What is about the pages, not about the engine, is tested in one. */
const testOfPage = inject("engine") === "chromium" ? test : test.skip;
const given = useBrowser();
const tabs: Tab[] = [];

afterEach(async () => {
  await Promise.allSettled(tabs.splice(0).map((tab) => tab.close()));
});

async function open(url: string): Promise<Tab> {
  const tab = await given.browser.newTab(url);
  tabs.push(tab);
  return tab;
}

test("the first screen leads to the guides, and each of them to the others and back", async () => {
  const tab = await open(`${inject("origin")}?thread=guides-${inject("engine")}`);
  await tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);
  await tab.click("link", "Guides");
  await tab.waitFor(() => document.querySelector("h1")?.textContent === "Guides");
  await tab.click("link", "Guarantees");
  await tab.waitFor(() => document.querySelector("h1")?.textContent === "Guarantees");
  expect(await tab.evaluate(() => document.querySelector("nav [aria-current=page]")?.textContent)).toBe("Guarantees");
  await tab.click("link", "branches");
  await tab.waitFor(() => document.title.startsWith("Branches"));
  await tab.click("link", "Demo");
  await tab.waitFor(() => document.documentElement.dataset["host"] !== undefined);
  expect(tab.errors).toEqual([]);
});

testOfPage("a guide is for every reader: skip link, headings, tables by keyboard, nothing that axe finds", async () => {
  const tab = await open(`${inject("origin")}guides/guarantees.html`);
  await tab.waitFor(() => document.querySelector("main table") !== null);
  const page = await tab.evaluate(() => ({
    first: document.querySelector("a")?.textContent,
    skipsTo: document.querySelector("a")?.hash,
    main: document.querySelector("main")?.id,
    levels: [...document.querySelectorAll("main :is(h1, h2, h3)")].map(({ localName }) => localName),
    loose: [...document.querySelectorAll("main :is(table, pre)")].filter((wide) => wide.closest("[tabindex]") === null)
      .length,
    scripts: document.querySelectorAll("main script, main [style], main [onclick]").length,
  }));
  expect(page).toMatchObject({ first: "Skip to the guide", skipsTo: "#guide", main: "guide", loose: 0, scripts: 0 });
  expect(page.levels.slice(0, 2)).toEqual(["h1", "h2"]);
  expect(await violations(tab)).toEqual([]);
  expect(tab.errors).toEqual([]);
});

testOfPage("the built demo has a page for every guide, and every link of them leads somewhere", async () => {
  const server = await startPreview();
  try {
    const tab = await open(`${server.origin}guides/index.html`);
    await tab.waitFor(() => document.querySelector("main a") !== null);
    const dead = await tab.evaluate(async () => {
      const documentAt = async (url: string) =>
        new DOMParser().parseFromString(await (await fetch(url)).text(), "text/html");
      const found: string[] = [];
      const guides = [...document.querySelectorAll<HTMLAnchorElement>("main a")].map(({ href }) => href);
      for (const guide of guides) {
        const page = await documentAt(guide);
        // Any path of the preview answers with the first screen.
        if (page.querySelector("main.guide h1") === null) found.push(guide);
        for (const link of page.querySelectorAll("main a")) {
          const target = new URL(link.getAttribute("href") ?? "", guide);
          if (target.origin !== location.origin) continue;
          const other = await documentAt(target.href);
          const id = target.hash.slice(1);
          if (!other.querySelector(id === "" ? "main.guide h1" : `[id="${id}"]`))
            found.push(`${guide}: ${target.href}`);
        }
      }
      return { found, count: guides.length };
    });
    expect(dead.found).toEqual([]);
    expect(dead.count).toBeGreaterThan(15);
    expect(tab.errors).toEqual([]);
  } finally {
    await server.close();
  }
});
