import { inject } from "vitest";
import type { Browser, Tab } from "./browser.js";

/**
 * From now on, runs of the thread that start wait where what they have said matches, until the tab that is returned is
 * closed. So a test, not the clock, decides that a run is still under way.
 */
export async function holdRuns(browser: Browser, threadId: string, at: RegExp): Promise<Tab> {
  // A document of the demo's origin without a script.
  const tab = await browser.newTab(`${inject("origin")}icon-192.png`);
  await tab.evaluate(
    (name) =>
      new Promise<void>((resolve, reject) => {
        navigator.locks
          .request(name, () => {
            resolve();
            return new Promise(() => undefined);
          })
          .catch(reject);
      }),
    `hold ${threadId} ${at.source}`,
  );
  return tab;
}
