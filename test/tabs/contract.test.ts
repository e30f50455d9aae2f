import { expect, inject, test } from "vitest";
import { useBrowser } from "./driver/scripted.js";

const given = useBrowser();
const engine = inject("engine");

/** Relayed requests are answered by both kinds of endpoint: at the base path itself there is the one for all of them. */
const AT_THE_BASE = new Set([
  "an envelope for a runtime with an endpoint for each route is told so",
  "/ leads nowhere",
]);

/** Firefox tells a service worker of a reader that left with the next bytes: here with the next keep-alive comment. */
const TOLD_LATE = new Set(
  ["/suggest", "/run with the tool choice copilotkitSuggest"].map((path) => `${path} ends when its reader leaves`),
);

/** One runtime in a SharedWorker for each way; its cases are tried one after the other, as a front end would ask. */
const WAYS = engine === "chromium" ? ["install", "install-single", "service-worker"] : ["install", "service-worker"];

test.each(WAYS)("the contract of the runtime's routes holds for a page, by way of %s", async (way) => {
  const worker = `contract-${process.pid}-${way}#host`;
  const tab = await given.browser.newTab(
    `${inject("pages")}contract.html?way=${way}&worker=${encodeURIComponent(worker)}`,
  );
  await tab.waitFor(() => "contract" in window);
  const names = await tab.evaluate(() => window.contract.caseNames());
  const failures: string[] = [];
  for (const name of names) {
    if (AT_THE_BASE.has(name)) continue;
    if (engine === "firefox" && way === "service-worker" && TOLD_LATE.has(name)) continue;
    const failure = await tab.evaluate((one) => window.contract.check(one), name);
    if (failure !== undefined) failures.push(`${name}: ${failure}`);
  }
  await tab.close();
  expect(names.length).toBeGreaterThan(50);
  expect(failures, engine).toEqual([]);
});
