import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { LabTabs, useBrowser } from "./driver/scripted.js";

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

// Only Chromium says that it did so.
test.runIf(inject("engine") === "chromium")(
  "a database that the browser itself deleted as damaged is told of, and the next run begins a new one (L10)",
  async () => {
    const lab = new LabTabs(given);
    const thread = "damaged";
    const before = await (await lab.open()).takePart("count", thread);
    expect(await before.run(thread, { n: 3 })).toMatchObject({ ok: true });
    await given.killAndRestart(damageDatabases);
    const after = await (await lab.open()).takePart("count", thread);
    await after.tab.waitFor(() => {
      const { status } = window.lab;
      return status.is === "connected" && status.error?.code === "storage-deleted";
    });
    expect(await after.run(thread, { n: 3 })).toMatchObject({ ok: true });
    await lab.close();
  },
);

/** As a disk that fails would. */
function damageDatabases(profile: string): void {
  const folder = join(profile, "data", "Default", "IndexedDB");
  for (const database of readdirSync(folder).filter((name) => name.endsWith(".leveldb"))) {
    const manifest = readdirSync(join(folder, database)).find((name) => name.startsWith("MANIFEST"));
    writeFileSync(join(folder, database, manifest!), "damaged".repeat(50));
  }
}
