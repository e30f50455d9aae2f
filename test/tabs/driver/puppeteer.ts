import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import puppeteer, { type ElementHandle, type KeyInput, type Page as PuppeteerPage } from "puppeteer-core";
import { chromiumFlags } from "../../setup/browsers.mjs";
import type { Engine, Plain, Tab } from "./browser.js";
import { type BrowserFaults, browserFaults, pageFaults } from "./chromium-faults.js";
import { type Page, tabOf } from "./tab.js";

/** When an engine that does not answer is given up, in ms: on a busy machine Firefox takes long for its first start. */
const LIMIT_MS = 180_000;

/** What an engine's module gives to `launch`. */
export interface Started extends BrowserFaults {
  readonly pid: number;
  newTab(options: { beforeLoad?: () => void }): Promise<Tab>;
  /** Asks the browser to end. */
  quit(): Promise<void>;
}

/** What a caller is told who asks an engine for what it cannot do. */
export const cannot = (engine: Engine, what: string) => (): Promise<never> =>
  Promise.reject(new Error(`${engine} cannot ${what}`));

function pageOf(engine: "chromium" | "firefox", page: PuppeteerPage): Page<ElementHandle<Element>> {
  let life = new AbortController();
  page.on("error", () => life.abort(new Error("the tab has crashed")));
  /** The browser never answers what a crashed page was asked. */
  const orCrash = async <T>(answer: Promise<T>): Promise<T> => {
    const { signal } = life;
    const answered = new AbortController();
    try {
      return await Promise.race([
        answer,
        new Promise<never>((_, reject) => {
          if (signal.aborted) reject(signal.reason);
          signal.addEventListener("abort", () => reject(signal.reason), { signal: answered.signal });
        }),
      ]);
    } finally {
      answered.abort();
    }
  };
  const load = async (loading: Promise<unknown>): Promise<void> => {
    await loading;
    if (life.signal.aborted) life = new AbortController();
  };
  const faults =
    engine === "chromium"
      ? pageFaults(page)
      : { crash: cannot(engine, "crash a tab"), freeze: cannot(engine, "freeze"), thaw: cannot(engine, "thaw") };
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error instanceof Error ? String(error.stack) : String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  const expression = (source: string, args: Plain[]): string => `(${source})(...${JSON.stringify(args)})`;
  return {
    errors,
    call: (source, args) => orCrash(page.evaluate(expression(source, args))),
    async element(source, args) {
      const handle = await orCrash(page.evaluateHandle(expression(source, args)));
      return (handle.asElement() as ElementHandle<Element> | null) ?? undefined;
    },
    click: (element) => element.click(),
    async type(element, text) {
      await element.focus();
      await element.type(text);
    },
    upload: (element, path) => (element as ElementHandle<HTMLInputElement>).uploadFile(path),
    async press(keys) {
      // What a test names is a key; puppeteer refuses another.
      const [key, ...held] = keys.split("+").toReversed() as [KeyInput, ...KeyInput[]];
      for (const one of held) await page.keyboard.down(one);
      await page.keyboard.press(key);
      for (const one of held) await page.keyboard.up(one);
    },
    async resize(width, height) {
      // Firefox 140 (ESR) has the right size by then, and does not know of orientations.
      const resized = page.setViewport({ width, height });
      await resized.catch((error: unknown) => {
        if (!String(error).includes("setScreenOrientationOverride")) throw error;
      });
      while ((await orCrash(page.evaluate("innerWidth"))) !== width) continue;
    },
    goto: (url) => load(goTo(page, url)),
    reload: () => load(page.reload({ waitUntil: "load" })),
    close: () => page.close(),
    // Asked of the page: what puppeteer knows is out of date after Firefox took the page out of its back/forward cache.
    url: async () => String(await orCrash(page.evaluate("location.href"))),
    screenshot: () => page.screenshot(),
    setColorScheme: (scheme) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]),
    bringToFront: () => page.bringToFront(),
    ...faults,
  };
}

/** A new tab of Firefox may be loading its empty page still, which then breaks off what it is to load. */
function goTo(page: PuppeteerPage, url: string): Promise<unknown> {
  const going = () => page.goto(url, { waitUntil: "load" });
  return going().catch((error: unknown) => {
    if (!String(error).includes("interrupted an unfinished navigation")) throw error;
    return going();
  });
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
    timeout: LIMIT_MS,
    protocolTimeout: LIMIT_MS,
    defaultViewport: { width: 1280, height: 800 },
    // Node's own end is seen to in launch.ts, for all engines alike.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  const pid = browser.process()?.pid;
  if (pid === undefined) throw new Error(`${engine} has no process`);
  const faults =
    engine === "chromium"
      ? browserFaults(browser)
      : {
          endSharedWorkers: cannot(engine, "end a SharedWorker"),
          setQuota: cannot(engine, "set a quota"),
          heapOf: cannot(engine, "measure a SharedWorker"),
          takeOffline: cannot(engine, "take the network from a SharedWorker"),
          clearSiteData: cannot(engine, "clear the data of a site"),
        };
  return {
    pid,
    ...faults,
    async newTab({ beforeLoad }) {
      const page = await browser.newPage();
      page.setDefaultTimeout(LIMIT_MS);
      if (beforeLoad) await page.evaluateOnNewDocument(beforeLoad);
      return tabOf(pageOf(engine, page), files);
    },
    quit: () => browser.close(),
  };
}
