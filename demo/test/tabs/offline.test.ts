import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";
import { startPreview, type Server } from "../../../test/tabs/driver/server.js";

const given = useBrowser();
let server: Server;

beforeAll(async () => {
  server = await startPreview();
});

test("the built page opens, keeps its threads and runs its agent with the server gone", async () => {
  const { origin } = server;
  const url = `${origin}?thread=offline`;
  const online = await given.browser.newTab(url);
  await online.waitForAttr("data-host", "shared-worker");
  await online.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await online.type("textbox", "Message", "What did I ask while there was a network?");
  await online.click("button", "Send");
  await online.waitForText("log", "Conversation", "Drop a file or paste a text");
  await online.waitForAttr("data-run-state", "idle");
  expect(online.errors).toEqual([]);
  await online.close();
  await server.close();

  const offline = await given.browser.newTab(url);
  await expect(
    offline.evaluate((from: string) => fetch(`${from}not-cached`).then(() => true), origin),
  ).rejects.toThrow();
  await offline.waitForText("log", "Conversation", "What did I ask while there was a network?");
  await offline.type("textbox", "Message", "And now?");
  await offline.click("button", "Send");
  await offline.waitForText("log", "Conversation", /And now\?[\s\S]*Drop a file or paste a text/);
  await offline.waitForAttr("data-run-state", "idle");
  expect(await offline.attr("data-durability")).toBe("durable");
});

test.runIf(inject("engine") === "chromium")("what a browser asks of an installable page is there", async () => {
  const page = await startPreview();
  try {
    const tab = await given.browser.newTab(page.origin);
    const manifest = await tab.evaluate(async () => {
      const { href } = document.querySelector<HTMLLinkElement>("link[rel=manifest]")!;
      const { name, start_url, display, icons } = (await (await fetch(href)).json()) as {
        name: string;
        start_url: string;
        display: string;
        icons: { src: string; sizes: string }[];
      };
      const found = await Promise.all(icons.map(async ({ src }) => (await fetch(new URL(src, href))).status));
      return { name, start_url, display, sizes: icons.map((icon) => icon.sizes), found };
    });
    expect(manifest).toEqual({
      name: "Reader: an agent in your browser",
      start_url: "./",
      display: "standalone",
      sizes: ["192x192", "512x512", "any"],
      found: [200, 200, 200],
    });
  } finally {
    await page.close();
  }
});

afterAll(() => server.close().catch(() => undefined));
