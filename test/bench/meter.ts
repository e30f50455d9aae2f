import { readFile } from "node:fs/promises";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

/** What the main thread of a page has been busy with. */
export interface Meter {
  /** Time of all its tasks so far, in ms. (`ScriptDuration` misses what promises and messages set off.) */
  taskMs(): Promise<number>;
  close(): Promise<void>;
}

/**
 * @param profile of a running Chromium
 * @param url of one page
 */
export async function meterOf(profile: string, url: string): Promise<Meter> {
  // Where Chromium tells its DevTools address to whoever has not started it.
  const [port, path] = (await readFile(join(profile, "data/DevToolsActivePort"), "utf8")).split("\n");
  const browser = await puppeteer.connect({
    browserWSEndpoint: `ws://127.0.0.1:${port}${path}`,
    protocolTimeout: 60_000,
    defaultViewport: null,
    // A session on a worker would be in the way of its end.
    targetFilter: (target) => target.type() === "browser" || target.url() === url,
  });
  const page = (await browser.pages()).find((it) => it.url() === url);
  if (page === undefined) throw new Error(`no page at ${url}`);
  return {
    async taskMs() {
      const { TaskDuration } = await page.metrics();
      if (TaskDuration === undefined) throw new Error("the browser has no TaskDuration");
      return TaskDuration * 1_000;
    },
    close: () => browser.disconnect(),
  };
}
