import { expect, inject, test } from "vitest";
import { useBrowser } from "./driver/scripted.js";

const given = useBrowser();
const DEMO_DB = "ag-ui-local-runtime-demo";

test("a database of a newer version is refused with a sentence, and left as it is (L10)", async () => {
  const origin = inject("origin");
  const maker = await given.browser.newTab(`${origin}favicon.svg`);
  await maker.evaluate(
    (name: string) =>
      new Promise<void>((resolve, reject) => {
        const opening = indexedDB.open(name, 999);
        opening.onupgradeneeded = () => opening.result.createObjectStore("theirs").put("kept", "key");
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          opening.result.close();
          resolve();
        };
      }),
    DEMO_DB,
  );
  const tab = await given.browser.newTab(`${origin}?thread=newer`);
  await tab.waitFor(() => document.body.innerText.includes("The database belongs to a newer version"));
  expect(await tab.attr("data-run-state")).toBe("idle");
  expect(await tab.isDisabled("button", "Send")).toBe(true);
  const kept = await maker.evaluate(
    (name: string) =>
      new Promise((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const db = opening.result;
          const reading = db.transaction("theirs").objectStore("theirs").get("key");
          reading.onsuccess = () => {
            db.close();
            resolve(reading.result);
          };
        };
      }),
    DEMO_DB,
  );
  expect(kept).toBe("kept");
});
