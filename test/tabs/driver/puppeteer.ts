import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import puppeteer, { type ElementHandle, type Page as PuppeteerPage } from "puppeteer-core";
import { chromiumFlags } from "../../setup/browsers.mjs";
import type { Plain, Tab } from "./browser.js";
import { type Page, tabOf } from "./tab.js";

/** What an engine's module gives to `launch`. */
export interface Started {
  readonly pid: number;
  newTab(options: { beforeLoad?: () => void }): Promise<Tab>;
  /** Asks the browser to end. */
  quit(): Promise<void>;
}

function pageOf(page: PuppeteerPage): Page<ElementHandle<Element>> {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error instanceof Error ? String(error.stack) : String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  const expression = (source: string, args: Plain[]): string => `(${source})(...${JSON.stringify(args)})`;
  return {
    errors,
    call: (source, args) => page.evaluate(expression(source, args)),
    async element(source, args) {
      const handle = await page.evaluateHandle(expression(source, args));
      return (handle.asElement() as ElementHandle<Element> | null) ?? undefined;
    },
    click: (element) => element.click(),
    async type(element, text) {
      await element.focus();
      await element.type(text);
    },
    upload: (element, path) => (element as ElementHandle<HTMLInputElement>).uploadFile(path),
    async goto(url) {
      await page.goto(url, { waitUntil: "load" });
    },
    async reload() {
      await page.reload({ waitUntil: "load" });
    },
    close: () => page.close(),
    url: async () => page.url(),
    screenshot: () => page.screenshot(),
    setColorScheme: (scheme) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]),
    bringToFront: () => page.bringToFront(),
  };
}

/** Chromium by the DevTools protocol, Firefox by WebDriver BiDi. */
export async function startPuppeteer(
  engine: "chromium" | "firefox",
  executablePath: string,
  profile: string,
): Promise<Started> {
  const userDataDir = join(profile, "data");
  const files = join(profile, "files");
  await Promise.all([mkdir(userDataDir, { recursive: true }), mkdir(files, { recursive: true })]);
  const browser = await puppeteer.launch({
    browser: engine === "chromium" ? "chrome" : "firefox",
    executablePath,
    userDataDir,
    headless: true,
    args: engine === "chromium" ? chromiumFlags() : [],
    timeout: 60_000,
    protocolTimeout: 60_000,
    defaultViewport: { width: 1280, height: 800 },
    // Node's own end is seen to in launch.ts, for all engines alike.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  const pid = browser.process()?.pid;
  if (pid === undefined) throw new Error(`${engine} has no process`);
  return {
    pid,
    async newTab({ beforeLoad }) {
      const page = await browser.newPage();
      if (beforeLoad) await page.evaluateOnNewDocument(beforeLoad);
      return tabOf(pageOf(page), files);
    },
    quit: () => browser.close(),
  };
}
