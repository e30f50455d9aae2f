import { deleteDB, openDB } from "idb";
import { expect, onTestFinished, vi } from "vitest";
import { cdp } from "vitest/browser";

const { origin } = location;

/** More than a small disk holds. */
export const LARGE = "x".repeat(4_000_000);

/** Until the test ends or `free` is called, little can be stored, and nothing of the size of {@link LARGE}. */
export async function smallDisk(): Promise<{ free: () => Promise<void> }> {
  const free = async (): Promise<void> => {
    await cdp().send("Storage.overrideQuotaForOrigin", { origin });
  };
  onTestFinished(free);
  await cdp().send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 3_000_000 });
  // Where something was written before (by the test file that this page ran last, say), Chromium remembers for half a
  // minute how much space there was then.
  await vi.waitFor(async () => expect(await isRefused()).toBe(true), { timeout: 120_000, interval: 500 });
  return { free };
}

async function isRefused(): Promise<boolean> {
  const name = `small-disk-${crypto.randomUUID()}`;
  const db = await openDB(name, 1, { upgrade: (made) => void made.createObjectStore("rows") });
  try {
    return await db.put("rows", LARGE, 1).then(
      () => false,
      (error: unknown) => error instanceof DOMException && error.name === "QuotaExceededError",
    );
  } finally {
    db.close();
    await deleteDB(name);
  }
}
